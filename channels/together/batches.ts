import { isObject } from 'sluice';
import { batchErrors, secondsOf, type BatchDialect } from '../_kit/batches/batch-dialect.ts';
import { withTexts } from './form-stream.ts';

/**
 * Batches of Together, whose words are in capitals and whose times are dates. Their lines name no endpoint, and their file is of another
 * purpose than elsewhere. https://docs.together.ai/reference/batch-create https://docs.together.ai/reference/upload-file
 */
export const togetherBatches: BatchDialect = {
  request: ({ input_file_id, endpoint, completion_window }) => ({
    input_file_id,
    endpoint,
    completion_window,
  }),
  answer(response) {
    // A new job comes wrapped, together with a warning.
    const job = isObject(response['job']) ? response['job'] : response;
    const { id, status, endpoint, model_id: model, error, input_file_id: input } = job;
    // The names of result files are known before the files have content.
    const isOver = status !== 'VALIDATING' && status !== 'IN_PROGRESS';
    return {
      id: id ?? null,
      object: 'batch',
      endpoint: endpoint ?? null,
      model: model ?? null,
      errors: batchErrors(error),
      input_file_id: input ?? null,
      completion_window: '24h',
      status: typeof status === 'string' ? status.toLowerCase() : 'in_progress',
      output_file_id: (isOver && job['output_file_id']) || null,
      error_file_id: (isOver && job['error_file_id']) || null,
      created_at: secondsOf(job['created_at']),
      expires_at: secondsOf(job['job_deadline']),
      completed_at: secondsOf(job['completed_at']),
      metadata: null,
    };
  },
  files(call, request, open) {
    const { upload, path, headers } = request;
    if (path !== '/files' || upload === undefined) return open(call, request);
    return open(call, {
      ...request,
      path: '/files/upload',
      upload: withTexts(upload, headers['content-type'] ?? '', {
        added: { file_name: 'batch.jsonl' },
        changed: { purpose: ['batch', 'batch-api'] },
      }),
    });
  },
};
