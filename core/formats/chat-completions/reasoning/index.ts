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
import { setOf } from '../../_shared/fields.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { sameJson } from '../../_shared/same-json.ts';
import { clampEffort, loseBudget } from '../../_openai/reasoning.ts';
import { effortOf } from '../../_shared/reasoning.ts';

type Style = 'effort' | 'thinking' | 'object' | 'none';
type Draft = { -readonly [Member in keyof Reasoning]: Reasoning[Member] };

/** The fields in which providers of this dialect ask for reasoning. */
export const reasoningFields = [
  'reasoning_effort',
  'reasoning',
  'thinking',
  'enable_thinking',
  'thinking_budget',
] as const;

const reasoningMembers = setOf('effort max_tokens exclude enabled');
const thinkingMembers = setOf('type budget_tokens');
const modes: Readonly<Record<string, Reasoning['mode']>> = {
  enabled: 'on',
  disabled: 'off',
  adaptive: 'adaptive',
  auto: 'adaptive',
};

/**
 * What the client asked of the reasoning, out of `reasoning_effort`, `reasoning {…}` (OpenRouter), `thinking {…}` (DeepSeek and others)
 * and `enable_thinking`/`thinking_budget` (Qwen). The first spelling that says something wins. Throws 400 with the path.
 */
export function readReasoning(body: JsonObject): Reasoning | undefined {
  const draft: Draft = {};
  const effort = effortFrom(optionalString(body.reasoning_effort, 'reasoning_effort'));
  if (effort !== undefined) draft.effort = effort;
  const object = optionalObject(body.reasoning, 'reasoning');
  if (object !== undefined) readObject(object, draft);
  const thinking = optionalObject(body.thinking, 'thinking');
  if (thinking !== undefined) readThinking(thinking, draft);
  const enabled = optionalBoolean(body.enable_thinking, 'enable_thinking');
  if (enabled !== undefined) draft.mode ??= enabled ? 'on' : 'off';
  const budget = optionalNumber(body.thinking_budget, 'thinking_budget', { integer: true });
  if (budget !== undefined) draft.budget ??= budget;
  return Object.keys(draft).length === 0 ? undefined : draft;
}

function readObject(object: JsonObject, draft: Draft): void {
  const effort = effortFrom(optionalString(object.effort, 'reasoning.effort'));
  if (effort !== undefined) draft.effort ??= effort;
  const budget = optionalNumber(object.max_tokens, 'reasoning.max_tokens', { integer: true });
  if (budget !== undefined) draft.budget = budget;
  const exclude = optionalBoolean(object.exclude, 'reasoning.exclude');
  if (exclude !== undefined) draft.show = !exclude;
  const enabled = optionalBoolean(object.enabled, 'reasoning.enabled');
  if (enabled !== undefined) draft.mode = enabled ? 'on' : 'off';
}

function readThinking(thinking: JsonObject, draft: Draft): void {
  const mode = modes[optionalString(thinking.type, 'thinking.type') ?? ''];
  if (mode !== undefined) draft.mode ??= mode;
  const budget = optionalNumber(thinking.budget_tokens, 'thinking.budget_tokens', { integer: true });
  if (budget !== undefined) draft.budget ??= budget;
}

/** Keeps how reasoning was asked for, and the members that the neutral model has no word for. */
export function keepReasoning(body: JsonObject, left: Leftovers): void {
  const spelled: MutableObject = {};
  for (const field of reasoningFields) if (given(body[field])) spelled[field] = body[field];
  if (Object.keys(spelled).length === 0) return;
  // A word that is no effort (`ultra`) is a field like any unknown one.
  if (typeof spelled.reasoning_effort === 'string' && effortFrom(spelled.reasoning_effort) === undefined) {
    left.put('reasoning_effort', spelled.reasoning_effort);
    delete spelled.reasoning_effort;
  }
  if (isObject(spelled.reasoning)) {
    left.take(spelled.reasoning, reasoningMembers, 'reasoning.');
    spelled.reasoning = only(spelled.reasoning, reasoningMembers);
  }
  if (isObject(spelled.thinking)) {
    left.take(spelled.thinking, thinkingMembers, 'thinking.');
    spelled.thinking = only(spelled.thinking, thinkingMembers);
  }
  left.put('$reasoning', spelled);
}

function only(object: JsonObject, members: ReadonlySet<string>): JsonObject {
  const kept: MutableObject = {};
  for (const member of members) if (object[member] !== undefined) kept[member] = object[member];
  return kept;
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
export function styleOf(traits: ModelTraits): Style {
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
