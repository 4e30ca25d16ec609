/** A `thinking` object, read. */
import type { JsonObject } from '../../../model/json.ts';
import type { Reasoning } from '../../../model/reasoning.ts';
import { optionalNumber, optionalString, requiredString } from '../check.ts';
import type { Leftovers } from '../extra.ts';
import type { ReasoningDraft } from '../reasoning.ts';
import { setOf } from '../fields.ts';

const fields = setOf('type budget_tokens display');

/** Words of `thinking.type` that every format with such an object knows. */
export const thinkingModes: Readonly<Record<string, NonNullable<Reasoning['mode']>>> = {
  enabled: 'on',
  adaptive: 'adaptive',
  disabled: 'off',
};

/** Decodes a `thinking` object into `draft`, and its unknown members into `left`. Throws 400 with the path. */
export function readThinking(
  thinking: JsonObject | undefined,
  path: string,
  { modes, leastBudget }: { readonly modes: typeof thinkingModes; readonly leastBudget?: number },
  draft: ReasoningDraft,
  left: Leftovers,
): void {
  if (thinking === undefined) return;
  const type = requiredString(thinking.type, `${path}.type`);
  const limits = leastBudget === undefined ? { integer: true } : { integer: true, min: leastBudget };
  const budget = optionalNumber(thinking.budget_tokens, `${path}.budget_tokens`, limits);
  const display = optionalString(thinking.display, `${path}.display`);
  const mode = Object.hasOwn(modes, type) ? modes[type] : undefined;
  if (mode === undefined) left.put(`${path}.type`, type);
  else draft.mode = mode;
  if (budget !== undefined) draft.budget = budget;
  if (display !== undefined) {
    draft.show = display !== 'omitted';
    draft.display = display;
  }
  left.take(thinking, fields, `${path}.`);
}
