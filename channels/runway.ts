import { defineChannel, type JsonObject } from 'sluice';
import {
  atMost,
  failureOf,
  imageText,
  loseSettings,
  sizeFor,
  stateReader,
  withMetadata,
  type ChannelParts,
  type ChannelTools,
  type EncodedRequest,
  type EncodeTarget,
  type VideoReport,
  type VideoRequest,
} from 'sluice/internal';
import { bearer, overHttp, plainKind } from './_http.ts';
import { neverEmpty, ownVideos } from './_videos.ts';

/** The version that these words are of: https://docs.dev.runwayml.com/api-details/versioning */
const version = '2024-11-06';

const format = 'runway';

/** A length and a size must be named: these are what is usual. */
const usualSeconds = 5;
const usualRatio = '1280:720';

/** https://docs.dev.runwayml.com/api/#tag/Start-generating */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  loseSettings(request, ['seconds', 'size', 'aspectRatio', 'resolution', 'seed'], target);
  const { prompt, seconds = usualSeconds, seed, metadata } = request;
  const images = atMost(request.images, 2, format, target).map((image) =>
    imageText(image, 'data-url', format),
  );
  const [first = '', last] = images;
  const ratio = sizeFor(request)?.replace('x', ':') ?? usualRatio;
  return {
    path: images.length === 0 ? '/text_to_video' : '/image_to_video',
    body: withMetadata(
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
        ratio,
        duration: Math.ceil(seconds),
        ...(seed === undefined ? {} : { seed }),
      },
      metadata,
      target,
    ),
  };
}

const readState = stateReader({
  pending: 'queued',
  throttled: 'queued',
  running: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
});

/** https://docs.dev.runwayml.com/api/#tag/Task-management. A new task says its id alone. */
function readReport({ id, status, progress, output, failure, failureCode }: JsonObject): VideoReport {
  const state = status === undefined ? 'queued' : readState(status);
  const [url] = Array.isArray(output) ? output : [];
  return {
    id: typeof id === 'string' ? id : '',
    state,
    ...(typeof progress === 'number' ? { progress: progress * 100 } : {}),
    ...(typeof url === 'string' ? { url } : {}),
    ...(state === 'failed' ? { error: failureOf(failureCode, failure) } : {}),
  };
}

/** Runway. https://docs.dev.runwayml.com */
export default plainKind(
  defineChannel({
    name: 'runway',
    catalogue: ['runwayml'],
    models: ['gen3*', 'gen4*', 'veo3*', 'aleph*', 'seedance*', 'hailuo*'],
    setup(options, tools: ChannelTools): ChannelParts {
      const { open } = overHttp(options, tools, {
        baseUrl: 'https://api.dev.runwayml.com/v1',
        headers: bearer,
        defaults: { 'x-runway-version': version },
        speaks: {},
      });
      const task = (id: string): string => `/tasks/${encodeURIComponent(id)}`;
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
