import { z } from 'zod';
import { definePlugin } from 'sluice';
import { createLimiter, limitsSchema, outputGuess, type Limited } from './rate-limit/limits.ts';

/**
 * Limits requests per minute, tokens per minute and concurrent calls of a channel to what the provider's account allows. A call above a
 * limit goes to another channel that serves the model. It gets 429 only if there is none.
 */
export default definePlugin({
  name: 'channel-limits',
  stage: 'translate',
  before: [
    'compaction',
    'learned-refusals',
    'reasoning-vault',
    'prompt-list',
    'parallel-choices',
    'translation',
  ],
  whenListed: true,
  reads: 'usage',
  options: z.strictObject({
    /** Limits by channel id: `{ groq: { requestsPerMinute: 30 } }`. */
    channels: z.record(z.string().min(1), limitsSchema).default({}),
    output: outputGuess,
  }),
  setup({ channels, output }, tools) {
    const ids = new Set(tools.catalog.channels.map(({ id }) => id));
    for (const id of Object.keys(channels)) {
      if (!ids.has(id))
        throw new Error(`there is no channel "${id}". The channels are: ${[...ids].join(', ')}.`);
    }
    const limited = new Map<string, readonly Limited[]>(
      Object.entries(channels).map(([id, limits]) => [
        id,
        [{ subject: `channel:${id}`, who: 'The channel for this model', limits }],
      ]),
    );
    const limit = createLimiter(tools, {
      output,
      origin: 'gateway',
      targets: ({ target }) => (target === undefined ? [] : [target]),
    });

    return function channelLimits(call, next) {
      const limits = call.target === undefined ? undefined : limited.get(call.target.channel.id);
      return limits === undefined ? next(call) : limit(call, next, limits);
    };
  },
});
