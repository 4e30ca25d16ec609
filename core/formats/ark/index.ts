/** The ark format of Volcengine for videos: `/api/v3/contents/generations/tasks`, and the tasks made there. */
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { lookupTable } from '../../model/lookup-table.ts';
import type { VideoReport } from '../../model/video.ts';
import type { Format, ReplyContext } from '../../sdk/format.ts';
import { requiredModel } from '../_shared/check.ts';
import { defined, isText, stringIn } from '../_shared/fields.ts';
import { createdOf, defineVideoCodecs, modelOf, noTask, videoStates } from '../_shared/video-codec.ts';
import { videoError } from '../_shared/video-report.ts';
import { videoErrors } from '../_shared/video-table.ts';
import { decode, encode, name, onlyNative, tasksPath, words } from './request.ts';

/** Older words included. A task that took too long has failed. */
const states = videoStates({
  queued: ['queued', 'pending'],
  in_progress: ['running', 'processing'],
  completed: ['succeeded'],
  failed: ['failed', 'expired'],
  cancelled: ['cancelled'],
});

/** Types and codes of errors, by status. */
const kinds = lookupTable<readonly [type: string, code: string]>({
  400: ['BadRequest', 'InvalidParameter'],
  401: ['Unauthorized', 'AuthenticationError'],
  403: ['Forbidden', 'AccessDenied'],
  404: ['NotFound', 'ResourceNotFound'],
  409: ['BadRequest', 'OperationDenied'],
  413: ['BadRequest', 'InvalidParameter'],
  429: ['TooManyRequests', 'RateLimitExceeded'],
  503: ['ServiceUnavailable', 'ServerOverloaded'],
});

/** Codes of errors, by code of the gateway. */
const codes = lookupTable<string>({
  missing_required_parameter: 'MissingParameter',
  content_policy_violation: 'InputTextSensitiveContentDetected',
  insufficient_quota: 'QuotaExceeded',
});

/** Decodes the state of a task. The response to a new task has only its id. */
function readReport({ id, status, content, error, duration }: JsonObject): VideoReport {
  if (!isText(id)) throw noTask();
  const state = status === undefined ? 'queued' : states.read(status);
  const { video_url: url, last_frame_url: frame } = isObject(content) ? content : {};
  return {
    id,
    state,
    ...defined({
      url: stringIn(url),
      thumbnailUrl: stringIn(frame),
      seconds: typeof duration === 'number' && duration > 0 ? duration : undefined,
      error: state === 'failed' ? failureIn(error, status) : undefined,
    }),
  };
}

function failureIn(
  error: JsonValue | undefined,
  status: JsonValue | undefined,
): NonNullable<VideoReport['error']> {
  if (status === 'expired') return { code: 'expired', message: 'The task has expired at the provider.' };
  const { code, message } = isObject(error) ? error : {};
  return videoError(isText(code) ? code : undefined, message);
}

function writeStatus(report: VideoReport, context: ReplyContext): JsonObject {
  const { id, state = 'queued', error, url, thumbnailUrl, seconds, task } = report;
  const createdAt = createdOf(report, context);
  return {
    id,
    model: modelOf(report, context),
    status: states.write(state),
    error: error === undefined || state === 'cancelled' ? null : { code: error.code, message: error.message },
    created_at: createdAt,
    updated_at: task === undefined ? createdAt : Math.floor(task.updatedAt / 1000),
    ...(url === undefined
      ? {}
      : { content: { video_url: url, ...defined({ last_frame_url: thumbnailUrl }) } }),
    ...defined({ duration: seconds }),
  };
}

const ark: Format = {
  name,
  routes: [{ method: 'POST', path: `/api/v3${tasksPath}`, operation: 'create-video' }],
  codecs: defineVideoCodecs({
    format: name,
    words,
    model: ({ model }) => requiredModel(model),
    decode,
    encode,
    onlyNative,
    readReport,
    writeSubmitted: ({ id }) => ({ id }),
    writeStatus,
    ask: ({ id }) => ({ path: `${tasksPath}/${encodeURIComponent(id)}`, method: 'GET', body: {} }),
    cancel: ({ id }) => ({ path: `${tasksPath}/${encodeURIComponent(id)}`, method: 'DELETE', body: {} }),
  }),
  ...videoErrors(({ code, status, message, param = '' }) => {
    const [type, general] =
      kinds[status] ??
      (status < 500 ? ['BadRequest', 'InvalidParameter'] : ['InternalServerError', 'InternalServiceError']);
    return { error: { code: codes[code] ?? general, message, param, type } };
  }),
};

/** The ark format. */
export default ark;
