import type { GatewayError } from '../../sdk/errors.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { VideoReport } from '../../model/video.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { upstreamError } from '../_shared/upstream-error/index.ts';
import { noTask } from '../_shared/video-codec.ts';
import { contentRefused, videoError } from '../_shared/video-report.ts';
import { readState, stateWords } from './wire.ts';

/** What the provider says of a task. Throws GatewayError when its `code` says that it refuses. */
export function readReport(body: JsonObject): VideoReport {
  if (body.code !== 0 && body.code !== undefined) throw refusalOf(body);
  const { data } = body;
  if (!isObject(data) || typeof data.task_id !== 'string') throw noTask();
  const state = readState(data.task_status);
  const video = videoIn(data);
  const reason = data.task_status_msg;
  const seconds = Number(video?.duration ?? Number.NaN);
  return {
    id: data.task_id,
    state,
    ...(typeof video?.url === 'string' ? { url: video.url } : {}),
    ...(seconds > 0 ? { seconds } : {}),
    ...(state === 'failed' ? { error: videoError(undefined, reason === '' ? undefined : reason) } : {}),
  };
}

function videoIn({ task_result: result }: JsonObject): JsonObject | undefined {
  const videos = isObject(result) ? result.videos : undefined;
  const first: unknown = Array.isArray(videos) ? videos[0] : undefined;
  return isObject(first) ? first : undefined;
}

/** Codes whose meaning is not that of the request being wrong. */
const statuses: readonly (readonly [from: number, to: number, status: number])[] = [
  [1000, 1004, 401],
  [1100, 1102, 402],
  [1103, 1103, 403],
  [1200, 1299, 400],
  [1302, 1303, 429],
  [1304, 1304, 403],
  [5000, 5000, 500],
  [5001, 5001, 503],
  [5002, 5002, 504],
];

function refusalOf({ code, message }: JsonObject): GatewayError {
  const text = typeof message === 'string' ? message : '';
  if (code === 1300 || code === 1301) return contentRefused(text);
  const number = typeof code === 'number' ? code : 0;
  const [, , status = 500] = statuses.find(([from, to]) => number >= from && number <= to) ?? [];
  return upstreamError(status, JSON.stringify({ message: text }));
}

/** The answer to who has made a task. */
export function writeSubmitted(report: VideoReport, context: ReplyContext): JsonObject {
  return { code: 0, message: 'SUCCEED', request_id: context.requestId, data: writeTask(report, context) };
}

function writeTask(report: VideoReport, context: ReplyContext): JsonObject {
  const { id, state = 'queued', error, url, seconds, task } = report;
  const at = context.created * 1000;
  return {
    task_id: id,
    task_status: stateWords[state],
    ...(error === undefined ? {} : { task_status_msg: error.message }),
    created_at: task?.createdAt ?? at,
    updated_at: task?.updatedAt ?? at,
    ...(url === undefined
      ? {}
      : {
          task_result: {
            videos: [{ id, url, ...(seconds === undefined ? {} : { duration: String(seconds) }) }],
          },
        }),
  };
}
