import { isObject, type JsonObject } from '../../model/json.ts';
import type { VideoReport } from '../../model/video.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { createdOf, modelOf, noTask } from '../_shared/video-codec.ts';
import { videoError } from '../_shared/video-report.ts';
import { readState, stateWords } from './wire.ts';

/** What a provider says of a video. Throws when it names none. */
export function readReport(body: JsonObject): VideoReport {
  const id = [body.id, body.task_id].find((value) => typeof value === 'string' && value !== '');
  if (typeof id !== 'string') throw noTask();
  const { progress, size, seconds, expires_at: expires } = body;
  const error = isObject(body.error) ? videoError(body.error.code, body.error.message) : undefined;
  const url = urlIn(body);
  const length = typeof seconds === 'string' ? Number(seconds) : seconds;
  return {
    id,
    state: readState(body.status),
    ...(typeof progress === 'number' ? { progress } : {}),
    ...(url === undefined ? {} : { url }),
    ...(error === undefined ? {} : { error }),
    ...(typeof length === 'number' && length > 0 ? { seconds: length } : {}),
    ...(typeof size === 'string' ? { size } : {}),
    ...(typeof expires === 'number' ? { expiresAt: expires } : {}),
  };
}

function urlIn({ metadata, url, video_url: video }: JsonObject): string | undefined {
  const inside = isObject(metadata) ? metadata.url : undefined;
  return [url, video, inside].find((value): value is string => typeof value === 'string' && value !== '');
}

/** The video object, with the names that clients of other gateways look for: `task_id`, and `metadata.url` when there is something. */
export function writeReport(report: VideoReport, context: ReplyContext): JsonObject {
  const { id, state = 'queued', progress = 0, error, seconds, size, expiresAt, url, task } = report;
  return {
    id,
    task_id: id,
    object: 'video',
    model: modelOf(report, context),
    status: stateWords[state],
    progress,
    created_at: createdOf(report, context),
    completed_at:
      state === 'completed' && task?.finishedAt !== undefined ? Math.floor(task.finishedAt / 1000) : null,
    expires_at: expiresAt ?? null,
    prompt: task?.prompt ?? null,
    seconds: seconds === undefined ? null : String(seconds),
    size: size ?? null,
    remixed_from_video_id: task?.remixOf ?? null,
    error: error === undefined ? null : { code: error.code, message: error.message },
    ...(url === undefined ? {} : { metadata: { url } }),
  };
}
