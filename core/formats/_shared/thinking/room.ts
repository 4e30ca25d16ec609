/**
 * Removes settings that providers refuse beside `thinking` (`temperature`, `top_p`, `top_k`), and detects histories with which thinking
 * cannot be enabled.
 */
import type { ChatSettings } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../../model/json.ts';
import { objectsOf } from '../fields.ts';
import { removeAt, valueAt, type SettingRow } from '../settings.ts';

/** Functions by which a format finds thinking, and what thinking depends on, in a request. */
export interface ThinkingWords {
  readonly rows: readonly SettingRow[];
  /** Returns the `thinking` object of a request. */
  readonly thinkingIn: (body: JsonObject) => JsonValue | undefined;
  readonly isResult: (block: JsonObject) => boolean;
  readonly isCall: (block: JsonObject) => boolean;
  /** Reasoning that its provider would know again. */
  readonly isThought: (block: JsonObject) => boolean;
}

/** Returns true for thinking of the kind that forbids sampling settings. */
export function thinks(thinking: JsonValue | undefined): boolean {
  return isObject(thinking) && (thinking.type === 'enabled' || thinking.type === 'adaptive');
}

/** Sampling settings with values that providers refuse beside thinking. */
const refused: { readonly [Name in keyof ChatSettings]?: (value: number) => boolean } = {
  temperature: (value) => value !== 1,
  topP: (value) => value < 0.95,
  topK: () => true,
};

/** Takes out what providers refuse beside thinking, and reports it. */
export function makeRoomForThinking(
  body: MutableObject,
  words: ThinkingWords,
  drop: (path: string) => void,
): void {
  for (const { name, path } of words.rows) {
    const isRefused = refused[name];
    const value = isRefused === undefined ? undefined : valueAt(body, path);
    if (typeof value !== 'number' || isRefused?.(value) !== true) continue;
    removeAt(body, path);
    drop(`settings.${name}`);
  }
}

/**
 * Returns true when the history forbids thinking for this turn: it ends with a prefilled assistant turn, or (for `enabled`) inside a tool
 * loop whose assistant turn does not begin with reasoning that the provider would know again.
 */
export function historyForbidsThinking(body: JsonObject, words: ThinkingWords): boolean {
  const turns = objectsOf(body.messages).filter(({ role }) => role !== 'system');
  const last = turns.at(-1);
  if (last?.role === 'assistant') return true;
  const thinking = words.thinkingIn(body);
  if (!isObject(thinking) || thinking.type !== 'enabled') return false;
  if (!objectsOf(last?.content).some(words.isResult)) return false;
  const before = objectsOf(turns.at(-2)?.content);
  return before.some(words.isCall) && !before.slice(0, 1).some(words.isThought);
}
