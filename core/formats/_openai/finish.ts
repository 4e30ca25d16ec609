/** Maps `finish_reason` of chat completions and text completions to neutral finish reasons, and back. */
import type { FinishReason, GatewayEvent } from '../../model/event.ts';
import { setOf } from '../_shared/fields.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** The provider's word → why the answer ended. Words outside this table are `other`. */
const reasons = lookupTable<FinishReason>({
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
});

/** Reads a finish reason in any case. */
export function readFinish(word: string): FinishReason {
  return reasons[word.toLowerCase()] ?? 'other';
}

/** Why an answer ended, in the family's four words. */
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

/**
 * Returns an encoder for finish reasons of a format: the provider's own value if the provider used that format, otherwise the value of this
 * family, or `stop` if the format does not have that value.
 */
export function finishWriter(format: string, official: string) {
  const known = setOf(official);
  return (event: Extract<GatewayEvent, { readonly type: 'finish' }>): string => {
    if (event.format === format && event.raw !== undefined && known.has(event.raw)) return event.raw;
    const word = words[event.reason];
    return known.has(word) ? word : 'stop';
  };
}
