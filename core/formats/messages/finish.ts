/** Maps `stop_reason` of Messages to neutral finish reasons, and back. */
import type { FinishReason } from '../../model/event.ts';
import { lookupTable } from '../../model/lookup-table.ts';

/** Provider's stop reason → neutral reason. */
export const reasonOfStop = lookupTable<FinishReason>({
  end_turn: 'stop',
  stop_sequence: 'stop-sequence',
  max_tokens: 'length',
  model_context_window_exceeded: 'context-window',
  tool_use: 'tool-calls',
  pause_turn: 'pause',
  refusal: 'refusal',
  compaction: 'compaction',
});

/** Neutral reason → stop reason. */
export const stopOfReason: Readonly<Record<FinishReason, string>> = {
  stop: 'end_turn',
  'stop-sequence': 'stop_sequence',
  length: 'max_tokens',
  'context-window': 'model_context_window_exceeded',
  'tool-calls': 'tool_use',
  'content-filter': 'refusal',
  refusal: 'refusal',
  pause: 'pause_turn',
  compaction: 'compaction',
  malformed: 'end_turn',
  other: 'end_turn',
};
