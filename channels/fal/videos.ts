/** Video codecs for fal's queue API, and the requests for the status and result of a queued video. */
import { isObject, type JsonObject, type UpstreamRequest, type Call, type ChannelParts } from 'sluice';
import {
  videoStateReader,
  type EncodedRequest,
  type EncodeTarget,
  type VideoReport,
  type VideoRequest,
  defineVideoCodecs,
} from 'sluice/channel-kit';
import { answerOf, requestWhole, stepOf, hasSucceeded } from '../_kit/jobs/jobs.ts';
import { modelPath } from '../_kit/media/pictures.ts';
import { inModelWords } from '../_kit/media/videos.ts';

/** Name of the format. */
export const videoFormat = 'fal-videos';

/**
 * Returns the path of an application, below which its queued requests are found, whichever of its endpoints took them. https://github.com/fal-ai/fal-js
 * (libs/client/src/queue.ts, utils.ts)
 */
export function applicationOf(model: string): string {
  const steps = model.split('/');
  return modelPath(steps.slice(0, /^(workflows|comfy)$/.test(steps[0] ?? '') ? 3 : 2).join('/'));
}

/** Names that models have for the first image of a video; the others call it `image_url`. */
const firstImages: readonly (readonly [model: RegExp, name: string])[] = [
  [/kling-video\/(o1|v2\.6|v3)\/(?!.*reference)|start-end-to-video|wan-flf2v/, 'start_image_url'],
  [/pixverse\/.*transition/, 'first_image_url'],
  [/first-last-frame/, 'first_frame_url'],
];

/**
 * Encodes a request. Each model has its own fields: https://github.com/fal-ai/fal-js (libs/client/src/types/endpoints.ts, 1.10.1). Those that take several
 * images (`…/reference-to-video`) get them from the metadata of a client alone.
 */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  const { model } = target;
  const [, image = 'image_url'] = firstImages.find(([pattern]) => pattern.test(model)) ?? [];
  return {
    path: modelPath(model),
    body: inModelWords(request, target, {
      format: videoFormat,
      image,
      duration: (seconds) => lengthFor(model, seconds),
    }),
  };
}

/** Encodes a duration: most models take it as digits, some with its unit, and some as a number. */
function lengthFor(model: string, seconds: number): string | number {
  if (/\/(veo|luma-dream-machine|kandinsky)/.test(model)) return `${seconds}s`;
  return /\/(davinci|pika\/v2|pixverse\/v6|vidu\/(q3|q2\/reference))/.test(model) ? seconds : String(seconds);
}

const readState = videoStateReader({
  in_queue: 'queued',
  in_progress: 'in_progress',
  completed: 'completed',
  failed: 'failed',
});

function readReport({ request_id: id, status, result }: JsonObject): VideoReport {
  const state = readState(status);
  const video = isObject(result) ? result.video : undefined;
  const url = isObject(video) ? video.url : video;
  return {
    id: typeof id === 'string' ? id : '',
    state: state === 'completed' && typeof url !== 'string' ? 'failed' : state,
    ...(typeof url === 'string' ? { url } : {}),
  };
}

const order = (model: string, id: string): string =>
  `${applicationOf(model)}/requests/${encodeURIComponent(id)}`;

/** The codecs for videos. https://fal.ai/docs/inference-api/queue/cancel */
export const falVideos = defineVideoCodecs({
  format: videoFormat,
  encode,
  readReport,
  ask: ({ id, model }) => ({ path: order(model, id), method: 'GET', body: {} }),
  cancel: ({ id, model }) => ({ path: `${order(model, id)}/cancel`, method: 'PUT', body: {} }),
});

/** Gets the status of a queued request, and its result when it is done. */
export async function openVideos(
  call: Call,
  open: ChannelParts['open'],
  request: UpstreamRequest,
): ReturnType<ChannelParts['open']> {
  if (request.operation !== 'get-video') return open(call, request);
  const state = await requestWhole(call, open, stepOf(request, { path: `${request.path}/status` }));
  if (!hasSucceeded(state) || state.body.status !== 'COMPLETED') return answerOf(state);
  const result = await requestWhole(call, open, stepOf(request, { path: request.path }));
  // A request that failed has this status from then on.
  if (result.status >= 500) return answerOf(state, { ...state.body, status: 'FAILED' });
  return hasSucceeded(result) ? answerOf(state, { ...state.body, result: result.body }) : answerOf(result);
}
