import { upstreamError } from '../_shared/upstream-error/index.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { VideoReport } from '../../model/video.ts';
import type { ReplyContext } from '../../sdk/format.ts';
import { createdOf, modelOf, noTask } from '../_shared/video-codec.ts';
import { videoError } from '../_shared/video-report.ts';
import { readState, stateWords } from './wire.ts';

/** What another gateway says of a task: flat, or in the envelope of older ones. Throws GatewayError when it refuses. */
export function readReport(body: JsonObject): VideoReport {
  const said = isObject(body.data) && !('status' in body && 'task_id' in body) ? body.data : body;
  const id = [said.task_id, said.id].find((value) => typeof value === 'string' && value !== '');
  if (typeof id !== 'string') {
    if (typeof body.code === 'string' && body.code !== 'success')
      throw upstreamError(400, JSON.stringify(body));
    throw noTask();
  }
  const { url, progress, metadata, error, fail_reason: reason, result_url: result } = said;
  const state = readState(said.status);
  const address = [url, result].find((value) => typeof value === 'string' && /^https?:/.test(value));
  const percent = typeof progress === 'string' ? Number.parseFloat(progress) : progress;
  const seconds = isObject(metadata) ? metadata.duration : undefined;
  return {
    id,
    state,
    ...(typeof percent === 'number' && Number.isFinite(percent) ? { progress: percent } : {}),
    ...(typeof address === 'string' ? { url: address } : {}),
    ...(typeof seconds === 'number' && seconds > 0 ? { seconds } : {}),
    ...(state === 'failed' ? { error: failureIn(error, reason) } : {}),
  };
}

function failureIn(error: JsonObject[string], reason: JsonObject[string]): NonNullable<VideoReport['error']> {
  const { code, message } = isObject(error) ? error : {};
  const text = [message, reason].find((value) => typeof value === 'string' && value !== '');
  return videoError(code, text);
}

/** The answer to who has made a task: what every generation of this format's clients looks for. */
export function writeSubmitted(report: VideoReport, context: ReplyContext): JsonObject {
  const { id, state = 'queued', progress = 0 } = report;
  return {
    id,
    task_id: id,
    object: 'video',
    model: modelOf(report, context),
    status: stateWords[state],
    progress,
    created_at: createdOf(report, context),
  };
}

/** The answer to who asks for a task. */
export function writeStatus(report: VideoReport, context: ReplyContext): JsonObject {
  const { url, error, seconds, size } = report;
  const [width, height] = (size ?? '').split('x').map(Number);
  const metadata: JsonObject = {
    ...(seconds === undefined ? {} : { duration: seconds }),
    ...(width !== undefined && height !== undefined && width > 0 ? { width, height } : {}),
  };
  return {
    ...writeSubmitted(report, context),
    ...(url === undefined ? {} : { url, format: 'mp4' }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(error === undefined ? {} : { error: { code: codeOf(error.code), message: error.message } }),
  };
}

/** Clients of this format read a number: the provider's own where it is one. */
function codeOf(code: string): number {
  return /^\d{1,9}$/.test(code) ? Number(code) : 500;
}
