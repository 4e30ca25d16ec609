/** The vidu format for videos: `/ent/v2/text2video` and its like, and the tasks they make. */
import { missingValue, wrongValue } from '../../sdk/errors.ts';
import { lookupTable } from '../../model/lookup-table.ts';
import type { JsonObject, JsonValue } from '../../model/json.ts';
import type { VideoReport, VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget, Format, ReplyContext, Route } from '../../sdk/format.ts';
import { defined, isText, objectsOf, stringIn } from '../_shared/fields.ts';
import { redact } from '../_shared/redact.ts';
import { createdOf, defineVideoCodecs, modelOf, videoStates } from '../_shared/video-codec.ts';
import {
  addMetadata,
  ownExtra,
  frameRole,
  imagesOf,
  imageText,
  limitImages,
} from '../_shared/video-fields.ts';
import { videoDecoder, videoErrors, videoFields, wholeSeconds } from '../_shared/video-table.ts';
import { requestedRatio } from '../_shared/video-sizes.ts';

const name = 'vidu';

/** Least and most images that each path takes. */
const kinds = lookupTable<readonly [least: number, most: number]>({
  text2video: [0, 0],
  img2video: [1, 1],
  'start-end2video': [2, 2],
  reference2video: [1, 7],
});

const ratios = ['16:9', '9:16', '1:1', '4:3', '3:4'];

const states = videoStates({
  queued: ['queueing', 'created'],
  in_progress: ['processing'],
  completed: ['success'],
  failed: ['failed'],
  cancelled: ['cancelled', 'canceled'],
});

const reasons = lookupTable<string>({
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'TaskNotFound',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
});

/** Returns the path for so many images, used in this way. */
function kindFor({ images, imageRole }: VideoRequest): string {
  if (images.length === 0) return 'text2video';
  if (imageRole === 'reference' || images.length > 2) return 'reference2video';
  return images.length === 1 ? 'img2video' : 'start-end2video';
}

const fields = videoFields({
  seconds: { name: 'duration', encode: wholeSeconds },
  aspectRatio: {
    name: 'aspect_ratio',
    // A video between frames has their shape.
    encode: (request, target) =>
      /^(text|reference)2video$/.test(kindFor(request)) ? requestedRatio(request, ratios, target) : undefined,
  },
  resolution: 'resolution',
  seed: 'seed',
});

const decoder = videoDecoder({
  format: name,
  fields,
  imageFields: ['images'],
  decodeImages(body, { kind = 'text2video' }) {
    const images = imagesOf(body.images, 'images');
    const [least, most] = kinds[kind] ?? [0, 7];
    if (images.length < least && images.length === 0) throw missingValue('images');
    if (images.length < least || images.length > most)
      throw wrongValue(
        'images',
        least === most ? `${most} images on this path` : `${least} to ${most} images`,
      );
    return { images, imageRole: kind === 'reference2video' ? 'reference' : frameRole(images.length) };
  },
});

function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  fields.report(request, target);
  const images = limitImages(request.images, 7, name, target).map((image) =>
    imageText(image, 'data-url', name),
  );
  const body = {
    ...ownExtra(request, name, target),
    model: target.model,
    ...(images.length === 0 ? {} : { images }),
    ...(request.prompt === '' ? {} : { prompt: request.prompt }),
    ...fields.encode(request, target),
  };
  return { path: `/${kindFor(request)}`, body: addMetadata(body, request.metadata, target) };
}

/** Decodes the state of a task. Not all responses have the id of the task. */
function readReport(body: JsonObject): VideoReport {
  const { task_id: task, id, state: word, creations, err_code: code, err_msg: message } = body;
  const state = states.read(word);
  const [first] = objectsOf(creations);
  return {
    id: stringIn(task) ?? stringIn(id) ?? '',
    state,
    ...defined({
      url: stringIn(first?.url),
      thumbnailUrl: stringIn(first?.cover_url),
      error: state === 'failed' ? failureOf(code, message) : undefined,
    }),
  };
}

function failureOf(
  code: JsonValue | undefined,
  message: JsonValue | undefined,
): NonNullable<VideoReport['error']> {
  const reason = isText(code) ? `The provider failed with ${redact(code)}.` : 'The video could not be made.';
  return {
    code: isText(code) ? code : 'generation_failed',
    message: isText(message) ? redact(message) : reason,
  };
}

function writeSubmitted(report: VideoReport, context: ReplyContext): JsonObject {
  const { duration, seed, aspect_ratio, resolution, movement_amplitude, payload } = context.body;
  return {
    task_id: report.id,
    state: report.state === 'queued' ? 'created' : states.write(report.state ?? 'queued'),
    model: modelOf(report, context),
    prompt: report.task?.prompt ?? '',
    ...defined({ duration, seed, aspect_ratio, resolution, movement_amplitude, payload }),
    created_at: new Date(createdOf(report, context) * 1000).toISOString(),
  };
}

function writeStatus({ id, state = 'queued', error, url, thumbnailUrl }: VideoReport): JsonObject {
  const failure = state === 'cancelled' ? undefined : error;
  return {
    id,
    task_id: id,
    state: states.write(state),
    err_code: failure?.code ?? '',
    ...defined({ err_msg: failure?.message }),
    creations: url === undefined ? [] : [{ id, url, ...defined({ cover_url: thumbnailUrl }) }],
  };
}

const vidu: Format = {
  name,
  routes: Object.keys(kinds).map((kind): Route => ({
    method: 'POST',
    path: `/ent/v2/${kind}`,
    operation: 'create-video',
    params: () => ({ kind }),
  })),
  codecs: defineVideoCodecs({
    ...decoder,
    encode,
    readReport,
    writeSubmitted,
    writeStatus,
    ask: ({ id }) => ({ path: `/tasks/${encodeURIComponent(id)}/creations`, method: 'GET', body: {} }),
    cancel: ({ id }) => ({ path: `/tasks/${encodeURIComponent(id)}/cancel`, body: { id } }),
  }),
  ...videoErrors(({ status, param, message }, requestId) => ({
    code: status,
    reason: reasons[status] ?? (status < 500 ? 'BadRequest' : 'InternalError'),
    message,
    metadata: { trace_id: requestId, ...defined({ field: param }) },
  })),
};

/** The vidu format. */
export default vidu;
