/** Translates the batch and file API of chat completions into datasets and batch inference jobs of Fireworks. */
import { randomUUID } from 'node:crypto';
import {
  GatewayError,
  isObject,
  parseObject,
  type JsonObject,
  type JsonValue,
  type UpstreamRequest,
  type Call,
  type Download,
} from 'sluice';
import { lookupTable } from 'sluice/channel-kit';
import { eachLine, resultLine } from '../_kit/batches/batch-lines.ts';
import { batchErrors, secondsOf, type Open } from '../_kit/batches/batch-dialect.ts';
import { answerOf, requestWhole, stepOf, hasSucceeded } from '../_kit/jobs/jobs.ts';

/** States of jobs as those of batches. All other states are `in_progress`. */
const states = lookupTable<string>({
  JOB_STATE_UNSPECIFIED: 'validating',
  JOB_STATE_VALIDATING: 'validating',
  JOB_STATE_WRITING_RESULTS: 'finalizing',
  JOB_STATE_COMPLETED: 'completed',
  JOB_STATE_FAILED: 'failed',
  JOB_STATE_EXPIRED: 'expired',
  JOB_STATE_EARLY_STOPPED: 'expired',
  JOB_STATE_CANCELLING: 'cancelling',
  JOB_STATE_CANCELLED: 'cancelled',
  JOB_STATE_DELETING: 'cancelled',
  JOB_STATE_DELETING_CLEANING_UP: 'cancelled',
});

/** The states in which there is something in its results. */
const hasResults = new Set(['completed', 'expired', 'cancelled']);

/** Name of an account, and functions that send requests for it. */
export interface FireworksAccount {
  /** The name of the account. */
  readonly account: string;
  /** Sends a request to the API of its models. */
  readonly open: Open;
  /** Sends one to what belongs to the account: paths begin behind its name. */
  readonly own: Open;
  readonly download: Download;
}

/**
 * Returns a function that sends requests for files and batches as requests for datasets and jobs, and all others unchanged. A job names the
 * model of its lines. It cannot be cancelled, because deleting it discards its results. https://docs.fireworks.ai/guides/batch-inference
 * https://docs.fireworks.ai/api-reference/create-batch-inference-job https://docs.fireworks.ai/api-reference/upload-dataset-files
 */
export function fireworksBatches({ account, open, own, download }: FireworksAccount): Open {
  return async (call, request) => {
    if (request.operation !== 'state') return open(call, request);
    const [, kind, id, rest] = /^\/(files|batches)(?:\/([\w-]+)(?:\/(\w+))?)?$/.exec(request.path) ?? [];
    if (kind === 'batches') return jobs(call, request, own, { account, id, rest });
    if (kind !== 'files') return open(call, request);
    if (id === undefined) return uploaded(call, request, own);
    if (rest === 'content') return content(call, request, own, { id, download });
    const step = await requestWhole(call, own, { ...request, path: `/datasets/${id}` });
    if (!hasSucceeded(step)) return answerOf(step);
    return answerOf(
      step,
      request.method === 'DELETE' ? { id, object: 'file', deleted: true } : fileOf(id, step.body),
    );
  };
}

function fileOf(id: string, { createTime, created_at: created, bytes, filename }: JsonObject): JsonObject {
  return {
    id,
    object: 'file',
    bytes: bytes ?? null,
    created_at: secondsOf(created ?? createTime),
    filename: filename ?? `${id}.jsonl`,
    purpose: 'batch',
  };
}

/** Creates a dataset, and uploads its file. */
async function uploaded(call: Call, request: UpstreamRequest, own: Open): ReturnType<Open> {
  const id = `sluice-${randomUUID()}`;
  const dataset = {
    datasetId: id,
    // The number is required and not verified; the number of lines is not known yet.
    dataset: { userUploaded: {}, exampleCount: '1' },
  };
  const made = await requestWhole(
    call,
    own,
    stepOf(request, { path: '/datasets', body: JSON.stringify(dataset) }),
  );
  if (!hasSucceeded(made)) return answerOf(made);
  const step = await requestWhole(call, own, { ...request, path: `/datasets/${id}:upload` });
  return hasSucceeded(step) ? answerOf(step, fileOf(id, step.body)) : answerOf(step);
}

/** Returns the lines of a dataset. They are in one of its files, whose address is requested first; failed requests are in another file. */
async function content(
  call: Call,
  request: UpstreamRequest,
  own: Open,
  { id, download }: { readonly id: string; readonly download: Download },
): ReturnType<Open> {
  const step = await requestWhole(
    call,
    own,
    stepOf(request, { path: `/datasets/${id}:getDownloadEndpoint` }),
  );
  if (!hasSucceeded(step)) return answerOf(step);
  const { filenameToSignedUrls: addresses } = step.body;
  const files = Object.entries(isObject(addresses) ? addresses : {});
  const [, address] = files.find(([name]) => /(?<!error[^/]*)\.jsonl$/.test(name)) ?? [];
  if (typeof address !== 'string')
    throw new GatewayError('upstream_error', 'The upstream has no file of results.', { origin: 'upstream' });
  return eachLine(await download(call, address), (line) => {
    const { custom_id: name, response } = line;
    return isObject(response) && response['choices'] !== undefined ? resultLine(name, response) : line;
  });
}

async function jobs(
  call: Call,
  request: UpstreamRequest,
  own: Open,
  {
    account,
    id,
    rest,
  }: {
    readonly account: string;
    readonly id: string | undefined;
    readonly rest: string | undefined;
  },
): ReturnType<Open> {
  if (rest === 'cancel')
    throw new GatewayError('invalid_request', 'Batches of this provider cannot be cancelled.');
  const parsed = id === undefined && typeof request.body === 'string' ? parseObject(request.body) : undefined;
  const step = await requestWhole(call, own, {
    ...request,
    path: `/batchInferenceJobs${id === undefined ? '' : `/${id}`}`,
    ...(parsed === undefined ? {} : { body: JSON.stringify(jobOf(account, parsed)) }),
  });
  return hasSucceeded(step) ? answerOf(step, batchOf(step.body)) : answerOf(step);
}

function jobOf(account: string, { input_file_id: file, model }: JsonObject): JsonObject {
  return { model, inputDatasetId: `accounts/${account}/datasets/${String(file)}` };
}

/** Returns the last segment of a name such as `accounts/mine/datasets/one`. */
const idIn = (name: JsonValue | undefined): string | null =>
  typeof name === 'string' && name !== '' ? name.slice(name.lastIndexOf('/') + 1) : null;

function batchOf(job: JsonObject): JsonObject {
  const { jobProgress, status: verdict, lifecycle } = job;
  const status = states[String(job['state'])] ?? 'in_progress';
  const progress = isObject(jobProgress) ? jobProgress : {};
  const count = (name: string): number => Number(progress[name] ?? 0);
  const isEmpty = count('totalProcessedRequests') === 0 && status !== 'completed';
  return {
    id: idIn(job['name']),
    object: 'batch',
    endpoint: '/v1/chat/completions',
    model: job['model'] ?? null,
    errors: status === 'failed' && isObject(verdict) ? batchErrors(verdict['message']) : null,
    input_file_id: idIn(job['inputDatasetId']),
    completion_window: '24h',
    status,
    output_file_id: hasResults.has(status) && !isEmpty ? idIn(job['outputDatasetId']) : null,
    error_file_id: null,
    created_at: secondsOf(job['createTime']),
    expires_at: secondsOf(job['expireTime']),
    completed_at: secondsOf(isObject(lifecycle) ? (lifecycle['endTime'] ?? undefined) : undefined),
    request_counts: {
      total: Math.max(count('totalInputRequests'), count('totalProcessedRequests')),
      completed: count('successfullyProcessedRequests'),
      failed: count('failedRequests'),
    },
    metadata: null,
  };
}
