import type { FinishReason } from '../../model/event.ts';
import type { Extra } from '../../model/extra.ts';
import type { JsonObject } from '../../model/json.ts';

/** The name of this format, in `extra`, usage and losses. */
export const formatName = 'text-completions';

/** Where requests go, below the provider's base URL. */
export const completionsPath = '/completions';

/** Most answers that one reply may hold: 128 for each of several prompts. */
export const mostChoices = 4096;

/** The provider's word → why the answer ended. Words outside this table are `other`. */
const reasons: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  length: 'length',
  content_filter: 'content-filter',
  // Seen at providers of this dialect.
  max_tokens: 'length',
  eos: 'stop',
  eos_token: 'stop',
  stop_sequence: 'stop-sequence',
};

/** Reads a finish reason in any case. */
export function readFinish(word: string): FinishReason {
  return reasons[word.toLowerCase()] ?? 'other';
}

/** Why an answer ended, in this format's three words. */
const words: Readonly<Record<FinishReason, string>> = {
  stop: 'stop',
  'stop-sequence': 'stop',
  length: 'length',
  'context-window': 'length',
  'tool-calls': 'stop',
  'content-filter': 'content_filter',
  refusal: 'content_filter',
  pause: 'stop',
  compaction: 'stop',
  malformed: 'stop',
  other: 'stop',
};

/** The official word for a finish reason; the provider's own where it is one of the three. */
export function writeFinish(reason: FinishReason, word?: string): string {
  return word === 'stop' || word === 'length' || word === 'content_filter' ? word : words[reason];
}

const nothing: JsonObject = {};

/** What this format alone knows of a piece: its own entry of `extra`, empty when there is none. */
export function own(piece: { readonly extra?: Extra | undefined } | undefined): JsonObject {
  return piece?.extra?.[formatName] ?? nothing;
}
