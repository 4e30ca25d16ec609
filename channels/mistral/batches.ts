import type { JsonValue } from 'sluice';
import type { BatchDialect } from '../_kit/batches/batch-dialect.ts';

/** States of batches in chat completions, by the state of Mistral's job. */
const states: Readonly<Record<string, string>> = {
  QUEUED: 'validating',
  RUNNING: 'in_progress',
  SUCCESS: 'completed',
  FAILED: 'failed',
  TIMEOUT_EXCEEDED: 'expired',
  CANCELLATION_REQUESTED: 'cancelling',
  CANCELLED: 'cancelled',
};

const orNull = (value: JsonValue | undefined): JsonValue => value ?? null;

/** Batch jobs, whose results are lines as in chat completions. https://docs.mistral.ai/api/endpoint/batch */
export const mistralBatches: BatchDialect = {
  path: '/batch/jobs',
  request({ input_file_id: file, completion_window: window, ...rest }) {
    const hours = typeof window === 'string' ? /^(\d{1,3})h$/.exec(window)?.[1] : undefined;
    return {
      ...rest,
      input_files: [orNull(file)],
      ...(hours === undefined ? {} : { timeout_hours: Number(hours) }),
    };
  },
  answer(job) {
    const { id, endpoint, model, metadata, errors, status, created_at, started_at, completed_at } = job;
    const [input] = Array.isArray(job['input_files']) ? (job['input_files'] as readonly JsonValue[]) : [];
    return {
      id: orNull(id),
      object: 'batch',
      endpoint: orNull(endpoint),
      model: orNull(model),
      errors: Array.isArray(errors) && errors.length > 0 ? { object: 'list', data: errors } : null,
      input_file_id: orNull(input),
      completion_window: '24h',
      status: stateOf(String(status)),
      output_file_id: orNull(job['output_file']),
      error_file_id: orNull(job['error_file']),
      created_at: orNull(created_at),
      in_progress_at: orNull(started_at),
      completed_at: orNull(completed_at),
      request_counts: {
        total: orNull(job['total_requests']),
        completed: orNull(job['succeeded_requests']),
        failed: orNull(job['failed_requests']),
      },
      metadata: orNull(metadata),
    };
  },
};

/** Returns a batch's state in chat completions; one that is not known yet is of a batch that runs. */
function stateOf(status: string): string {
  return (Object.hasOwn(states, status) ? states[status] : undefined) ?? 'in_progress';
}
