import { defineChannel, type JsonObject } from 'sluice';
import {
  atMost,
  cannotCarry,
  failureOf,
  isObject,
  loseSettings,
  stateReader,
  wantedRatio,
  wantedResolution,
  withMetadata,
  type ChannelParts,
  type ChannelTools,
  type EncodedRequest,
  type EncodeTarget,
  type ImageInput,
  type VideoReport,
  type VideoRequest,
} from 'sluice/internal';
import { bearer, overHttp, plainKind } from './_http.ts';
import { nearestLength, neverEmpty, ownVideos } from './_videos.ts';

const format = 'luma';
const ratios = '1:1 16:9 9:16 4:3 3:4 21:9 9:21'.split(' ');

/** https://docs.lumalabs.ai/docs/video-generation */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  loseSettings(request, ['seconds', 'size', 'aspectRatio', 'resolution'], target);
  const { prompt, metadata } = request;
  const [first, last] = atMost(request.images, 2, format, target).map(frameOf);
  const ratio = wantedRatio(request, ratios, target);
  const resolution = wantedResolution(request);
  const seconds = nearestLength(request, [5, 9], target);
  return {
    path: '/generations',
    body: withMetadata(
      {
        model: target.model,
        ...(prompt === '' ? {} : { prompt }),
        ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
        ...(resolution === undefined ? {} : { resolution }),
        ...(seconds === undefined ? {} : { duration: `${seconds}s` }),
        ...(first === undefined
          ? {}
          : { keyframes: { frame0: first, ...(last === undefined ? {} : { frame1: last }) } }),
      },
      metadata,
      target,
    ),
  };
}

/** Its own servers fetch images: it takes no bytes. */
function frameOf(image: ImageInput): JsonObject {
  if (image.kind !== 'url') throw cannotCarry('settings.images', 'an image as bytes', format);
  return { type: 'image', url: image.url };
}

const readState = stateReader({
  queued: 'queued',
  dreaming: 'in_progress',
  completed: 'completed',
  failed: 'failed',
});

function readReport({ id, state: word, failure_reason: reason, assets }: JsonObject): VideoReport {
  const state = readState(word);
  const { video, image } = isObject(assets) ? assets : {};
  return {
    id: typeof id === 'string' ? id : '',
    state,
    ...(typeof video === 'string' ? { url: video } : {}),
    ...(typeof image === 'string' ? { thumbnailUrl: image } : {}),
    ...(state === 'failed' ? { error: failureOf(undefined, reason) } : {}),
  };
}

/** Luma's Dream Machine. https://docs.lumalabs.ai/reference/creategeneration */
export default plainKind(
  defineChannel({
    name: 'luma',
    models: ['ray-*'],
    setup(options, tools: ChannelTools): ChannelParts {
      const { open } = overHttp(options, tools, {
        baseUrl: 'https://api.lumalabs.ai/dream-machine/v1',
        headers: bearer,
        speaks: {},
      });
      const task = (id: string): string => `/generations/${encodeURIComponent(id)}`;
      return {
        speaks: { 'create-video': [format], 'get-video': [format], 'delete-video': [format] },
        codecs: ownVideos({
          format,
          encode,
          readReport,
          ask: ({ id }) => ({ path: task(id), method: 'GET', body: {} }),
          cancel: ({ id }) => ({ path: task(id), method: 'DELETE', body: {} }),
        }),
        open: neverEmpty(open),
      };
    },
  }),
);
