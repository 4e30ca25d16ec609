/** The kling format for videos: `/kling/v1/videos/text2video` and `image2video`, and the tasks they make. */
import { missingValue, wrongValue, type GatewayError } from '../../sdk/errors.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import { lookupTable } from '../../model/lookup-table.ts';
import type { VideoReport, VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget, Format, ReplyContext, Route } from '../../sdk/format.ts';
import { given, optionalNumber, optionalString } from '../_shared/check.ts';
import { defined, objectsOf, stringIn } from '../_shared/fields.ts';
import { upstreamError } from '../_shared/upstream-error/index.ts';
import { defineVideoCodecs, noTask, videoStates } from '../_shared/video-codec.ts';
import {
  addMetadata,
  ownExtra,
  fiveOrTen,
  imageOf,
  imageText,
  limitImages,
} from '../_shared/video-fields.ts';
import { videoDecoder, videoErrors, videoFields } from '../_shared/video-table.ts';
import { contentRefused, videoError } from '../_shared/video-report.ts';
import { requestedRatio } from '../_shared/video-sizes.ts';

const name = 'kling';

const ratios = ['16:9', '9:16', '1:1'];

const longestPrompt = 2500;

const states = videoStates({
  queued: ['submitted'],
  in_progress: ['processing'],
  completed: ['succeed'],
  failed: ['failed'],
  cancelled: [],
});

/** Codes of errors, by code or status of the gateway. */
const codes = lookupTable<number>({
  content_policy_violation: 1301,
  insufficient_quota: 1102,
  400: 1201,
  401: 1002,
  403: 1103,
  404: 1203,
  413: 1201,
  429: 1302,
  500: 5000,
  502: 5000,
  503: 5001,
  504: 5002,
});

/** Statuses of refusals, by code. */
const statuses: readonly (readonly [from: number, to: number, status: number])[] = [
  [1000, 1004, 401],
  [1100, 1102, 402],
  [1103, 1103, 403],
  [1200, 1299, 400],
  [1302, 1303, 429],
  [1304, 1304, 403],
  [5000, 5000, 500],
  [5001, 5001, 503],
  [5002, 5002, 504],
];

/** Returns the path of videos with so many images. */
function pathFor(images: number): string {
  return `/v1/videos/${images > 0 ? 'image2video' : 'text2video'}`;
}

const fields = videoFields({
  seconds: {
    name: 'duration',
    // Clients of this format may know of other lengths.
    encode: ({ format, seconds }, target) =>
      seconds === undefined ? undefined : String(format === name ? seconds : fiveOrTen(seconds, target)),
  },
  aspectRatio: {
    name: 'aspect_ratio',
    encode: (request, target) =>
      request.images.length === 0 ? requestedRatio(request, ratios, target) : undefined,
  },
  negativePrompt: 'negative_prompt',
});

const decoder = videoDecoder({
  format: name,
  fields,
  modelFields: ['model_name', 'model'],
  imageFields: ['image', 'image_tail'],
  decodeImages(body, { kind }) {
    const used = ['image', 'image_tail'].filter((field) => given(body[field]) && body[field] !== '');
    const images = used.map((field) => imageOf(body[field], field));
    if (kind === 'image2video' && images.length === 0) throw missingValue('image');
    return {
      images,
      imageRole: used.length === 2 ? 'first-and-last' : used[0] === 'image' ? 'first' : undefined,
    };
  },
  check({ prompt, cfg_scale: scale, mode }) {
    if (typeof prompt === 'string' && prompt.length > longestPrompt)
      throw wrongValue('prompt', `at most ${longestPrompt} characters long`);
    optionalNumber(scale, 'cfg_scale', { min: 0, max: 1 });
    optionalString(mode, 'mode');
  },
});

function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  fields.report(request, target);
  const [image, tail] = limitImages(request.images, 2, name, target).map((one) =>
    imageText(one, 'base64', name),
  );
  const body = {
    ...ownExtra(request, name, target),
    model_name: target.model,
    ...(request.prompt === '' ? {} : { prompt: request.prompt }),
    ...fields.encode(request, target),
    ...defined({ image, image_tail: tail }),
  };
  return { path: pathFor(request.images.length), body: addMetadata(body, request.metadata, target) };
}

function readReport(body: JsonObject): VideoReport {
  if (body.code !== 0 && body.code !== undefined) throw refusalOf(body);
  const { data } = body;
  if (!isObject(data) || typeof data.task_id !== 'string') throw noTask();
  const { task_id: id, task_status: word, task_status_msg: reason, task_result: result } = data;
  const state = states.read(word);
  const video = isObject(result) ? objectsOf(result.videos)[0] : undefined;
  const seconds = Number(video?.duration ?? Number.NaN);
  return {
    id,
    state,
    ...defined({
      url: stringIn(video?.url),
      seconds: seconds > 0 ? seconds : undefined,
      error: state === 'failed' ? videoError(undefined, reason === '' ? undefined : reason) : undefined,
    }),
  };
}

function refusalOf({ code, message }: JsonObject): GatewayError {
  const text = stringIn(message) ?? '';
  if (code === 1300 || code === 1301) return contentRefused(text);
  const number = typeof code === 'number' ? code : 0;
  const [, , status = 500] = statuses.find(([from, to]) => number >= from && number <= to) ?? [];
  return upstreamError(status, JSON.stringify({ message: text }));
}

function writeReport(report: VideoReport, { requestId, created }: ReplyContext): JsonObject {
  const { id, state = 'queued', error, url, seconds, task } = report;
  const video = { id, url, ...defined({ duration: seconds === undefined ? undefined : String(seconds) }) };
  return {
    code: 0,
    message: 'SUCCEED',
    request_id: requestId,
    data: {
      task_id: id,
      task_status: states.write(state),
      ...defined({ task_status_msg: error?.message }),
      created_at: task?.createdAt ?? created * 1000,
      updated_at: task?.updatedAt ?? created * 1000,
      ...defined({ task_result: url === undefined ? undefined : { videos: [video] } }),
    },
  };
}

const kling: Format = {
  name,
  routes: ['text2video', 'image2video'].map((kind): Route => ({
    method: 'POST',
    path: `/kling/v1/videos/${kind}`,
    operation: 'create-video',
    params: () => ({ kind }),
  })),
  codecs: defineVideoCodecs({
    ...decoder,
    encode,
    readReport,
    writeSubmitted: writeReport,
    writeStatus: writeReport,
    ask: ({ id, images }) => ({
      path: `${pathFor(images)}/${encodeURIComponent(id)}`,
      method: 'GET',
      body: {},
    }),
  }),
  ...videoErrors(({ code, status, message }, requestId) => ({
    code: codes[code] ?? codes[status] ?? (status < 500 ? 1200 : 5000),
    message,
    request_id: requestId,
  })),
};

/** The kling format. */
export default kling;
