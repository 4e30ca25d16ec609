/** Maps `finishReason` of generateContent to neutral finish reasons, and back, and recognizes the last frame of a stream. */
import type { FinishReason } from '../../model/event.ts';
import { parseJson } from '../../json/parse.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { Frame } from '../../sdk/format.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** Neutral reasons by the provider's words; all other words are `other`. */
const reasons = lookupTable<FinishReason>({
  STOP: 'stop',
  MAX_TOKENS: 'length',
  SAFETY: 'content-filter',
  RECITATION: 'content-filter',
  LANGUAGE: 'content-filter',
  BLOCKLIST: 'content-filter',
  PROHIBITED_CONTENT: 'content-filter',
  SPII: 'content-filter',
  IMAGE_SAFETY: 'content-filter',
  IMAGE_PROHIBITED_CONTENT: 'content-filter',
  IMAGE_RECITATION: 'content-filter',
  MALFORMED_FUNCTION_CALL: 'malformed',
  UNEXPECTED_TOOL_CALL: 'malformed',
  TOO_MANY_TOOL_CALLS: 'malformed',
  MALFORMED_RESPONSE: 'malformed',
  MISSING_THOUGHT_SIGNATURE: 'malformed',
  CONTINUATION: 'pause',
});

/** Returns the `finishReason` of a candidate; undefined for the empty or unspecified one that some providers write in every chunk. */
export function reasonIn({ finishReason: word }: JsonObject): string | undefined {
  return typeof word === 'string' && word !== '' && word !== 'FINISH_REASON_UNSPECIFIED' ? word : undefined;
}

/** Returns true for a frame with the finish reason of a candidate, or with the reason for a missing candidate. */
export function endsStream({ data }: Frame): boolean {
  let value: unknown;
  try {
    value = parseJson(data);
  } catch {
    return false;
  }
  return (Array.isArray(value) ? value : [value]).some(
    (chunk) =>
      isObject(chunk) &&
      ((Array.isArray(chunk.candidates) &&
        chunk.candidates.some((candidate) => isObject(candidate) && reasonIn(candidate) !== undefined)) ||
        (isObject(chunk.promptFeedback) && typeof chunk.promptFeedback.blockReason === 'string')),
  );
}

/** Decodes a finish reason. `STOP` after function calls is `tool-calls`, because the format has no word for that. */
export function readFinish(word: string, called: boolean): FinishReason {
  const reason = reasons[word] ?? 'other';
  return reason === 'stop' && called ? 'tool-calls' : reason;
}

const words: Readonly<Record<FinishReason, string>> = {
  stop: 'STOP',
  'stop-sequence': 'STOP',
  length: 'MAX_TOKENS',
  'context-window': 'MAX_TOKENS',
  'tool-calls': 'STOP',
  'content-filter': 'SAFETY',
  refusal: 'SAFETY',
  pause: 'STOP',
  compaction: 'STOP',
  malformed: 'MALFORMED_FUNCTION_CALL',
  other: 'OTHER',
};

/** Returns the word for a reason of another format. */
export function writeFinish(reason: FinishReason): string {
  return words[reason];
}
