import { isObject, type JsonObject } from '../../model/json.ts';
import type { VideoReport } from '../../model/video.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { createdOf, modelOf, noTask } from '../_shared/video-codec.ts';
import { videoError } from '../_shared/video-report.ts';
import { readState, stateWords } from './wire.ts';

/** What the provider says of a task; when it is made, only its id. */
export function readReport(body: JsonObject): VideoReport {
  const { id, status, content, error, duration } = body;
  if (typeof id !== 'string' || id === '') throw noTask();
  const state = status === undefined ? 'queued' : readState(status);
  const { video_url: url, last_frame_url: frame } = isObject(content) ? content : {};
  return {
    id,
    state,
    ...(typeof url === 'string' ? { url } : {}),
    ...(typeof frame === 'string' ? { thumbnailUrl: frame } : {}),
    ...(typeof duration === 'number' && duration > 0 ? { seconds: duration } : {}),
    ...(state === 'failed' ? { error: failureIn(error, status) } : {}),
  };
}

function failureIn(error: JsonObject[string], status: JsonObject[string]): NonNullable<VideoReport['error']> {
  const { code, message } = isObject(error) ? error : {};
  if (status === 'expired') return { code: 'expired', message: 'The provider gave up on the task.' };
  return videoError(typeof code === 'string' && code !== '' ? code : undefined, message);
}

/** The answer to who has made a task. */
export function writeSubmitted({ id }: VideoReport): JsonObject {
  return { id };
}

/** The answer to who asks for a task. */
export function writeStatus(report: VideoReport, context: ReplyContext): JsonObject {
  const { id, state = 'queued', error, url, thumbnailUrl, seconds, task } = report;
  const createdAt = createdOf(report, context);
  return {
    id,
    model: modelOf(report, context),
    status: stateWords[state],
    error: error === undefined || state === 'cancelled' ? null : { code: error.code, message: error.message },
    created_at: createdAt,
    updated_at: task === undefined ? createdAt : Math.floor(task.updatedAt / 1000),
    ...(url === undefined
      ? {}
      : {
          content: {
            video_url: url,
            ...(thumbnailUrl === undefined ? {} : { last_frame_url: thumbnailUrl }),
          },
        }),
    ...(seconds === undefined ? {} : { duration: seconds }),
  };
}
