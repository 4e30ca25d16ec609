/** Checks texts with a moderation model of the gateway (`kind: 'moderation'`). Also makes the calls of all checks that ask a model of the gateway. */
import { z } from 'zod';
import { gathered, type Call, type GatewayEvent, type PluginTools, type SubcallRequest } from 'sluice';
import type { Judge, JudgeTools } from './judge.ts';

/** Budget that is charged for a call of a check. */
export const chargeTo = z.enum(['caller', 'operator']).default('caller');

/** Options of `kind: 'moderation'`. */
export const moderationOptions = {
  /** A model that a channel serves for moderations. */
  model: z.string().min(1).default('omni-moderation-latest'),
  /** Categories that count. Default: all. */
  categories: z.array(z.string().min(1)).optional(),
  /** Lowest score by category, 0 to 1, in place of what the model flags. */
  thresholds: z.record(z.string(), z.number().min(0).max(1)).default({}),
  chargeTo,
};
const schema = z.object(moderationOptions);

const results = z.object({
  results: z.array(
    z.object({
      flagged: z.boolean(),
      categories: z.record(z.string(), z.boolean().nullable()).default({}),
      category_scores: z.record(z.string(), z.number().nullable()).default({}),
    }),
  ),
});

/** Returns a judge that sends the texts to a moderation model, in a call of the gateway's own. */
export function moderation(options: z.output<typeof schema>, { subcall, timeout }: JudgeTools): Judge {
  return async ({ texts, call, signal, outlivesCall }) => {
    const input = texts.map(({ text }) => text).filter((text) => text.trim() !== '');
    if (input.length === 0) return { flagged: false, reasons: [] };
    const body = { model: options.model, input };
    const request = {
      operation: 'moderate',
      format: 'moderations',
      body,
      chargeTo: options.chargeTo,
      outlivesParent: outlivesCall,
    } as const;
    const events = await eventsOf(subcall, call, request, signal, timeout);
    const result = events.find((event) => event.type === 'result');
    if (result === undefined) throw new Error('The moderation returned no result.');
    const reasons = results.parse(result.value).results.flatMap((one) => reasonsOf(one, options));
    return { flagged: reasons.length > 0, reasons: [...new Set(reasons)] };
  };
}

type Result = z.output<typeof results>['results'][number];

function reasonsOf(result: Result, { categories, thresholds }: z.output<typeof schema>): readonly string[] {
  const names = new Set([...Object.keys(result.categories), ...Object.keys(thresholds)]);
  const found = [...names].filter((name) => {
    if (categories !== undefined && !categories.includes(name)) return false;
    const threshold = thresholds[name];
    return threshold === undefined
      ? result.categories[name] === true
      : (result.category_scores[name] ?? 0) >= threshold;
  });
  // The model flags the text without any category.
  return found.length === 0 && result.flagged && names.size === 0 ? ['flagged'] : found;
}

/** Makes a call on behalf of another, and returns all events of its response. */
export async function eventsOf(
  subcall: PluginTools['subcall'],
  parent: Call,
  request: SubcallRequest,
  signal: AbortSignal | undefined,
  timeout: number,
): Promise<readonly GatewayEvent[]> {
  const direct = subcall(parent, request);
  const end = (): void => direct.end();
  let isLate = false;
  const deadline = setTimeout(() => {
    isLate = true;
    end();
  }, timeout);
  signal?.addEventListener('abort', end, { once: true });
  try {
    return await gathered(direct.call, await direct.send());
  } catch (error) {
    throw isLate ? new Error(`The model did not respond within ${timeout} ms.`, { cause: error }) : error;
  } finally {
    clearTimeout(deadline);
    signal?.removeEventListener('abort', end);
    end();
  }
}
