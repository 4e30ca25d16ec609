import type { JsonObject, UpstreamRequest } from 'sluice';
import {
  atMost,
  imageText,
  isObject,
  loseSettings,
  stateReader,
  wantedRatio,
  wantedResolution,
  withMetadata,
  type Call,
  type ChannelParts,
  type EncodedRequest,
  type EncodeTarget,
  type VideoReport,
  type VideoRequest,
} from 'sluice/internal';
import { answerOf, ask, stepOf, went } from './_jobs.ts';
import { modelPath } from './_pictures.ts';
import { ownVideos } from './_videos.ts';

/** The name under which fal makes videos. */
export const videoFormat = 'fal-videos';

const ratios = '21:9 16:9 4:3 1:1 3:4 9:16'.split(' ');

/** Where orders are asked about: below the application, whatever of its endpoints was asked. */
export function applicationOf(model: string): string {
  const steps = model.split('/');
  return modelPath(steps.slice(0, /^(workflows|comfy)$/.test(steps[0] ?? '') ? 3 : 2).join('/'));
}

/** Each model has a page with its fields: https://fal.ai/models/fal-ai/veo3/api */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  loseSettings(request, ['seconds', 'size', 'aspectRatio', 'resolution', 'seed', 'negativePrompt'], target);
  const { prompt, seconds, seed, negativePrompt, metadata } = request;
  const [image] = atMost(request.images, 1, videoFormat, target);
  const ratio = wantedRatio(request, ratios, target);
  const resolution = wantedResolution(request);
  return {
    path: modelPath(target.model),
    body: withMetadata(
      {
        prompt,
        ...(image === undefined ? {} : { image_url: imageText(image, 'data-url', videoFormat) }),
        ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
        ...(resolution === undefined ? {} : { resolution }),
        ...(seconds === undefined ? {} : { duration: lengthFor(target.model, seconds) }),
        ...(seed === undefined ? {} : { seed }),
        ...(negativePrompt === undefined ? {} : { negative_prompt: negativePrompt }),
      },
      metadata,
      target,
    ),
  };
}

/** Most models take a length as digits; some want its unit. */
function lengthFor(model: string, seconds: number): string {
  return /veo|luma|sora/.test(model) ? `${seconds}s` : String(seconds);
}

const readState = stateReader({
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

/** The codecs for videos. */
export const falVideos = ownVideos({
  format: videoFormat,
  encode,
  readReport,
  ask: ({ id, model }) => ({
    path: `${applicationOf(model)}/requests/${encodeURIComponent(id)}`,
    method: 'GET',
    body: {},
  }),
});

/** Asks how an order is, and for its result when it is done. */
export async function openVideos(
  call: Call,
  open: ChannelParts['open'],
  request: UpstreamRequest,
): ReturnType<ChannelParts['open']> {
  if (request.operation !== 'get-video') return open(call, request);
  const state = await ask(call, open, stepOf(request, { path: `${request.path}/status` }));
  if (!went(state) || state.body.status !== 'COMPLETED') return answerOf(state);
  const result = await ask(call, open, stepOf(request, { path: request.path }));
  // An order that broke answers so for ever.
  if (result.status >= 500) return answerOf(state, { ...state.body, status: 'FAILED' });
  return went(result) ? answerOf(state, { ...state.body, result: result.body }) : answerOf(result);
}
