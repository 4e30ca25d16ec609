import { z } from 'zod';
import { definePlugin, matchesName } from 'sluice';
import { createLimiter, limitsSchema, outputGuess, reachesModel, type Limited } from './rate-limit/limits.ts';

/** Maximum number of model names whose limits are cached. Limited because callers can send any name. */
const mostNames = 1_000;

/**
 * Limits requests per minute, tokens per minute and concurrent calls of a model, for all callers together. A call above a limit gets 429.
 * Limits are set by name or pattern. A pattern has one count for all models that match it, and all matching limits apply. Names are
 * compared after aliases and suffixes are resolved.
 */
export default definePlugin({
  name: 'model-limits',
  stage: 'shape',
  after: ['model-alias'],
  whenListed: true,
  reads: 'usage',
  options: z.strictObject({
    /** Limits by name or pattern of models: `{ 'claude-*': { requestsPerMinute: 100, tokensPerMinute: 1_000_000, concurrency: 20 } }`. */
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
