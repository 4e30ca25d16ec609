import { wrongValue } from '../../sdk/errors.ts';
import { effortFrom, type Reasoning } from '../../model/reasoning.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { optionalNumber, optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import type { MutableObject } from '../_shared/settings.ts';
import { setOf, type Leftovers } from '../_shared/extra.ts';
import { listOf } from '../_shared/fields.ts';

type Writable = { -readonly [K in keyof Reasoning]: Reasoning[K] };

const modes: Readonly<Record<string, Reasoning['mode']>> = {
  enabled: 'on',
  adaptive: 'adaptive',
  disabled: 'off',
  between_tools: 'between-tools',
};

/** Neutral mode → `thinking.type`. */
export const typeOfMode: Readonly<Record<NonNullable<Reasoning['mode']>, string>> = {
  on: 'enabled',
  adaptive: 'adaptive',
  off: 'disabled',
  'between-tools': 'between_tools',
};

const thinkingFields = setOf('type budget_tokens display');

/**
 * What `thinking` and `output_config.effort` ask for; what only this format knows goes to `left`. A budget below 1024 is not refused
 * here: it is wrong on this format's own channels only, others take the nearest effort.
 */
export function decodeReasoning(body: JsonObject, left: Leftovers): Reasoning | undefined {
  const reasoning: Writable = {};
  readThinking(optionalObject(body.thinking, 'thinking'), reasoning, left);
  readEffort(optionalObject(body.output_config, 'output_config')?.effort, reasoning, left);
  for (const _ in reasoning) {
    left.put('$reasoning', { ...reasoning } as JsonObject);
    return reasoning;
  }
  return undefined;
}

function readThinking(thinking: JsonObject | undefined, reasoning: Writable, left: Leftovers): void {
  if (thinking === undefined) return;
  const type = requiredString(thinking.type, 'thinking.type');
  const mode = Object.hasOwn(modes, type) ? modes[type] : undefined;
  if (mode === undefined) left.put('thinking.type', type);
  else reasoning.mode = mode;
  const budget = optionalNumber(thinking.budget_tokens, 'thinking.budget_tokens', { integer: true, min: 0 });
  if (budget !== undefined) reasoning.budget = budget;
  const display = optionalString(thinking.display, 'thinking.display');
  if (display !== undefined) {
    reasoning.show = display !== 'omitted';
    reasoning.display = display;
  }
  left.take(thinking, thinkingFields, 'thinking.');
}

function readEffort(value: JsonValue | undefined, reasoning: Writable, left: Leftovers): void {
  const word = optionalString(value, 'output_config.effort');
  if (word === undefined) return;
  const effort = effortFrom(word);
  if (effort === undefined) {
    left.put('output_config.effort', word);
    return;
  }
  reasoning.effort = effort;
  if (effort !== word) left.put('$effort', word);
}

/** True when the request asks for reasoning exactly as the client wrote it, and the model takes it so. */
export function isNative(reasoning: Reasoning, kept: JsonObject, traits: ModelTraits): boolean {
  const written = kept.$reasoning;
  if (!isObject(written)) return false;
  const { mode, effort, budget, show, display } = reasoning;
  const same =
    written.mode === mode &&
    written.effort === effort &&
    written.budget === budget &&
    written.show === show &&
    written.display === display;
  if (!same || (mode === 'on' && budget === undefined)) return false;
  if (traits.reasoning === 'adaptive') return mode !== 'on';
  if (traits.reasoning === 'budget')
    return mode !== 'adaptive' && (mode !== undefined || effort === undefined);
  return traits.reasoning !== 'none';
}

/** The client's own words, written back. Throws 400 for a budget that every provider of this format refuses. */
export function nativeThinking(
  reasoning: Reasoning,
  kept: JsonObject,
): { readonly thinking?: JsonObject; readonly effort?: string } {
  const { mode, budget, display, effort } = reasoning;
  if (mode === 'on' && budget !== undefined && budget < 1024) {
    throw wrongValue('thinking.budget_tokens', 'at least 1024');
  }
  const thinking: MutableObject = {};
  if (mode !== undefined) thinking.type = typeOfMode[mode];
  if (budget !== undefined) thinking.budget_tokens = budget;
  if (display !== undefined) thinking.display = display;
  const word = typeof kept.$effort === 'string' ? kept.$effort : effort;
  return {
    ...(Object.keys(thinking).length === 0 ? {} : { thinking }),
    ...(word === undefined ? {} : { effort: word }),
  };
}

/** True when the body asks for thinking of the kind that forbids sampling settings and forced tools. */
export function thinks(body: JsonObject): boolean {
  const type = isObject(body.thinking) ? body.thinking.type : undefined;
  return type === 'enabled' || type === 'adaptive';
}

/** Takes out what providers refuse beside thinking: sampling that is not at rest, and a forced tool. */
export function makeRoomForThinking(body: MutableObject, lose: (path: string) => void): void {
  const remove = (field: string, path: string): void => {
    delete body[field];
    lose(path);
  };
  if (typeof body.temperature === 'number' && body.temperature !== 1)
    remove('temperature', 'settings.temperature');
  if (typeof body.top_p === 'number' && body.top_p < 0.95) remove('top_p', 'settings.topP');
  if (typeof body.top_k === 'number') remove('top_k', 'settings.topK');
  const choice = body.tool_choice;
  if (isObject(choice) && (choice.type === 'any' || choice.type === 'tool')) {
    const { name: _, ...rest } = choice;
    body.tool_choice = { ...rest, type: 'auto' };
    lose('tool_choice');
  }
}

/**
 * True when the history forbids thinking for this turn: it ends with words put into the model's mouth, or (for `enabled`) inside a tool
 * loop whose assistant turn does not begin with a thinking block that the provider would know again.
 */
export function historyForbidsThinking(body: JsonObject): boolean {
  const turns = listOf(body.messages).filter(
    (message): message is JsonObject => isObject(message) && message.role !== 'system',
  );
  const last = turns.at(-1);
  if (last?.role === 'assistant') return true;
  if (!isObject(body.thinking) || body.thinking.type !== 'enabled' || !has(last, 'tool_result')) return false;
  const before = turns.at(-2);
  return has(before, 'tool_use') && !/^(redacted_)?thinking$/.test(firstType(before));
}

function has(message: JsonObject | undefined, type: string): boolean {
  return blocksOf(message).some((block) => isObject(block) && block.type === type);
}

function firstType(message: JsonObject | undefined): string {
  const first = blocksOf(message)[0];
  return isObject(first) && typeof first.type === 'string' ? first.type : '';
}

function blocksOf(message: JsonObject | undefined): readonly JsonValue[] {
  const content = message?.content;
  return listOf(content);
}
