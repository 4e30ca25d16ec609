/** Decodes the reasoning settings of chat completions. */
import { effortFrom, type Reasoning } from '../../../model/reasoning.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import {
  given,
  optionalBoolean,
  optionalNumber,
  optionalObject,
  optionalString,
} from '../../_shared/check.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { defined, fieldsBeside } from '../../_shared/fields.ts';
import { lookupTable } from '../../../model/lookup-table.ts';

const modes = lookupTable<Reasoning['mode']>({
  enabled: 'on',
  disabled: 'off',
  adaptive: 'adaptive',
  auto: 'adaptive',
});

type Reader = (value: JsonValue, path: string) => Reasoning;

const effortIn: Reader = (value, path) => defined({ effort: effortFrom(optionalString(value, path)) });
const budgetIn: Reader = (value, path) => defined({ budget: optionalNumber(value, path, { integer: true }) });
const switchIn: Reader = (value, path) => ({ mode: optionalBoolean(value, path) === true ? 'on' : 'off' });
/** Each template gives its arguments a meaning of its own: one that is no switch is not refused. */
const templateSwitchIn: Reader = (value) =>
  typeof value === 'boolean' ? { mode: value ? 'on' : 'off' } : {};

/**
 * Fields in which clients request reasoning, top-level or in an object: `reasoning_effort`, `reasoning {…}` (OpenRouter), `thinking {…}`
 * (DeepSeek and others), `enable_thinking`/`thinking_budget` (Qwen), and the switches in the templates of Qwen and DeepSeek. The first
 * field with a value takes precedence.
 */
const spellings: readonly (readonly [holder: string | undefined, member: string, read: Reader])[] = [
  [undefined, 'reasoning_effort', effortIn],
  ['reasoning', 'effort', effortIn],
  ['reasoning', 'max_tokens', budgetIn],
  ['reasoning', 'exclude', (value, path) => ({ show: optionalBoolean(value, path) === false })],
  ['reasoning', 'enabled', switchIn],
  ['thinking', 'type', (value, path) => defined({ mode: modes[optionalString(value, path) ?? ''] })],
  ['thinking', 'budget_tokens', budgetIn],
  [undefined, 'enable_thinking', switchIn],
  [undefined, 'thinking_budget', budgetIn],
  ['chat_template_kwargs', 'enable_thinking', templateSwitchIn],
  ['chat_template_kwargs', 'thinking', templateSwitchIn],
];

/** Fields that request reasoning in the dialects of providers. */
export const reasoningFields: readonly string[] = [
  ...new Set(spellings.map(([holder, member]) => holder ?? member)),
];

/** Returns the client's reasoning settings. Throws 400 with the path. */
export function readReasoning(body: JsonObject): Reasoning | undefined {
  let decoded: Reasoning = {};
  for (const [holder, member, read] of spellings) {
    const value = holder === undefined ? body[member] : optionalObject(body[holder], holder)?.[member];
    if (given(value))
      decoded = Object.assign(read(value, holder === undefined ? member : `${holder}.${member}`), decoded);
  }
  return Object.keys(decoded).length === 0 ? undefined : decoded;
}

/** Keeps the spelling of the request for reasoning, and the members that the neutral model does not have. */
export function keepReasoning(body: JsonObject, left: Leftovers): void {
  const givenFields = reasoningFields.filter((field) => given(body[field]));
  if (givenFields.length === 0) return;
  const spelled: MutableObject = {};
  for (const field of givenFields) {
    const value = body[field] ?? null;
    // A word that is no effort (`ultra`) is a field like any unknown one.
    if (field === 'reasoning_effort' && effortFrom(value) === undefined) left.put(field, value);
    else if (isObject(value)) spelled[field] = keepMembers(field, value, left);
    else spelled[field] = value;
  }
  left.put('$reasoning', spelled);
}

/** Members of the objects that request reasoning, by the name of the object. */
const readMembers = Map.groupBy(spellings, ([holder]) => holder);

/** Returns the members that request reasoning in the object with this name. */
function membersIn(field: string): readonly string[] {
  return (readMembers.get(field) ?? []).map(([, member]) => member);
}

/**
 * Objects in which clients request reasoning, with their further members. Arguments of a template are kept even if none is a reasoning
 * switch.
 */
export function besideReasoning(body: JsonObject): Readonly<Record<string, JsonObject>> {
  const found: Record<string, JsonObject> = {};
  for (const field of readMembers.keys()) {
    const object = field === undefined ? undefined : body[field];
    if (field === undefined || !isObject(object)) continue;
    const rest = fieldsBeside(object, new Set(membersIn(field)));
    if (Object.keys(rest).length > 0) found[field] = rest;
  }
  return found;
}

function keepMembers(field: string, object: JsonObject, left: Leftovers): JsonObject {
  const members = membersIn(field);
  left.take(object, new Set(members), `${field}.`);
  return defined(Object.fromEntries(members.map((member) => [member, object[member]])));
}
