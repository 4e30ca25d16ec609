import { z } from 'zod';
import { caller, definePlugin, ownerName, type ApiKey, type Call } from 'sluice';
import {
  createLimiter,
  limitsAnything,
  limitsSchema,
  outputGuess,
  reachesModel,
  type Limited,
} from './limits.ts';

/**
 * Limits requests per minute, tokens per minute and concurrent calls of each API key. A call above a limit gets 429 with `retry-after`, and
 * every response has headers with the remaining limits. Limits are fields of the key; `default` has those that a key does not set. All
 * gateways that share a store count together.
 */
export default definePlugin({
  name: 'rate-limit',
  stage: 'admit',
  // Runs first, so that calls over the limit cause no further work.
  before: ['video-tasks', 'model-alias', 'model-access', 'stored-responses', 'quota', 'realtime-sessions'],
  reads: 'usage',
  options: z.strictObject({
    /** Limits of keys that do not set them, each limit by itself. */
    default: limitsSchema.default({}),
    output: outputGuess,
  }),
  editable: ['default'],
  setup({ default: fallback, output }, tools) {
    /** A changed record is another object. */
    const known = new WeakMap<ApiKey, readonly Limited[]>();
    const limitsOf = (key: ApiKey): readonly Limited[] => {
      let limited = known.get(key);
      if (limited === undefined) {
        const limits = {
          requestsPerMinute: key.requestsPerMinute ?? fallback.requestsPerMinute,
          tokensPerMinute: key.tokensPerMinute ?? fallback.tokensPerMinute,
          concurrency: key.concurrency ?? fallback.concurrency,
        };
        limited = [
          { subject: `key:${key.id}`, who: 'This API key', limits },
          ...(key.owners ?? []).map((owner) => ({
            subject: `owner:${owner.id}`,
            who: ownerName(owner).replace('the', 'The'),
            limits: owner,
          })),
        ].filter(limitsAnything);
        known.set(key, limited);
      }
      return limited;
    };
    const limit = createLimiter(tools, {
      output,
      origin: 'client',
      targets: ({ model }) => tools.catalog.targets(model),
    });

    return function rateLimit(call, next) {
      const key = call.get(caller);
      if (key === undefined || isPartOfCall(call) || !reachesModel(call)) return next(call);
      const limited = limitsOf(key);
      return limited.length === 0 ? next(call) : limit(call, next, limited);
    };
  },
});

/**
 * True for what a plugin asks for on behalf of a call that is counted itself. A tool that runs for a request to an endpoint of a plugin counts,
 * because such requests do not.
 */
function isPartOfCall({ parent, operation }: Call): boolean {
  return parent !== undefined && !(operation === 'tool' && parent.operation === 'state');
}
