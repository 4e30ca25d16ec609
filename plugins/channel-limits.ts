import { z } from 'zod';
import { definePlugin } from 'sluice';
import { createLimiter, limitsSchema, outputGuess, type Limited } from './rate-limit/limits.ts';

/**
 * A channel gets no more calls than its provider's account allows: a call that would exceed its limits goes to another channel that
 * serves the model, and is answered 429 only when there is none.
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
    /** By the channel's id: `{ groq: { requestsPerMinute: 30 } }`. */
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
