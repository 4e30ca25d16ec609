/** Edits a Responses request that otherwise passes through, and removes members that the specification has and providers refuse. */
import { isObject, type JsonObject, type MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { fieldsBeside } from '../_shared/fields.ts';
import type { Edits } from '../../sdk/format.ts';
import { besideInstructions, isMoreThanWord, readInstructions, readTruncation } from './instructions.ts';
import { readReasoning, reasoningMembers, writeReasoning } from './reasoning.ts';

/**
 * Returns the client's body with the edits. The output limit is not written into a request for a token count. Settings that the model does not
 * accept are reported.
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
 * Returns the body without what the specification has and providers refuse: objects in place of strings (`instructions`, `truncation`), and
 * `include_usage`, because usage is always sent.
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

/** Removes reasoning from a `configuration_update` in the input, which would override the edit. */
function withoutEffort<Item>(item: Item): Item | JsonObject {
  if (!isObject(item) || item.type !== 'configuration_update' || item.reasoning === undefined) return item;
  const { reasoning: _, ...rest } = item;
  return rest;
}
