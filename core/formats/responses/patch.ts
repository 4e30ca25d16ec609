import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { fieldsBeside } from '../_shared/fields.ts';
import type { Edits } from '../../sdk/format.ts';
import { besideInstructions, isMoreThanWord, readInstructions, readTruncation } from './instructions.ts';
import { readReasoning, reasoningMembers, writeReasoning } from './reasoning.ts';

/**
 * The client's body with the edits made and nothing else changed. What limits or steers an answer does not change a count. What the model
 * cannot be asked for is reported.
 */
export function patch(
  body: JsonObject,
  edits: Edits,
  traits: ModelTraits,
  counting: boolean,
  drop: (path: string) => void = () => {},
): JsonObject {
  const patched: MutableObject = { ...body };
  if (edits.model !== undefined) patched.model = edits.model;
  const { reasoning, maxOutput } = edits.settings ?? {};
  if (maxOutput !== undefined && !counting) patched.max_output_tokens = maxOutput;
  if (reasoning === undefined) return patched;
  const held = isObject(body.reasoning) ? body.reasoning : {};
  const merged = { ...readReasoning(held, 'reasoning'), ...reasoning };
  const written = writeReasoning(merged, traits, drop) ?? {};
  patched.reasoning = { ...fieldsBeside(held, reasoningMembers), ...written };
  if (Object.keys(patched.reasoning).length === 0) delete patched.reasoning;
  if (Array.isArray(body.input)) patched.input = body.input.map(withoutEffort);
  return patched;
}

/**
 * The body without what the spec has and providers refuse: objects in the place of a word (`instructions`, `truncation`), and the asking
 * for usage, which always comes.
 */
export function official(body: JsonObject, _traits: ModelTraits, drop: (path: string) => void): JsonObject {
  const { instructions, truncation, stream_options: options } = body;
  const asksUsage = isObject(options) && options.include_usage !== undefined;
  if (!isObject(instructions) && !isObject(truncation) && !asksUsage) return body;
  const next: MutableObject = { ...body };
  if (isObject(instructions)) {
    next.instructions = readInstructions(instructions);
    for (const path of besideInstructions(body)) drop(path);
  }
  if (isObject(truncation)) {
    next.truncation = readTruncation(truncation);
    if (isMoreThanWord(truncation)) drop('truncation');
  }
  if (asksUsage) {
    const { include_usage: _, ...rest } = options;
    if (Object.keys(rest).length > 0) next.stream_options = rest;
    else delete next.stream_options;
  }
  return next;
}

/** An update in the input must not take the edit back. */
function withoutEffort<Item>(item: Item): Item | JsonObject {
  if (!isObject(item) || item.type !== 'configuration_update' || item.reasoning === undefined) return item;
  const { reasoning: _, ...rest } = item;
  return rest;
}
