/** `reasoning` of Responses (`effort`, `summary`), in both directions. */
import { effortFrom, type Effort, type Reasoning } from '../../model/reasoning.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given, optionalObject, optionalString } from '../_shared/check.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { defined, setOf } from '../_shared/fields.ts';
import { clampEffort, effortOf, dropBudget } from '../_shared/reasoning.ts';

/** Members of `reasoning` that the neutral model has words for. */
export const reasoningMembers = setOf('effort summary generate_summary');

/** Decodes the reasoning settings. `generate_summary` is the former name of `summary`. Throws 400 with the path. */
export function readReasoning(object: JsonObject, path: string): Reasoning | undefined {
  const effort = effortFrom(optionalString(object.effort, `${path}.effort`));
  const former = optionalString(object.generate_summary, `${path}.generate_summary`);
  const display = optionalString(object.summary, `${path}.summary`) ?? former;
  const shown = display === 'none' ? { show: false } : display === undefined ? {} : { show: true, display };
  const result = { ...defined({ effort }), ...shown };
  return Object.keys(result).length === 0 ? undefined : result;
}

/** Keeps `reasoning` as the client spelled it, and its members that have no neutral form. */
export function keepReasoning(body: JsonObject, left: Leftovers): void {
  const object = optionalObject(body.reasoning, 'reasoning');
  if (object === undefined) return;
  left.put('$reasoning', object).take(object, reasoningMembers, 'reasoning.');
  // An unknown effort is kept like an unknown member.
  if (given(object.effort) && effortFrom(object.effort) === undefined)
    left.put('reasoning.effort', object.effort);
}

/** Returns true when the model is known to think, so that its encrypted reasoning can be requested. */
export function reasons(wanted: Reasoning | undefined, traits: ModelTraits): boolean {
  if (traits.reasoning === 'none' || traits.refuses?.includes('reasoning') === true) return false;
  if (traits.efforts !== undefined) return traits.efforts.some((effort) => effort !== 'none');
  if (traits.reasoning !== undefined) return true;
  return wanted !== undefined && measureOf(wanted) !== 'none';
}

/** Encodes neutral reasoning settings as `reasoning`; undefined when there is nothing to send. Dropped settings are reported. */
export function writeReasoning(
  wanted: Reasoning,
  traits: ModelTraits,
  drop: (path: string) => void,
): JsonObject | undefined {
  if (traits.reasoning === 'none' || traits.refuses?.includes('reasoning') === true) {
    drop('settings.reasoning');
    return undefined;
  }
  const measure = measureOf(wanted);
  dropBudget(wanted, measure, drop);
  if (wanted.mode === 'between-tools') drop('settings.reasoning.mode');
  const effort = measure && clampEffort(measure, traits, drop);
  const summary = wanted.show === true ? summaryOf(wanted, drop) : undefined;
  return effort === undefined && summary === undefined ? undefined : defined({ effort, summary });
}

const summaries = setOf('auto concise detailed');
/** Values of other formats that mean "show the reasoning" without a level of detail. */
const plainDisplays: ReadonlySet<string | undefined> = new Set([undefined, 'summarized']);

function summaryOf({ display }: Reasoning, drop: (path: string) => void): string {
  if (display !== undefined && summaries.has(display)) return display;
  if (!plainDisplays.has(display)) drop('settings.reasoning.display');
  return 'auto';
}

/** Returns the effort: `medium` for mode `on` without effort and budget; undefined where the model decides. */
function measureOf(wanted: Reasoning): Effort | undefined {
  return effortOf(wanted) ?? (wanted.mode === 'on' && wanted.budget === undefined ? 'medium' : undefined);
}
