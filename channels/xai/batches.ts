import {
  GatewayError,
  isObject,
  type JsonObject,
  type JsonValue,
  type UpstreamRequest,
  type Call,
} from 'sluice';
import { failureLine, fileOf, resultLine } from '../_kit/batches/batch-lines.ts';
import { batchErrors, secondsOf, type BatchDialect, type Open } from '../_kit/batches/batch-dialect.ts';
import { answerOf, requestWhole, stepOf, hasSucceeded } from '../_kit/jobs/jobs.ts';

/** Results of one page. */
const pageSize = 100;

/** Default name of a batch. */
const usualName = 'sluice';

/** Returns the state of a batch. xAI reports counts and no state, and no counts until it has read the file or when it refuses it. */
function stateOf({
  state,
  cancel_time: cancelled,
  cancel_by_xai_message: refusal,
  expire_time,
}: JsonObject): string {
  const { num_requests: all, num_pending: pending } = isObject(state) ? state : {};
  const isOpen = Number(pending ?? 0) > 0;
  if (typeof refusal === 'string' && refusal !== '') return 'failed';
  if (typeof cancelled === 'string') return isOpen ? 'cancelling' : 'cancelled';
  if (Number(all ?? 0) > 0 && !isOpen) return 'completed';
  const end = secondsOf(expire_time);
  if (end !== null && end * 1000 < Date.now()) return 'expired';
  return isOpen ? 'in_progress' : 'validating';
}

const over = new Set(['completed', 'cancelled', 'expired']);

/**
 * Batches of xAI: of a file, as elsewhere; but their results are pages of a list, of which the gateway makes a file that goes by the id of
 * the batch. https://docs.x.ai/developers/advanced-api-usage/batch-api
 */
export const xaiBatches: BatchDialect = {
  cancel: ':cancel',
  request: ({ input_file_id, metadata }) => ({
    name: isObject(metadata) && typeof metadata['name'] === 'string' ? metadata['name'] : usualName,
    input_file_id,
  }),
  answer(batch) {
    const { batch_id: id = null, name, state, input_file_id: input } = batch;
    const counts = isObject(state) ? state : {};
    const status = stateOf(batch);
    const done = Number(counts['num_success'] ?? 0) + Number(counts['num_error'] ?? 0);
    return {
      id,
      object: 'batch',
      errors: batchErrors(batch['cancel_by_xai_message']),
      input_file_id: input ?? null,
      completion_window: '24h',
      status,
      output_file_id: over.has(status) && done > 0 ? id : null,
      error_file_id: null,
      created_at: secondsOf(batch['create_time']),
      expires_at: secondsOf(batch['expire_time']),
      cancelled_at: secondsOf(batch['cancel_time']),
      request_counts: {
        total: counts['num_requests'] ?? 0,
        completed: counts['num_success'] ?? 0,
        failed: Number(counts['num_error'] ?? 0) + Number(counts['num_cancelled'] ?? 0),
      },
      metadata: typeof name === 'string' && name !== '' ? { name } : null,
    };
  },
  async files(call, request, open) {
    const [, id, rest] = /^\/files\/(batch_[\w-]+)(\/content)?$/.exec(request.path) ?? [];
    if (id === undefined) return open(call, request);
    if (rest !== undefined) return resultsOf(call, request, open, id);
    // The list of results is there as long as its batch is, and nobody can remove it.
    const step = await requestWhole(call, open, stepOf(request, { path: `/batches/${id}` }));
    if (request.method === 'DELETE' || !hasSucceeded(step)) return answerOf({ ...step, status: 404 });
    return answerOf(step, {
      id,
      object: 'file',
      bytes: 0,
      created_at: secondsOf(step.body['create_time']),
      filename: `${id}.jsonl`,
      purpose: 'batch_output',
    });
  },
};

async function resultsOf(call: Call, request: UpstreamRequest, open: Open, id: string): ReturnType<Open> {
  const pageAt = (token: JsonValue | undefined) =>
    requestWhole(
      call,
      open,
      stepOf(request, {
        path: `/batches/${id}/results`,
        query: { limit: String(pageSize), ...(typeof token === 'string' ? { pagination_token: token } : {}) },
      }),
    );
  const first = await pageAt(undefined);
  if (!hasSucceeded(first)) return answerOf(first);
  let page: JsonObject = first.body;
  async function* lines(): AsyncGenerator<readonly JsonObject[]> {
    for (;;) {
      const results = Array.isArray(page['results']) ? (page['results'] as readonly JsonValue[]) : [];
      yield results.filter(isObject).map(lineOf);
      const token = page['pagination_token'];
      if (typeof token !== 'string' || token === '' || results.length === 0) return;
      const next = await pageAt(token);
      if (!hasSucceeded(next))
        throw new GatewayError('upstream_error', `A page of results returned status ${next.status}.`, {
          origin: 'upstream',
        });
      page = next.body;
    }
  }
  return fileOf(call, lines());
}

/** Returns a result line. The response is in a member with the name of its endpoint. */
function lineOf({ batch_request_id: id, batch_result: result }: JsonObject): JsonObject {
  const { response, error } = isObject(result) ? result : {};
  const reply = isObject(response) ? Object.values(response).find(isObject) : undefined;
  if (reply !== undefined) return resultLine(id, reply);
  const { code, message } = isObject(error) ? error : {};
  return failureLine(id, code ?? 'request_failed', message ?? 'There is no response to this request.');
}
