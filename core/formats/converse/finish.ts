/** Maps `stopReason` of Converse to neutral finish reasons, and back. */
import type { FinishReason } from '../../model/event.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** The provider's stop reason → neutral reason. From the service model of the runtime API. */
export const reasonOfStop = lookupTable<FinishReason>({
  end_turn: 'stop',
  stop_sequence: 'stop-sequence',
  max_tokens: 'length',
  model_context_window_exceeded: 'context-window',
  tool_use: 'tool-calls',
  content_filtered: 'content-filter',
  guardrail_intervened: 'content-filter',
  malformed_model_output: 'malformed',
  malformed_tool_use: 'malformed',
});

/** Neutral reason → stop reason. */
export const stopOfReason: Readonly<Record<FinishReason, string>> = {
  stop: 'end_turn',
  'stop-sequence': 'stop_sequence',
  length: 'max_tokens',
  'context-window': 'model_context_window_exceeded',
  'tool-calls': 'tool_use',
  'content-filter': 'content_filtered',
  refusal: 'content_filtered',
  pause: 'end_turn',
  compaction: 'end_turn',
  malformed: 'malformed_model_output',
  other: 'end_turn',
};
