import { z } from 'zod';
import { definePlugin, matchesName } from 'sluice';
import { createLimiter, limitsSchema, outputGuess, reachesModel, type Limited } from './rate-limit/limits.ts';

/** Names of models that are remembered with their limits: names that match nothing are the callers' to invent. */
const mostNames = 1_000;

/**
 * All callers together get 429 when a model has had too many requests or tokens within a minute, or too many calls run. Limits stand by
 * name or pattern: one pattern is one count for all the models that match it, and every one that matches holds. The name is the one
 * behind aliases and suffixes.
 */
export default definePlugin({
  name: 'model-limits',
  stage: 'shape',
  after: ['model-alias'],
  whenListed: true,
  reads: 'usage',
  options: z.strictObject({
    /** `{ 'claude-*': { requestsPerMinute: 100, tokensPerMinute: 1_000_000, concurrency: 20 } }` */
    models: z.record(z.string().min(1), limitsSchema).default({}),
    output: outputGuess,
  }),
  editable: ['models'],
  setup({ models, output }, tools) {
    const rows = Object.entries(models).map(([pattern, limits]) => ({
      pattern: [pattern],
      limited: { subject: `model:${pattern}`, who: `The model ${pattern}`, limits } satisfies Limited,
    }));
    const known = new Map<string, readonly Limited[]>();
    const limitsOf = (model: string): readonly Limited[] => {
      let limited = known.get(model);
      if (limited === undefined) {
        limited = rows.flatMap((row) => (matchesName(row.pattern, model) ? [row.limited] : []));
        if (known.size < mostNames) known.set(model, limited);
      }
      return limited;
    };
    const limit = createLimiter(tools, {
      output,
      origin: 'client',
      targets: ({ model }) => tools.catalog.targets(model),
    });

    return function modelLimits(call, next) {
      if (rows.length === 0 || !reachesModel(call)) return next(call);
      const limited = limitsOf(call.model);
      return limited.length === 0 ? next(call) : limit(call, next, limited);
    };
  },
});
