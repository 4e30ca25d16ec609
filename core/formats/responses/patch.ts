import { isObject, type JsonObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import type { MutableObject } from '../_shared/settings.ts';
import type { Edits } from '../format.ts';
import { readReasoning, reasoningMembers, writeReasoning } from './reasoning.ts';

/** The client's body with the edits made and nothing else changed. What limits or steers an answer does not change a count. */
export function patch(body: JsonObject, edits: Edits, traits: ModelTraits, counting: boolean): JsonObject {
  const patched: MutableObject = { ...body };
  if (edits.model !== undefined) patched.model = edits.model;
  const { reasoning, maxOutput } = edits.settings ?? {};
  if (maxOutput !== undefined && !counting) patched.max_output_tokens = maxOutput;
  if (reasoning === undefined) return patched;
  const held = isObject(body.reasoning) ? body.reasoning : {};
  const merged = { ...readReasoning(held, 'reasoning'), ...reasoning };
  const written = writeReasoning(merged, traits, () => undefined) ?? {};
  const rest = Object.entries(held).filter(([name]) => !reasoningMembers.has(name));
  patched.reasoning = { ...Object.fromEntries(rest), ...written };
  if (Object.keys(patched.reasoning).length === 0) delete patched.reasoning;
  if (Array.isArray(body.input)) patched.input = body.input.map(withoutEffort);
  return patched;
}

/** An update in the input must not take the edit back. */
function withoutEffort<Item>(item: Item): Item | JsonObject {
  if (!isObject(item) || item.type !== 'configuration_update' || item.reasoning === undefined) return item;
  const { reasoning: _, ...rest } = item;
  return rest;
}
