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
 * A caller gets 429 with the time to wait when its key has made too many requests, used too many tokens within a minute, or has too many
 * calls running, and on every reply the headers that tell how its limits stand. Limits are members of the key; `default` gives those
 * that a key does not name. They hold for all gateways that share a store.
 */
export default definePlugin({
  name: 'rate-limit',
  stage: 'admit',
  // Runs first, so that calls over the limit cause no further work.
  before: ['video-tasks', 'model-alias', 'model-access', 'stored-responses', 'quota', 'realtime-sessions'],
  reads: 'usage',
  options: z.strictObject({
    /** For keys that say nothing of their own, member by member. */
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
