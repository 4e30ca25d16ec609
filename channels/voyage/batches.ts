import type { JsonObject } from 'sluice';
import { describedFile, secondsOf, type BatchDialect } from '../_kit/batches/batch-dialect.ts';

/** The members that are times. */
const times = [
  'created_at',
  'expires_at',
  'in_progress_at',
  'finalizing_at',
  'completed_at',
  'failed_at',
  'expired_at',
  'cancelling_at',
  'cancelled_at',
];

function inSeconds(batch: JsonObject): JsonObject {
  const known = times.filter((name) => batch[name] !== undefined);
  return { ...batch, ...Object.fromEntries(known.map((name) => [name, secondsOf(batch[name])])) };
}

/**
 * Batches of Voyage, which are OpenAI's, with dates for times. The model stands in the batch, in `request_params`, and not in its lines.
 * https://docs.voyageai.com/docs/batch-inference
 */
export const voyageBatches: BatchDialect = {
  answer: inSeconds,
  files: (call, request, open) => describedFile(call, request, open, inSeconds),
};
