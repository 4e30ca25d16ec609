import { defineChannel, type JsonObject } from 'sluice';
import {
  limitImages,
  videoError,
  imageText,
  reportVideoSettings,
  requestedSize,
  videoStateReader,
  requestedRatio,
  addMetadata,
  type EncodedRequest,
  type EncodeTarget,
  type VideoReport,
  type VideoRequest,
} from 'sluice/channel-kit';
import { plainKind } from './_kit/http/http-channel.ts';
import { nearestLength, offeredResolution, videosAlone } from './_kit/media/videos.ts';

/** The version that these words are of: https://docs.dev.runwayml.com/api-details/versioning */
const version = '2024-11-06';

const format = 'runway';

/** Default size of models that require one, and default duration of videos. */
const usualRatio = '1280:720';
const usualSeconds = 5;

/** Spelling of the video settings of a model. */
interface Words {
  /** A size in pixels; absent: a ratio by its name, or neither. */
  readonly bySize?: true;
  /** Ratios by their names. */
  readonly ratios?: readonly string[];
  /** Models that begin with an image take its ratio. */
  readonly ratioOfImage?: true;
  readonly resolutions?: readonly string[];
  /** The only lengths in seconds. */
  readonly lengths?: readonly number[];
  readonly seed?: true;
  readonly negative?: true;
  /** True when the model requires a ratio. */
  readonly needsRatio?: true;
}

const names = '21:9 16:9 4:3 1:1 3:4 9:16'.split(' ');

/** Models by the prefix of their names. https://github.com/runwayml/sdk-node (src/resources/text-to-video.ts, image-to-video.ts) */
const words: readonly (readonly [RegExp, Words])[] = [
  [/^gen/, { bySize: true, seed: true, needsRatio: true }],
  [/^veo/, { bySize: true, seed: true, negative: true, lengths: [4, 6, 8], needsRatio: true }],
  [/^seedance/, { bySize: true, seed: true }],
  [/^(gemini|wan)/, { bySize: true }],
  [/^happyhorse/, { bySize: true, ratioOfImage: true, resolutions: ['720p', '1080p'] }],
  [/^hailuo/, { ratios: names, resolutions: ['768p', '2k'] }],
  [
    /^grok/,
    {
      ratios: '1:1 16:9 9:16 4:3 3:4 3:2 2:3'.split(' '),
      ratioOfImage: true,
      resolutions: ['480p', '720p', '1080p'],
    },
  ],
  [/^h3/, { resolutions: ['480p', '768p'], seed: true }],
];

/** https://docs.dev.runwayml.com/api/#tag/Start-generating */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  const own = words.find(([name]) => name.test(target.model))?.[1] ?? { bySize: true };
  reportVideoSettings(
    request,
    [
      'seconds',
      'size',
      'aspectRatio',
      'resolution',
      ...(own.seed ? (['seed'] as const) : []),
      ...(own.negative ? (['negativePrompt'] as const) : []),
    ],
    target,
  );
  const { prompt, seed, negativePrompt, metadata } = request;
  const images = limitImages(request.images, 2, format, target).map((image) =>
    imageText(image, 'data-url', format),
  );
  const [first = '', last] = images;
  return {
    path: images.length === 0 ? '/text_to_video' : '/image_to_video',
    body: addMetadata(
      {
        model: target.model,
        ...(prompt === '' ? {} : { promptText: prompt }),
        ...(images.length === 0
          ? {}
          : {
              promptImage:
                last === undefined
                  ? first
                  : [
                      { uri: first, position: 'first' },
                      { uri: last, position: 'last' },
                    ],
            }),
        ...shapeFor(request, own, target),
        duration: secondsFor(request, own, target),
        ...(seed === undefined || own.seed === undefined ? {} : { seed }),
        ...(negativePrompt === undefined || own.negative === undefined ? {} : { negativePrompt }),
      },
      metadata,
      target,
    ),
  };
}

/** Returns the duration. Always sends one, so that the cost of a video without one is known. */
function secondsFor(request: VideoRequest, { lengths }: Words, target: EncodeTarget): number {
  if (lengths === undefined) return Math.ceil(request.seconds ?? usualSeconds);
  return (
    nearestLength(request, lengths, target) ??
    lengths.findLast((length) => length <= usualSeconds) ??
    usualSeconds
  );
}

/** Returns size, ratio and resolution, as far as the model takes them. */
function shapeFor(request: VideoRequest, own: Words, target: EncodeTarget): JsonObject {
  const { bySize, ratios, ratioOfImage, resolutions, needsRatio } = own;
  const isOfImage = ratioOfImage === true && request.images.length > 0;
  if (bySize === true && !isOfImage) {
    const size = requestedSize(request)?.replace('x', ':') ?? (needsRatio === true ? usualRatio : undefined);
    return size === undefined ? {} : { ratio: size };
  }
  const ratio = ratios === undefined || isOfImage ? undefined : requestedRatio(request, ratios, target);
  if ((ratios === undefined || isOfImage) && request.aspectRatio !== undefined)
    target.drop('settings.aspectRatio');
  const resolution = offeredResolution(request, (one) => resolutions?.includes(one) === true, target);
  return { ...(ratio === undefined ? {} : { ratio }), ...(resolution === undefined ? {} : { resolution }) };
}

const readState = videoStateReader({
  pending: 'queued',
  throttled: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
});

/** Decodes the state of a task; a new task has only its id. https://docs.dev.runwayml.com/api/#tag/Task-management */
function readReport({ id, status, progress, output, failure, failureCode }: JsonObject): VideoReport {
  const state = status === undefined ? 'queued' : readState(status);
  const [url] = Array.isArray(output) ? output : [];
  return {
    id: typeof id === 'string' ? id : '',
    state,
    ...(typeof progress === 'number' ? { progress: progress * 100 } : {}),
    ...(typeof url === 'string' ? { url } : {}),
    ...(state === 'failed' ? { error: videoError(failureCode, failure) } : {}),
  };
}

/** Runway. https://docs.dev.runwayml.com */
export default plainKind(
  defineChannel({
    name: 'runway',
    catalogue: ['runwayml'],
    models: [
      'gen4*',
      'veo3*',
      'seedance*',
      'hailuo*',
      'happyhorse*',
      'gemini_omni*',
      'grok_imagine*',
      'wan3*',
      'h3_*',
    ],
    setup: videosAlone(
      { baseUrl: 'https://api.dev.runwayml.com/v1', defaults: { 'x-runway-version': version } },
      { format, encode, readReport },
      (id) => `/tasks/${id}`,
    ),
  }),
);
