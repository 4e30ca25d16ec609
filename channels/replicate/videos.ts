/** Video codecs for Replicate's predictions API. */
import type { JsonObject } from 'sluice';
import {
  videoError,
  videoStateReader,
  type EncodedRequest,
  type EncodeTarget,
  type VideoReport,
  type VideoRequest,
  defineVideoCodecs,
} from 'sluice/channel-kit';
import { modelPath } from '../_kit/media/pictures.ts';
import { inModelWords } from '../_kit/media/videos.ts';

/** Name of the format. */
export const videoFormat = 'replicate-videos';

/**
 * Names of the field for the first image of a video by model. The others call it `image`, as in https://github.com/vercel/ai
 * (packages/replicate/src/replicate-video-model.ts). These names have no source but the models’ pages, which change.
 */
const firstImages: readonly (readonly [RegExp, string])[] = [
  [/kling|luma\/ray/, 'start_image'],
  [/minimax|hailuo/, 'first_frame_image'],
  [/sora/, 'input_reference'],
];

/** Returns the path at which a model is called, and its version: `owner/name`, or `owner/name:version`. */
export function endpointOf(model: string): { readonly path: string; readonly version?: string } {
  const [name = '', version] = model.split(':');
  return version === undefined
    ? { path: `/models${modelPath(name)}/predictions` }
    : { path: '/predictions', version };
}

/** Encodes a request. The page of each model lists its fields: https://replicate.com/collections/text-to-video */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  const { model } = target;
  const [, image = 'image'] = firstImages.find(([pattern]) => pattern.test(model)) ?? [];
  const { path, version } = endpointOf(model);
  const input = inModelWords(request, target, {
    format: videoFormat,
    image,
    duration: (seconds) => seconds,
  });
  return { path, body: { ...(version === undefined ? {} : { version }), input } };
}

/** https://replicate.com/docs/topics/predictions/lifecycle https://github.com/replicate/replicate-javascript (index.d.ts) */
const readState = videoStateReader({
  starting: 'queued',
  processing: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  canceled: 'cancelled',
  aborted: 'cancelled',
});

function readReport({ id, status, output, error }: JsonObject): VideoReport {
  const state = readState(status);
  const [url] = [output ?? null].flat();
  return {
    id: typeof id === 'string' ? id : '',
    state,
    ...(typeof url === 'string' ? { url } : {}),
    ...(state === 'failed' ? { error: videoError(undefined, error) } : {}),
  };
}

const task = (id: string): string => `/predictions/${encodeURIComponent(id)}`;

/** The codecs for videos. */
export const replicateVideos = defineVideoCodecs({
  format: videoFormat,
  encode,
  readReport,
  ask: ({ id }) => ({ path: task(id), method: 'GET', body: {} }),
  cancel: ({ id }) => ({ path: `${task(id)}/cancel`, body: {} }),
});
