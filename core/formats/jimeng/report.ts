import type { GatewayError } from '../../sdk/errors.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { VideoReport } from '../../model/video.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { upstreamError } from '../_shared/upstream-error/index.ts';
import { noTask } from '../_shared/video-codec.ts';
import { contentRefused } from '../_shared/video-report.ts';
import { readState, soundCode, stateWords } from './wire.ts';

/** What the provider says of a task. Throws GatewayError when its `code` says that it refuses. */
export function readReport(body: JsonObject): VideoReport {
  if (body.code !== soundCode) throw refusalOf(body);
  const { data } = body;
  if (!isObject(data)) throw noTask();
  const state = data.status === undefined ? 'queued' : readState(data.status);
  const id = typeof data.task_id === 'string' ? data.task_id : '';
  if (id === '' && data.status === undefined) throw noTask();
  const { video_url: url } = data;
  return {
    id,
    state,
    ...(typeof url === 'string' && url !== '' ? { url } : {}),
    ...(state === 'failed'
      ? {
          error: {
            code: String(data.status),
            message: `The provider says that the task is ${String(data.status)}.`,
          },
        }
      : {}),
  };
}

/** Reviews of what goes in and of what comes out. */
function isPolicy(code: number): boolean {
  return (code >= 50_411 && code <= 50_413) || (code >= 50_511 && code <= 50_519);
}

function refusalOf({ code, message }: JsonObject): GatewayError {
  const number = typeof code === 'number' ? code : 0;
  const text = typeof message === 'string' ? message : '';
  if (isPolicy(number)) return contentRefused(text);
  const status =
    number === 50_429 || number === 50_430
      ? 429
      : number === 50_400
        ? 403
        : number >= 50_200 && number < 50_300
          ? 400
          : 500;
  return upstreamError(status, JSON.stringify({ message: text }));
}

function sound(context: ReplyContext, data: JsonObject): JsonObject {
  return {
    code: soundCode,
    data,
    message: 'Success',
    request_id: context.requestId,
    status: soundCode,
    time_elapsed: '0ms',
  };
}

/** The answer to who has made a task. */
export function writeSubmitted({ id }: VideoReport, context: ReplyContext): JsonObject {
  return sound(context, { task_id: id });
}

/** The answer to who asks for a task: a failure is told by its code. */
export function writeStatus(report: VideoReport, context: ReplyContext): JsonObject {
  const { state = 'queued', error, url } = report;
  const word = stateWords[state];
  if (word === undefined) {
    const told = Number(error?.code);
    const code = error?.code === 'content_policy_violation' ? 50_511 : isPolicy(told) ? told : 50_500;
    return {
      code,
      data: null,
      message: error?.message ?? 'The video could not be made.',
      request_id: context.requestId,
      status: code,
      time_elapsed: '0ms',
    };
  }
  return sound(context, {
    status: word,
    video_url: url ?? '',
    binary_data_base64: [],
    image_urls: null,
    resp_data: '',
  });
}
