import { z } from 'zod';
import { definePlugin } from 'sluice';
import type { Call, InternalTools } from 'sluice/internal';
import { requestsFor } from './quota/estimate.ts';
import { limitsSchema, outputGuess, runLimited, type Limited } from './rate-limit/limits.ts';

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
  setup({ channels, output }, { rates, catalog, format }: InternalTools) {
    const ids = new Set(catalog.channels.map(({ id }) => id));
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
    const options = {
      rates,
      output,
      origin: 'gateway',
      requests: (call: Call) => requestsFor(call, call.target === undefined ? [] : [call.target], format),
    } as const;

    return function channelLimits(call: Call, next) {
      const limits = call.target === undefined ? undefined : limited.get(call.target.channel.id);
      return limits === undefined ? next(call) : runLimited(call, next, limits, options);
    };
  },
});
