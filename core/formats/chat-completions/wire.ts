import type { FinishReason } from '../../model/event.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';

/** The name of this format, in `extra`, proofs, usage and losses. */
export const formatName = 'chat-completions';

/** The prefix of a reply's id. */
export const idPrefix = 'chatcmpl-';

/** Most blocks, tool calls or choices that one reply may hold. */
export const mostBlocks = 1024;

/** The provider's word → why the answer ended. Words outside this table are `other`. */
const reasons: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool-calls',
  content_filter: 'content-filter',
  function_call: 'tool-calls',
  // Seen at providers of this dialect.
  max_tokens: 'length',
  model_length: 'length',
  insufficient_system_resource: 'length',
  eos: 'stop',
  eos_token: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop-sequence',
  tool_use: 'tool-calls',
  safety: 'content-filter',
  sensitive: 'content-filter',
};

/** Reads a finish reason in any case. */
export function readFinish(word: string): FinishReason {
  return reasons[word.toLowerCase()] ?? 'other';
}

/** Why an answer ended, in this format's four words. */
const words: Readonly<Record<FinishReason, string>> = {
  stop: 'stop',
  'stop-sequence': 'stop',
  length: 'length',
  'context-window': 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
  refusal: 'content_filter',
  pause: 'stop',
  compaction: 'stop',
  malformed: 'stop',
  other: 'stop',
};

/** The official word for a finish reason. */
export function writeFinish(reason: FinishReason): string {
  return words[reason];
}

/** True for the words that clients of this format know. */
export function isOfficialFinish(word: string): boolean {
  return (
    word === 'stop' ||
    word === 'length' ||
    word === 'tool_calls' ||
    word === 'content_filter' ||
    word === 'function_call'
  );
}

/** Equality of two JSON values, whatever the order of keys. Beyond a depth of 40 the answer is no: it is only used to leave out what can be rebuilt. */
export function sameJson(left: JsonValue | undefined, right: JsonValue | undefined, depth = 40): boolean {
  if (left === right) return true;
  if (depth === 0 || typeof left !== 'object' || typeof right !== 'object' || left === null || right === null)
    return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => sameJson(item as JsonValue, right[index] as JsonValue, depth - 1));
  }
  const first = left as JsonObject;
  const second = right as JsonObject;
  const keys = Object.keys(first);
  if (keys.length !== Object.keys(second).length) return false;
  return keys.every((key) => key in second && sameJson(first[key], second[key], depth - 1));
}
