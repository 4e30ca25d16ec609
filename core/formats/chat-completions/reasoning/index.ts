import { effortFrom, type Reasoning } from '../../../model/reasoning.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import {
  given,
  optionalBoolean,
  optionalNumber,
  optionalObject,
  optionalString,
} from '../../_shared/check.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { defined } from '../../_shared/fields.ts';
import { sameJson } from '../../_shared/same-json.ts';
import { clampEffort, loseBudget } from '../../_openai/reasoning.ts';
import { effortOf } from '../../_shared/reasoning.ts';
import { wordTable } from '../../../model/word-table.ts';

type Style = 'effort' | 'thinking' | 'object' | 'none';

const modes = wordTable<Reasoning['mode']>({
  enabled: 'on',
  disabled: 'off',
  adaptive: 'adaptive',
  auto: 'adaptive',
});

type Reader = (value: JsonValue, path: string) => Reasoning;

const effortIn: Reader = (value, path) => defined({ effort: effortFrom(optionalString(value, path)) });
const budgetIn: Reader = (value, path) => defined({ budget: optionalNumber(value, path, { integer: true }) });
const switchIn: Reader = (value, path) => ({ mode: optionalBoolean(value, path) === true ? 'on' : 'off' });

/**
 * The members in which clients ask for reasoning, on their own or in an object: `reasoning_effort`, `reasoning {…}` (OpenRouter),
 * `thinking {…}` (DeepSeek and others) and `enable_thinking`/`thinking_budget` (Qwen). The first that says something wins.
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
];

/** The fields in which providers of this dialect ask for reasoning. */
export const reasoningFields: readonly string[] = [
  ...new Set(spellings.map(([holder, member]) => holder ?? member)),
];

/** What the client asked of the reasoning. Throws 400 with the path. */
export function readReasoning(body: JsonObject): Reasoning | undefined {
  let wish: Reasoning = {};
  for (const [holder, member, read] of spellings) {
    const value = holder === undefined ? body[member] : optionalObject(body[holder], holder)?.[member];
    if (given(value))
      wish = Object.assign(read(value, holder === undefined ? member : `${holder}.${member}`), wish);
  }
  return Object.keys(wish).length === 0 ? undefined : wish;
}

/** Keeps how reasoning was asked for, and the members that the neutral model has no word for. */
export function keepReasoning(body: JsonObject, left: Leftovers): void {
  const asked = reasoningFields.filter((field) => given(body[field]));
  if (asked.length === 0) return;
  const spelled: MutableObject = {};
  for (const field of asked) {
    const value = body[field] ?? null;
    // A word that is no effort (`ultra`) is a field like any unknown one.
    if (field === 'reasoning_effort' && effortFrom(value) === undefined) left.put(field, value);
    else if (isObject(value)) spelled[field] = keepMembers(field, value, left);
    else spelled[field] = value;
  }
  left.put('$reasoning', spelled);
}

function keepMembers(field: string, object: JsonObject, left: Leftovers): JsonObject {
  const members = spellings.flatMap(([holder, member]) => (holder === field ? [member] : []));
  left.take(object, new Set(members), `${field}.`);
  return defined(Object.fromEntries(members.map((member) => [member, object[member]])));
}

const styleFields: Readonly<Record<Style, readonly string[]>> = {
  effort: ['reasoning_effort'],
  thinking: ['thinking', 'reasoning_effort'],
  object: ['reasoning'],
  none: [],
};

/** The client's own spelling, when it still says what the settings say and the model takes it; undefined otherwise. */
export function spelledReasoning(
  spelled: JsonValue | undefined,
  wanted: Reasoning | undefined,
  traits: ModelTraits,
): JsonObject | undefined {
  if (!isObject(spelled)) return undefined;
  if (!sameJson(asJson(readReasoning(spelled)), asJson(wanted))) return undefined;
  if (wanted?.effort !== undefined && traits.efforts !== undefined && !traits.efforts.includes(wanted.effort))
    return undefined;
  if (traits.reasoning === undefined) return spelled;
  const allowed = styleFields[styleOf(traits)];
  return Object.keys(spelled).every((field) => allowed.includes(field)) ? spelled : undefined;
}

function asJson(reasoning: Reasoning | undefined): JsonValue {
  return reasoning === undefined ? null : { ...reasoning };
}

/** How this model is asked for reasoning. */
function styleOf(traits: ModelTraits): Style {
  const { reasoning } = traits;
  return reasoning === 'thinking' || reasoning === 'object' || reasoning === 'none' ? reasoning : 'effort';
}

/** Writes the wish in the words that the model's traits name. What they cannot say is reported. */
export function writeReasoning(
  wanted: Reasoning,
  traits: ModelTraits,
  body: MutableObject,
  lose: (path: string) => void,
): void {
  const style = styleOf(traits);
  if (style === 'none') {
    lose('settings.reasoning');
    return;
  }
  if (style === 'object') writeObject(wanted, traits, body, lose);
  else writeEffort(wanted, traits, style, body, lose);
}

function writeEffort(
  wanted: Reasoning,
  traits: ModelTraits,
  style: Style,
  body: MutableObject,
  lose: (path: string) => void,
): void {
  const effort = effortOf(wanted);
  loseDisplay(wanted, lose);
  loseBudget(wanted, effort, lose);
  if (style === 'thinking') {
    const off = effort === 'none';
    if (off || effort !== undefined || wanted.mode === 'on' || wanted.mode === 'adaptive') {
      body.thinking = { type: off ? 'disabled' : 'enabled' };
    }
    if (wanted.mode === 'between-tools') lose('settings.reasoning.mode');
    if (off || effort === undefined) return;
  } else if (effort === undefined) {
    // "On" with no measure: the middle one. "The model decides" is what saying nothing means.
    if (wanted.mode === 'on') body.reasoning_effort = clampEffort('medium', traits, lose) ?? 'medium';
    else if (wanted.mode !== undefined) lose('settings.reasoning.mode');
    return;
  }
  const clamped = clampEffort(effort, traits, lose);
  if (clamped !== undefined) body.reasoning_effort = clamped;
}

function writeObject(
  wanted: Reasoning,
  traits: ModelTraits,
  body: MutableObject,
  lose: (path: string) => void,
): void {
  const object: MutableObject = {};
  if (wanted.mode === 'off') object.enabled = false;
  else if (wanted.effort !== undefined) {
    loseBudget(wanted, wanted.effort, lose);
    object.effort = clampEffort(wanted.effort, traits, lose);
    if (object.effort === undefined) delete object.effort;
  } else if (wanted.budget !== undefined && wanted.budget >= 0) object.max_tokens = wanted.budget;
  else if (wanted.mode === 'between-tools') lose('settings.reasoning.mode');
  else if (wanted.mode !== undefined || wanted.budget !== undefined) object.enabled = true;
  if (wanted.show !== undefined) object.exclude = !wanted.show;
  if (wanted.display !== undefined) lose('settings.reasoning.display');
  if (Object.keys(object).length > 0) body.reasoning = object;
}

function loseDisplay(wanted: Reasoning, lose: (path: string) => void): void {
  if (wanted.display !== undefined) lose('settings.reasoning.display');
  else if (wanted.show !== undefined) lose('settings.reasoning.show');
}
