/** Long-running operations of generateContent's videos: decodes and encodes their state, and builds the request for a finished file. */
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import type { VideoReport, VideoTaskRequest } from '../../../model/video.ts';
import type { Codec } from '../../../sdk/format.ts';
import { redact } from '../../_shared/redact.ts';
import { videoError } from '../../_shared/video-report.ts';
import { listOf } from '../../_shared/fields.ts';

/** Decodes the state of an operation. */
export function readReport(body: JsonObject): VideoReport {
  const { name, done, error, response } = body;
  const id = typeof name === 'string' ? name : '';
  if (isObject(error)) return { id, state: 'failed', error: failureIn(error) };
  if (done !== true) return { id, state: 'in_progress' };
  const made = isObject(response) ? response : {};
  const inner = isObject(made.generateVideoResponse) ? made.generateVideoResponse : made;
  const url = urlIn(inner.generatedSamples ?? inner.generatedVideos ?? inner.videos);
  if (url !== undefined) return { id, state: 'completed', url };
  const reasons = listOf(inner.raiMediaFilteredReasons);
  const [reason] = reasons;
  return {
    id,
    state: 'failed',
    error: {
      code: reason === undefined ? 'generation_failed' : 'content_policy_violation',
      message: typeof reason === 'string' ? redact(reason) : 'The video could not be made.',
    },
  };
}

function urlIn(list: JsonValue | undefined): string | undefined {
  const first: unknown = Array.isArray(list) ? list[0] : undefined;
  if (!isObject(first)) return undefined;
  const video = isObject(first.video) ? first.video : first;
  return typeof video.uri === 'string' && video.uri !== '' ? video.uri : undefined;
}

function failureIn({ code, status, message }: JsonObject): NonNullable<VideoReport['error']> {
  return videoError(
    typeof status === 'string' ? status : typeof code === 'number' ? code : undefined,
    message,
  );
}

/** Code of internal errors: `INTERNAL` of `google.rpc.Code`. */
const internal = 13;

/** Encodes the operation, for the reply that starts it and for replies to polls. */
export function writeReport(report: VideoReport): JsonObject {
  const { id, state, error, url } = report;
  const name = `operations/${id}`;
  if (state === 'failed' || state === 'cancelled') {
    return {
      name,
      done: true,
      error: { code: internal, message: error?.message ?? 'The video could not be made.', details: [] },
    };
  }
  if (state !== 'completed') return { name };
  return {
    name,
    done: true,
    response: {
      generateVideoResponse: { generatedSamples: url === undefined ? [] : [{ video: { uri: url } }] },
    },
  };
}

/** Returns the request for a file of the provider, which needs its API key; undefined for other URLs, which are public. */
export const contentRequest: NonNullable<Codec<VideoTaskRequest>['contentRequest']> = (
  _request,
  part,
  url,
) => {
  const [, path] =
    /^https:\/\/[^/]+\/v1(?:beta)?(\/files\/[\w-]+(?::download)?)(?:\?|$)/.exec(url ?? '') ?? [];
  if (path === undefined || part !== 'video') return undefined;
  const download = path.endsWith(':download') ? path : `${path}:download`;
  return { path: download, query: { alt: 'media' }, method: 'GET', body: {} };
};
