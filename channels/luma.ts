/** Luma: Ray videos. */
import { defineChannel, isObject, type JsonObject } from 'sluice';
import {
  limitImages,
  unsupportedContent,
  videoError,
  reportVideoSettings,
  videoStateReader,
  requestedRatio,
  requestedResolution,
  addMetadata,
  lookupTable,
  type EncodedRequest,
  type EncodeTarget,
  type ImageInput,
  type VideoReport,
  type VideoRequest,
} from 'sluice/channel-kit';
import { plainKind } from './_kit/http/http-channel.ts';
import { nearestLength, videosAlone } from './_kit/media/videos.ts';

const format = 'luma';
const ratios = '1:1 16:9 9:16 4:3 3:4 21:9 9:21'.split(' ');

/** Names of resolutions. Smaller videos are made in the smallest of them. */
const resolutions = lookupTable<string>({
  '540p': '540p',
  '720p': '720p',
  '1080p': '1080p',
  '2160p': '4k',
  '4k': '4k',
});

/** https://docs.lumalabs.ai/docs/video-generation https://github.com/lumalabs/lumaai-node (src/resources/generations/video.ts) */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  reportVideoSettings(request, ['seconds', 'size', 'aspectRatio', 'resolution'], target);
  const { prompt, metadata } = request;
  const [first, last] = limitImages(request.images, 2, format, target).map(frameOf);
  const ratio = requestedRatio(request, ratios, target);
  const resolution = resolutionFor(request, target);
  const seconds = nearestLength(request, [5, 9], target);
  return {
    path: '/generations/video',
    body: addMetadata(
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

function resolutionFor(request: VideoRequest, { drop }: EncodeTarget): string | undefined {
  const wanted = requestedResolution(request)?.toLowerCase();
  if (wanted === undefined) return undefined;
  const known = resolutions[wanted];
  if (known === undefined) drop(request.resolution === undefined ? 'settings.size' : 'settings.resolution');
  return known ?? (/^\d{1,3}p$/.test(wanted) ? '540p' : undefined);
}

/** Returns an image by its address. Luma's servers fetch images, and accept no bytes. */
function frameOf(image: ImageInput): JsonObject {
  if (image.kind !== 'url') throw unsupportedContent('settings.images', 'an image as bytes', format);
  return { type: 'image', url: image.url };
}

const readState = videoStateReader({
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
    ...(state === 'failed' ? { error: videoError(undefined, reason) } : {}),
  };
}

/** Luma's Dream Machine. https://docs.lumalabs.ai/reference/creategeneration */
export default plainKind(
  defineChannel({
    name: 'luma',
    models: ['ray-*'],
    setup: videosAlone(
      { baseUrl: 'https://api.lumalabs.ai/dream-machine/v1' },
      { format, encode, readReport },
      (id) => `/generations/${id}`,
    ),
  }),
);
