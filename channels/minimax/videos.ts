/** Video codecs for both versions of MiniMax's API, and the requests that find the file of a finished video. */
import {
  GatewayError,
  isObject,
  type JsonObject,
  type JsonValue,
  type UpstreamRequest,
  type Call,
  type ChannelParts,
} from 'sluice';
import {
  limitImages,
  contentRefused,
  videoError,
  imageText,
  reportVideoSettings,
  videoStateReader,
  upstreamError,
  requestedRatio,
  requestedResolution,
  addMetadata,
  type EncodedRequest,
  type EncodeTarget,
  type VideoReport,
  type VideoRequest,
  defineVideoCodecs,
} from 'sluice/channel-kit';
import { answerOf, requestWhole, stepOf, hasSucceeded } from '../_kit/jobs/jobs.ts';
import { commonRatios, nearestLength } from '../_kit/media/videos.ts';

/** Name of the format. */
export const videoFormat = 'minimax-videos';

/** Models of the second version of its API, which has other words. */
const isNewer = (model: string): boolean => /^MiniMax-H\d/i.test(model);

/**
 * https://platform.minimax.io/docs/api-reference/video-generation-t2v and, of the newer models,
 * https://platform.minimax.io/docs/api-reference/video-generation-v2-query
 */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  return isNewer(target.model) ? encodeNewer(request, target) : encodeOlder(request, target);
}

function encodeOlder(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  const { prompt, imageRole } = request;
  const isFixed = /^[A-Z]2V-01/.test(target.model);
  reportVideoSettings(request, isFixed ? [] : ['seconds', 'size', 'resolution'], target);
  const images = limitImages(request.images, imageRole === 'reference' ? 1 : 2, videoFormat, target).map(
    (image) => imageText(image, 'data-url', videoFormat),
  );
  const [first, last] = images;
  const seconds = isFixed ? undefined : nearestLength(request, [6, 10], target);
  const resolution = isFixed ? undefined : resolutionFor(request, target);
  return {
    path: '/v1/video_generation',
    body: addMetadata(
      {
        model: target.model,
        ...(prompt === '' ? {} : { prompt }),
        ...(seconds === undefined ? {} : { duration: seconds }),
        ...(resolution === undefined ? {} : { resolution }),
        ...(imageRole === 'reference'
          ? { subject_reference: [{ type: 'character', image: images }] }
          : {
              ...(first === undefined ? {} : { first_frame_image: first }),
              ...(last === undefined ? {} : { last_frame_image: last }),
            }),
      },
      request.metadata,
      target,
    ),
  };
}

/** Names of resolutions: 720p is called 768P here, and 480p 512P. */
const resolutions: Readonly<Record<string, string>> = {
  '480p': '512P',
  '512p': '512P',
  '720p': '768P',
  '768p': '768P',
  '1080p': '1080P',
};

/** The newer models have two. */
const newerResolutions: Readonly<Record<string, string>> = {
  '720p': '768P',
  '768p': '768P',
  '1440p': '2K',
  '2k': '2K',
};

function resolutionFor(
  request: VideoRequest,
  { drop }: EncodeTarget,
  names = resolutions,
): string | undefined {
  const wanted = requestedResolution(request)?.toLowerCase();
  if (wanted === undefined) {
    if (request.size !== undefined) drop('settings.size');
    return undefined;
  }
  const known = names[wanted];
  if (known === undefined) drop(request.resolution === undefined ? 'settings.size' : 'settings.resolution');
  return known;
}

function encodeNewer(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  reportVideoSettings(request, ['seconds', 'size', 'aspectRatio', 'resolution'], target);
  const { prompt, seconds = 5, imageRole } = request;
  const roles = imageRole === 'reference' ? ['reference_image'] : ['first_frame', 'last_frame'];
  const images = limitImages(request.images, imageRole === 'reference' ? 9 : 2, videoFormat, target);
  const ratio = requestedRatio(request, commonRatios, target) ?? (images.length === 0 ? '16:9' : undefined);
  return {
    path: '/v2/video_generation',
    body: addMetadata(
      {
        model: target.model,
        content: [
          ...(prompt === '' ? [] : [{ type: 'text', text: prompt }]),
          ...images.map((image, index) => ({
            type: 'image_url',
            image_url: { url: imageText(image, 'data-url', videoFormat) },
            role: roles[index] ?? 'reference_image',
          })),
        ],
        resolution: resolutionFor(request, target, newerResolutions) ?? '768P',
        duration: Math.ceil(seconds),
        ...(ratio === undefined ? {} : { ratio }),
      },
      request.metadata,
      target,
    ),
  };
}

const readState = videoStateReader({
  preparing: 'queued',
  queueing: 'queued',
  queued: 'queued',
  processing: 'in_progress',
  running: 'in_progress',
  success: 'completed',
  succeeded: 'completed',
  fail: 'failed',
  failed: 'failed',
  cancelled: 'cancelled',
});

/** https://platform.minimax.io/docs/api-reference/video-generation-query */
function readReport(body: JsonObject): VideoReport {
  refuse(body);
  const { task, task_id: own, file } = body;
  const report = isObject(task) ? task : body;
  const id = report.task_id ?? report.id ?? own;
  const state = report.status === undefined ? 'queued' : readState(report.status);
  const content = isObject(report.content) ? report.content.url : undefined;
  const url = isObject(file) ? file.download_url : content;
  const error = isObject(report.error) ? report.error : {};
  const { duration } = report;
  return {
    id: typeof id === 'string' || typeof id === 'number' ? String(id) : '',
    state,
    ...(typeof url === 'string' ? { url } : {}),
    ...(typeof duration === 'number' ? { seconds: duration } : {}),
    ...(state === 'failed' ? { error: videoError(error.code, error.message) } : {}),
  };
}

/**
 * Refusals come with status 200: https://platform.minimax.io/docs/api-reference/errorcode. Those of plans (1028, 1030, 2061) are in
 * https://github.com/MiniMax-AI/cli (src/errors/api.ts).
 */
const statuses: ReadonlyMap<JsonValue | undefined, number> = new Map<JsonValue | undefined, number>([
  [1000, 500],
  [1001, 504],
  [1002, 429],
  [1004, 401],
  [1008, 402],
  [1013, 500],
  [1024, 500],
  [1028, 402],
  [1030, 402],
  [1033, 500],
  [1039, 429],
  [1041, 429],
  [1042, 400],
  [2013, 400],
  [2045, 429],
  [2049, 401],
  [2056, 429],
  [2061, 403],
]);

function refuse({ base_resp: base }: JsonObject): void {
  if (!isObject(base) || base.status_code === 0 || base.status_code === undefined) return;
  const { status_code: code, status_msg: sentence } = base;
  const message = typeof sentence === 'string' ? sentence : '';
  if (code === 1026 || code === 1027) throw contentRefused(message);
  throw upstreamError(statuses.get(code) ?? 500, JSON.stringify({ message }));
}

/** The codecs for videos. */
export const minimaxVideos = defineVideoCodecs({
  format: videoFormat,
  encode,
  readReport,
  ask: ({ id, model }) =>
    isNewer(model)
      ? { path: `/v2/query/video_generation/${encodeURIComponent(id)}`, method: 'GET', body: {} }
      : { path: '/v1/query/video_generation', query: { task_id: id }, method: 'GET', body: {} },
});

/** Polls a task. For a finished task of the older models, also requests the address of the file that it names. */
export async function openVideos(
  call: Call,
  open: ChannelParts['open'],
  request: UpstreamRequest,
): ReturnType<ChannelParts['open']> {
  if (request.operation !== 'get-video' || isNewer(request.model)) return open(call, request);
  const state = await requestWhole(call, open, request);
  const { file_id: file } = state.body ?? {};
  if (!hasSucceeded(state) || readState(state.body.status) !== 'completed') return answerOf(state);
  if (typeof file !== 'string' && typeof file !== 'number')
    throw new GatewayError('upstream_error', 'The upstream returned no video id.', { origin: 'upstream' });
  const found = await requestWhole(
    call,
    open,
    stepOf(request, { path: '/v1/files/retrieve', query: { file_id: String(file) } }),
  );
  if (!hasSucceeded(found)) return answerOf(found);
  return answerOf(state, { ...state.body, file: found.body.file ?? null });
}
