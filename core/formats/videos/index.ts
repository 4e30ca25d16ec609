/** The videos format: `/v1/videos` and what belongs to a video there. */
import { wrongType } from '../../sdk/errors.ts';
import { filesOf } from '../../model/form.ts';
import type { ImageInput } from '../../model/image.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { VideoReport, VideoRequest, VideoTaskRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget, Format, ReplyContext, RouteParams } from '../../sdk/format.ts';
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { given } from '../_shared/check.ts';
import { defined, isText } from '../_shared/fields.ts';
import { defineVideoCodecs, noTask, videoObject, videoStates } from '../_shared/video-codec.ts';
import {
  addMetadata,
  checkCount,
  imageOf,
  imagesOf,
  imageText,
  limitImages,
  optionalSeconds,
  ownExtra,
  promptOf,
} from '../_shared/video-fields.ts';
import { videoError } from '../_shared/video-report.ts';
import { videoDecoder, videoFields } from '../_shared/video-table.ts';
import { uploadOf } from '../_shared/video-upload.ts';

const name = 'videos';

/** States of other gateways of this format included. Clients know no cancelled tasks. */
const states = videoStates({
  queued: ['queued', 'pending'],
  in_progress: ['in_progress', 'processing', 'running'],
  completed: ['completed', 'succeeded'],
  failed: ['failed'],
  cancelled: ['cancelled', 'canceled'],
});

const seconds = {
  name: 'seconds',
  decode: ({ seconds: length, duration }: JsonObject) =>
    given(length) ? optionalSeconds(length, 'seconds') : optionalSeconds(duration, 'duration'),
  encode: ({ seconds: length }: VideoRequest) =>
    length === undefined ? undefined : String(Math.ceil(length)),
};

/** Fields of gateways of this format. */
const fields = videoFields({
  seconds,
  size: { name: 'size', encode: ({ size }) => size },
  aspectRatio: 'aspect_ratio',
  resolution: { name: 'resolution', encode: ({ resolution }) => resolution },
  seed: 'seed',
  negativePrompt: 'negative_prompt',
  metadata: 'metadata',
  user: 'user',
});

/** Fields of the official API, for clients of other formats. */
const officialFields = videoFields({
  seconds,
  size: 'size',
  // Are sent as a size.
  aspectRatio: { name: 'aspect_ratio', encode: () => undefined },
  resolution: { name: 'resolution', encode: () => undefined },
});

const decoder = videoDecoder({
  format: name,
  fields,
  imageFields: ['input_reference', 'image', 'images'],
  otherFields: ['duration', 'n'],
  decodeImages(body, { form }) {
    const files = ['input_reference', 'image', 'images'].flatMap((field) => filesOf(form, field));
    if (files.length > 0) return { images: files.map((upload) => ({ kind: 'upload', upload })) };
    if (given(body.input_reference)) return { images: [referenceOf(body.input_reference)] };
    if (given(body.image)) return { images: [imageOf(body.image, 'image')] };
    return { images: imagesOf(body.images, 'images') };
  },
  check({ prompt, n }) {
    promptOf(prompt, []);
    checkCount(n, 'n');
  },
});

/** Returns the model's name; empty for a remix, whose model is that of the first video. Throws a 400 error when it is missing. */
function modelIn(body: JsonObject, { id }: RouteParams): string {
  return id === undefined ? decoder.model(body, {}) : '';
}

function decode(body: JsonObject, params: RouteParams): VideoRequest {
  if (params.id === undefined) return decoder.decode(body, params);
  return {
    operation: 'create-video',
    format: name,
    model: '',
    prompt: promptOf(body.prompt, []),
    images: [],
    remixOf: params.id,
  };
}

function referenceOf(value: JsonValue): ImageInput {
  if (!isObject(value)) return imageOf(value, 'input_reference');
  if (typeof value.file_id === 'string') return { kind: 'file', id: value.file_id, format: name };
  if (!given(value.image_url)) throw wrongType('input_reference', 'a URL, or an object with image_url');
  return imageOf(value.image_url, 'input_reference.image_url');
}

/** Encodes a request. Bytes of an image make it a form. */
function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  const { prompt, remixOf } = request;
  if (remixOf !== undefined)
    return { path: `/videos/${encodeURIComponent(remixOf)}/remix`, body: { prompt } };
  const own = request.format === name;
  const carried = own ? fields : officialFields;
  carried.report(request, target);
  const body = {
    model: target.model,
    prompt,
    ...carried.encode(request, target),
    ...(own ? ownExtra(request, name, target) : {}),
  };
  const whole = addMetadata(body, request.metadata, target);
  const [image] = limitImages(request.images, 1, name, target);
  if (image?.kind === 'data') {
    const members = Object.entries(whole).map(([field, value]) => ({
      name: field,
      value: typeof value === 'string' ? value : JSON.stringify(value),
    }));
    const file = { name: 'input_reference', file: uploadOf(image) };
    return { path: '/videos', body: {}, form: [...members, file] };
  }
  return {
    path: '/videos',
    body: { ...whole, ...defined({ input_reference: image && referenceTo(image) }) },
  };
}

function referenceTo(image: ImageInput): JsonObject {
  return image.kind === 'file' && image.format === name
    ? { file_id: image.id }
    : { image_url: imageText(image, 'data-url', name) };
}

/** Throws GatewayError when the provider names no video. */
function readReport(body: JsonObject): VideoReport {
  const id = [body.id, body.task_id].find(isText);
  if (id === undefined) throw noTask();
  const {
    progress,
    size,
    seconds: reportedSeconds,
    expires_at: expiresAt,
    error,
    url,
    video_url: video,
    metadata,
  } = body;
  const length = typeof reportedSeconds === 'string' ? Number(reportedSeconds) : reportedSeconds;
  return {
    id,
    state: states.read(body.status),
    ...defined({
      progress: typeof progress === 'number' ? progress : undefined,
      url: [url, video, isObject(metadata) ? metadata.url : undefined].find(isText),
      error: isObject(error) ? videoError(error.code, error.message) : undefined,
      seconds: typeof length === 'number' && length > 0 ? length : undefined,
      size: typeof size === 'string' ? size : undefined,
      expiresAt: typeof expiresAt === 'number' ? expiresAt : undefined,
    }),
  };
}

/** Returns the video object, with the names that clients of other gateways look for: `task_id`, and `metadata.url` when there is something. */
function writeReport(report: VideoReport, context: ReplyContext): JsonObject {
  const { state, error, seconds: length, size, expiresAt, url, task } = report;
  return {
    ...videoObject(report, context, states.write),
    completed_at:
      state === 'completed' && task?.finishedAt !== undefined ? Math.floor(task.finishedAt / 1000) : null,
    expires_at: expiresAt ?? null,
    prompt: task?.prompt ?? null,
    seconds: length === undefined ? null : String(length),
    size: size ?? null,
    remixed_from_video_id: task?.remixOf ?? null,
    error: error === undefined ? null : { code: error.code, message: error.message },
    ...(url === undefined ? {} : { metadata: { url } }),
  };
}

const pathOf = ({ id }: VideoTaskRequest): string => `/videos/${encodeURIComponent(id)}`;

const videos: Format = {
  name,
  routes: [
    {
      method: 'POST',
      path: '/v1/videos',
      operation: 'create-video',
      accepts: ['json', 'form'],
      files: 'video',
    },
    {
      method: 'POST',
      path: '/v1/videos/:id/remix',
      operation: 'create-video',
      accepts: ['json', 'form'],
      params: ({ id = '' }) => ({ id }),
    },
  ],
  codecs: defineVideoCodecs({
    ...decoder,
    model: modelIn,
    decode,
    encode,
    remixes: true,
    readReport,
    writeSubmitted: writeReport,
    writeStatus: writeReport,
    ask: (request) => ({ path: pathOf(request), method: 'GET', body: {} }),
    cancel: (request) => ({ path: pathOf(request), method: 'DELETE', body: {} }),
    // The bytes are behind a path of the provider's own, unless the provider named another address.
    contentRequest: (request, part, url) =>
      url === undefined
        ? {
            path: `${pathOf(request)}/content`,
            ...(part === 'video' ? {} : { query: { variant: part } }),
            method: 'GET',
            body: {},
          }
        : undefined,
  }),
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** The videos format. */
export default videos;
