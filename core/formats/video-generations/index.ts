/** The generic format of gateways for videos: `/v1/video/generations`. */
import { missingValue, wrongValue } from '../../sdk/errors.ts';
import { filesOf } from '../../model/form.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { VideoReport, VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget, Format, ReplyContext } from '../../sdk/format.ts';
import { chatRateHeaders } from '../_openai/headers.ts';
import { errorReply, replyHeaders } from '../_openai/errors.ts';
import { given, optionalString } from '../_shared/check.ts';
import { defined, isText } from '../_shared/fields.ts';
import { upstreamError } from '../_shared/upstream-error/index.ts';
import { defineVideoCodecs, noTask, videoObject, videoStates } from '../_shared/video-codec.ts';
import {
  addMetadata,
  checkCount,
  imageOf,
  imagesOf,
  imageText,
  optionalInteger,
  optionalSeconds,
  optionalSize,
  ownExtra,
} from '../_shared/video-fields.ts';
import { videoError } from '../_shared/video-report.ts';
import { videoDecoder, videoFields } from '../_shared/video-table.ts';

const name = 'video-generations';

/** The states by their words, those of older gateways included. Clients know no cancelled tasks. */
const states = videoStates({
  queued: ['queued', 'submitted', 'not_start'],
  in_progress: ['in_progress', 'processing'],
  completed: ['completed', 'succeeded', 'success'],
  failed: ['failed', 'failure'],
  cancelled: ['cancelled'],
});

const fields = videoFields({
  seconds: {
    name: 'duration',
    decode: ({ duration, seconds }) =>
      given(duration) ? optionalSeconds(duration, 'duration') : optionalSeconds(seconds, 'seconds'),
  },
  size: { name: 'size', decode: sizeIn },
  // Are sent as a size.
  aspectRatio: { name: 'aspect_ratio', encode: () => undefined },
  resolution: { name: 'resolution', encode: () => undefined },
  seed: 'seed',
  // Is sent in the metadata.
  negativePrompt: { name: 'negative_prompt', encode: () => undefined },
  metadata: {
    name: 'metadata',
    encode({ negativePrompt, metadata = {} }, target) {
      const inner = { ...defined({ negative_prompt: negativePrompt }), ...addMetadata({}, metadata, target) };
      return Object.keys(inner).length === 0 ? undefined : inner;
    },
  },
  user: 'user',
});

const decoder = videoDecoder({
  format: name,
  fields,
  imageFields: ['images', 'image'],
  otherFields: ['seconds', 'width', 'height', 'n', 'response_format'],
  decodeImages(body, { form }) {
    const files = ['image', 'images'].flatMap((field) => filesOf(form, field));
    if (files.length > 0) return { images: files.map((upload) => ({ kind: 'upload', upload })) };
    const first = given(body.image) && body.image !== '' ? [imageOf(body.image, 'image')] : [];
    return { images: [...first, ...imagesOf(body.images, 'images')] };
  },
  check({ n, response_format: format }) {
    checkCount(n, 'n');
    if (given(format) && optionalString(format, 'response_format') !== 'url')
      throw wrongValue('response_format', 'url');
  },
});

function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  fields.report(request, target);
  const images = request.images.map((image) => imageText(image, 'data-url', name));
  return {
    path: '/video/generations',
    body: {
      ...ownExtra(request, name, target),
      model: target.model,
      prompt: request.prompt,
      ...(images.length > 1 ? { images } : defined({ image: images[0] })),
      ...fields.encode(request, target),
    },
  };
}

function sizeIn(body: JsonObject): string | undefined {
  const width = optionalInteger(body.width, 'width');
  const height = optionalInteger(body.height, 'height');
  if (width === undefined && height === undefined) return optionalSize(body.size, 'size');
  if (width === undefined) throw missingValue('width');
  if (height === undefined) throw missingValue('height');
  return optionalSize(`${width}x${height}`, 'width');
}

/** Reads the report of another gateway: flat, or in the envelope of older ones. Throws GatewayError when it refuses. */
function readReport(body: JsonObject): VideoReport {
  const report = isObject(body.data) && !('status' in body && 'task_id' in body) ? body.data : body;
  const id = [report.task_id, report.id].find(isText);
  if (id === undefined) {
    if (typeof body.code === 'string' && body.code !== 'success')
      throw upstreamError(400, JSON.stringify(body));
    throw noTask();
  }
  const { url, progress, metadata, error, fail_reason: reason, result_url: result } = report;
  const state = states.read(report.status);
  const percent = typeof progress === 'string' ? Number.parseFloat(progress) : progress;
  const seconds = isObject(metadata) ? metadata.duration : undefined;
  return {
    id,
    state,
    ...defined({
      progress: typeof percent === 'number' && Number.isFinite(percent) ? percent : undefined,
      url: [url, result].filter(isText).find((one) => /^https?:/.test(one)),
      seconds: typeof seconds === 'number' && seconds > 0 ? seconds : undefined,
      error: state === 'failed' ? failureIn(error, reason) : undefined,
    }),
  };
}

function failureIn(
  error: JsonValue | undefined,
  reason: JsonValue | undefined,
): NonNullable<VideoReport['error']> {
  const { code, message } = isObject(error) ? error : {};
  return videoError(code, [message, reason].find(isText));
}

/** Writes what every generation of this format's clients looks for. */
function writeSubmitted(report: VideoReport, context: ReplyContext): JsonObject {
  return videoObject(report, context, states.write);
}

function writeStatus(report: VideoReport, context: ReplyContext): JsonObject {
  const { url, error, seconds, size } = report;
  const [width, height] = (size ?? '').split('x').map(Number);
  const metadata: JsonObject = {
    ...defined({ duration: seconds }),
    ...(width !== undefined && height !== undefined && width > 0 ? { width, height } : {}),
  };
  return {
    ...writeSubmitted(report, context),
    ...(url === undefined ? {} : { url, format: 'mp4' }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(error === undefined ? {} : { error: { code: codeOf(error.code), message: error.message } }),
  };
}

/** Clients of this format read a number: the provider's own where it is one. */
function codeOf(code: string): number {
  return /^\d{1,9}$/.test(code) ? Number(code) : 500;
}

const videoGenerations: Format = {
  name,
  routes: [
    {
      method: 'POST',
      path: '/v1/video/generations',
      operation: 'create-video',
      accepts: ['json', 'form'],
      files: 'video',
    },
  ],
  codecs: defineVideoCodecs({
    ...decoder,
    encode,
    readReport,
    writeSubmitted,
    writeStatus,
    ask: ({ id }) => ({ path: `/video/generations/${encodeURIComponent(id)}`, method: 'GET', body: {} }),
  }),
  errorReply,
  replyHeaders,
  rateHeaders: chatRateHeaders,
};

/** The generic format of gateways for videos. */
export default videoGenerations;
