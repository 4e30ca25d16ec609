import {
  isObject,
  type JsonObject,
  type JsonValue,
  type UpstreamRequest,
  type Call,
  type Download,
} from 'sluice';
import { secondsOf, type BatchDialect, type Open } from '../_kit/batches/batch-dialect.ts';
import { answerOf, requestWhole, stepOf, hasSucceeded, type Step } from '../_kit/jobs/jobs.ts';

/** Suffix that turns the id of a batch into that of its results. */
const behind = '-results';

/**
 * Batches of SiliconFlow. Answers about files are wrapped, no file can be asked for alone, and results are at an address, which is asked
 * for when somebody wants them. https://docs.siliconflow.com/en/userguide/guides/batch
 */
export function siliconflowBatches(download: Download): BatchDialect {
  return {
    answer: (batch) => ({
      ...batch,
      status: batch['status'] === 'in_queue' ? 'validating' : (batch['status'] ?? 'in_progress'),
      output_file_id: isAddress(batch['output_file_id'])
        ? `${String(batch['id'])}${behind}`
        : (batch['output_file_id'] ?? null),
      error_file_id: isAddress(batch['error_file_id']) ? null : (batch['error_file_id'] ?? null),
    }),
    async files(call, request, open) {
      const { path, method } = request;
      const [, id = '', rest] = /^\/files\/([\w-]+)(\/content)?$/.exec(path) ?? [];
      if (path === '/files') {
        const step = await requestWhole(call, open, request);
        return hasSucceeded(step) ? answerOf(step, fileOf(unwrapped(step.body))) : answerOf(step);
      }
      if (id.endsWith(behind))
        return ofResults(call, request, open, { id: id.slice(0, -behind.length), wants: rest, download });
      return rest === undefined && method === 'GET' ? listed(call, request, open, id) : open(call, request);
    },
  };
}

const isAddress = (value: JsonValue | undefined): value is string =>
  typeof value === 'string' && /^https?:\/\//.test(value);

function unwrapped(body: JsonObject): JsonObject {
  return isObject(body['data']) ? body['data'] : body;
}

function fileOf({ createdAt, created_at: created = createdAt, ...rest }: JsonObject): JsonObject {
  return { ...rest, created_at: secondsOf(created) };
}

/** Returns a file of the account's, found in the list of all. */
async function listed(call: Call, request: UpstreamRequest, open: Open, id: string): ReturnType<Open> {
  const list = stepOf(request, { path: '/files', query: { purpose: 'batch', limit: '10000' } });
  const step = await requestWhole(call, open, list);
  if (!hasSucceeded(step)) return answerOf(step);
  const { data } = unwrapped(step.body);
  const all: readonly JsonValue[] = Array.isArray(data) ? data : [];
  const file = all.filter(isObject).find((one) => one['id'] === id);
  return file === undefined ? notThere(step) : answerOf(step, fileOf(file));
}

async function ofResults(
  call: Call,
  request: UpstreamRequest,
  open: Open,
  {
    id,
    wants,
    download,
  }: { readonly id: string; readonly wants: string | undefined; readonly download: Download },
): ReturnType<Open> {
  const step = await requestWhole(call, open, stepOf(request, { path: `/batches/${id}` }));
  if (!hasSucceeded(step)) return answerOf(step);
  const address = step.body['output_file_id'];
  if (!isAddress(address) || request.method === 'DELETE') return notThere(step);
  if (wants !== undefined) return download(call, address);
  return answerOf(step, {
    id: id + behind,
    object: 'file',
    bytes: 0,
    created_at: secondsOf(step.body['completed_at']),
    filename: `${id}.jsonl`,
    purpose: 'batch_output',
  });
}

const notThere = (step: Step) =>
  answerOf({ ...step, status: 404 }, { error: { message: 'Unknown file.', code: 'not_found' } });
