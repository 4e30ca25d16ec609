/** The jimeng format for videos: one path, whose query selects creating or polling a video. */
import { wrongType, wrongValue, type GatewayError } from '../../sdk/errors.ts';
import type { ImageInput } from '../../model/image.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { VideoReport, VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget, Format, ReplyContext } from '../../sdk/format.ts';
import { defined, isText, stringIn } from '../_shared/fields.ts';
import { upstreamError } from '../_shared/upstream-error/index.ts';
import { defineVideoCodecs, noTask, videoStates } from '../_shared/video-codec.ts';
import {
  addMetadata,
  fiveOrTen,
  frameRole,
  imagesOf,
  imageText,
  limitImages,
  optionalInteger,
  ownExtra,
} from '../_shared/video-fields.ts';
import { contentRefused } from '../_shared/video-report.ts';
import { requestedRatio } from '../_shared/video-sizes.ts';
import { videoDecoder, videoErrors, videoFields } from '../_shared/video-table.ts';

const name = 'jimeng';

const submitQuery = { Action: 'CVSync2AsyncSubmitTask', Version: '2022-08-31' };
const resultQuery = { Action: 'CVSync2AsyncGetResult', Version: '2022-08-31' };

const ratios = ['16:9', '4:3', '1:1', '3:4', '9:16', '21:9'];

/** Frames in a second; one more is the first. */
const frameRate = 24;

/** Largest image that the provider takes, in characters of base64: 4.7 MB. */
const largestImage = Math.floor((4.7 * 1024 * 1024 * 4) / 3);

/** Code of a response that is no refusal. */
const soundCode = 10_000;

/** Failures are reported by codes, not by states. */
const states = videoStates({
  queued: ['in_queue'],
  in_progress: ['generating'],
  completed: ['done'],
  failed: ['not_found', 'expired'],
  cancelled: [],
});

const fields = videoFields({
  seconds: {
    name: 'frames',
    decode(body) {
      const frames = optionalInteger(body.frames, 'frames');
      if (frames === undefined) return undefined;
      if (frames < 2 || frames > 3600 * frameRate)
        throw wrongValue('frames', 'the number of frames, such as 121');
      return (frames - 1) / frameRate;
    },
    encode: ({ format, seconds }, target) =>
      seconds === undefined
        ? undefined
        : Math.round((format === name ? seconds : fiveOrTen(seconds, target)) * frameRate) + 1,
  },
  aspectRatio: {
    name: 'aspect_ratio',
    encode: (request, target) =>
      request.images.length === 0 ? requestedRatio(request, ratios, target) : undefined,
  },
  seed: {
    name: 'seed',
    decode({ seed }) {
      const value = optionalInteger(seed, 'seed');
      // Minus one means a random seed.
      return value === -1 ? undefined : value;
    },
  },
});

const decoder = videoDecoder({
  format: name,
  fields,
  // The model's name is the key of the service.
  modelFields: ['req_key'],
  imageFields: ['image_urls', 'binary_data_base64'],
  decodeImages(body) {
    const urls = imagesOf(body.image_urls, 'image_urls');
    const wrong = urls.findIndex(({ kind }) => kind !== 'url');
    if (wrong >= 0) throw wrongType(`image_urls[${wrong}]`, 'a URL');
    const images = urls.length > 0 ? urls : imagesOf(body.binary_data_base64, 'binary_data_base64');
    return { images, imageRole: frameRole(images.length) };
  },
});

/** Returns the key of the service for a model: `jimeng_v30` stands for the three that take none, one or two images. */
function serviceKey(model: string, images: number): string {
  const [, version] = /^jimeng_(v\d.*)$/.exec(model) ?? [];
  if (version === undefined) return model;
  const service = images === 0 ? 't2v' : images === 1 ? 'i2v_first' : 'i2v_first_tail';
  return `jimeng_${service}_${version}`;
}

function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  fields.report(request, target);
  const images = limitImages(request.images, 2, name, target);
  const body = {
    ...ownExtra(request, name, target),
    req_key: serviceKey(target.model, request.images.length),
    ...(request.prompt === '' ? {} : { prompt: request.prompt }),
    ...imagesFor(images),
    ...fields.encode(request, target),
  };
  return { path: '/', query: submitQuery, body: addMetadata(body, request.metadata, target) };
}

function imagesFor(images: readonly ImageInput[]): JsonObject {
  if (images.length === 0) return {};
  const texts = images.map((image) => imageText(image, 'base64', name));
  if (images.every(({ kind }) => kind === 'url')) return { image_urls: texts };
  const urls = images.findIndex(({ kind }) => kind === 'url');
  if (urls >= 0) throw wrongValue('settings.images', 'all URLs, or all bytes');
  if (texts.some((text) => text.length > largestImage))
    throw wrongValue('settings.images', 'at most 4.7 MB each');
  return { binary_data_base64: texts };
}

/** Throws GatewayError if the provider's `code` is an error. */
function readReport(body: JsonObject): VideoReport {
  if (body.code !== soundCode) throw refusalOf(body);
  const { data } = body;
  if (!isObject(data)) throw noTask();
  const { task_id: id, status, video_url: url } = data;
  if (!isText(id) && status === undefined) throw noTask();
  const state = status === undefined ? 'queued' : states.read(status);
  const word = String(status);
  return {
    id: stringIn(id) ?? '',
    state,
    ...defined({
      url: isText(url) ? url : undefined,
      error:
        state === 'failed'
          ? { code: word, message: `The provider says that the task is ${word}.` }
          : undefined,
    }),
  };
}

/** Returns true for the codes of reviews of what goes in and of what comes out. */
function isPolicy(code: number): boolean {
  return (code >= 50_411 && code <= 50_413) || (code >= 50_511 && code <= 50_519);
}

function refusalOf({ code, message }: JsonObject): GatewayError {
  const number = typeof code === 'number' ? code : 0;
  const text = typeof message === 'string' ? message : '';
  if (isPolicy(number)) return contentRefused(text);
  const status =
    number === 50_429 || number === 50_430
      ? 429
      : number === 50_400
        ? 403
        : number >= 50_200 && number < 50_300
          ? 400
          : 500;
  return upstreamError(status, JSON.stringify({ message: text }));
}

function sound({ requestId }: ReplyContext, data: JsonObject): JsonObject {
  return {
    code: soundCode,
    data,
    message: 'Success',
    request_id: requestId,
    status: soundCode,
    time_elapsed: '0ms',
  };
}

function writeStatus({ state = 'queued', error, url }: VideoReport, context: ReplyContext): JsonObject {
  if (state === 'failed' || state === 'cancelled') {
    const own = Number(error?.code);
    const code = error?.code === 'content_policy_violation' ? 50_511 : isPolicy(own) ? own : 50_500;
    return {
      code,
      data: null,
      message: error?.message ?? 'The video could not be made.',
      request_id: context.requestId,
      status: code,
      time_elapsed: '0ms',
    };
  }
  return sound(context, {
    status: states.write(state),
    video_url: url ?? '',
    binary_data_base64: [],
    image_urls: null,
    resp_data: '',
  });
}

function codeOf({ code, status }: GatewayError): number {
  if (code === 'content_policy_violation') return 50_411;
  if (status === 401 || status === 403) return 50_400;
  if (status === 429) return 50_429;
  if (status < 500) return 50_215;
  return status === 503 ? 50_501 : 50_500;
}

const jimeng: Format = {
  name,
  routes: [
    {
      method: 'POST',
      path: '/jimeng',
      operation: 'create-video',
      query: { Action: submitQuery.Action },
    },
  ],
  codecs: defineVideoCodecs({
    ...decoder,
    encode,
    readReport,
    writeSubmitted: ({ id }, context) => sound(context, { task_id: id }),
    writeStatus,
    ask: ({ id, model, images }) => ({
      path: '/',
      query: resultQuery,
      body: { req_key: serviceKey(model, images), task_id: id },
    }),
  }),
  ...videoErrors((error, requestId) => {
    const code = codeOf(error);
    return { code, data: null, message: error.message, request_id: requestId, status: code };
  }),
};

/** The jimeng format. */
export default jimeng;
