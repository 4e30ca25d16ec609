import type { JsonObject } from 'sluice';
import {
  atMost,
  failureOf,
  imageText,
  loseSettings,
  stateReader,
  wantedRatio,
  wantedResolution,
  withMetadata,
  type EncodedRequest,
  type EncodeTarget,
  type VideoReport,
  type VideoRequest,
} from 'sluice/internal';
import { modelPath } from './_pictures.ts';
import { ownVideos } from './_videos.ts';

/** The name under which Replicate makes videos. */
export const videoFormat = 'replicate-videos';

const ratios = '21:9 16:9 4:3 1:1 3:4 9:16'.split(' ');

/** What models call the image with which a video begins; the others call it `image`. */
const firstImages: readonly (readonly [RegExp, string])[] = [
  [/kling|luma\/ray/, 'start_image'],
  [/minimax|hailuo/, 'first_frame_image'],
  [/sora/, 'input_reference'],
];

/** Where a model is asked, and what says which: `owner/name`, or `owner/name:version`. */
export function placeOf(model: string): { readonly path: string; readonly version?: string } {
  const [name = '', version] = model.split(':');
  return version === undefined
    ? { path: `/models${modelPath(name)}/predictions` }
    : { path: '/predictions', version };
}

/** Each model has a page with its fields: https://replicate.com/collections/text-to-video */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  loseSettings(request, ['seconds', 'size', 'aspectRatio', 'resolution', 'seed', 'negativePrompt'], target);
  const { model } = target;
  const { prompt, seconds, seed, negativePrompt, metadata } = request;
  const [image] = atMost(request.images, 1, videoFormat, target);
  const [, first = 'image'] = firstImages.find(([pattern]) => pattern.test(model)) ?? [];
  const { path, version } = placeOf(model);
  const ratio = wantedRatio(request, ratios, target);
  const resolution = wantedResolution(request);
  return {
    path,
    body: {
      ...(version === undefined ? {} : { version }),
      input: withMetadata(
        {
          prompt,
          ...(image === undefined ? {} : { [first]: imageText(image, 'data-url', videoFormat) }),
          ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
          ...(resolution === undefined ? {} : { resolution }),
          ...(seconds === undefined ? {} : { duration: seconds }),
          ...(seed === undefined ? {} : { seed }),
          ...(negativePrompt === undefined ? {} : { negative_prompt: negativePrompt }),
        },
        metadata,
        target,
      ),
    },
  };
}

/** https://replicate.com/docs/topics/predictions/lifecycle */
const readState = stateReader({
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
    ...(state === 'failed' ? { error: failureOf(undefined, error) } : {}),
  };
}

const task = (id: string): string => `/predictions/${encodeURIComponent(id)}`;

/** The codecs for videos. */
export const replicateVideos = ownVideos({
  format: videoFormat,
  encode,
  readReport,
  ask: ({ id }) => ({ path: task(id), method: 'GET', body: {} }),
  cancel: ({ id }) => ({ path: `${task(id)}/cancel`, body: {} }),
});
