/** Requests of the jimeng format, in both directions. */
import { wrongType, wrongValue } from '../../sdk/errors.ts';
import type { ImageInput } from '../../model/image.ts';
import type { JsonObject } from '../../model/json.ts';
import type { VideoRequest, VideoTaskRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget } from '../../sdk/format.ts';
import { given, requiredModel } from '../_shared/check.ts';
import { extraOf } from '../_shared/spelling.ts';
import {
  limitImages,
  fiveOrTen,
  frameRole,
  imagesOf,
  imageText,
  reportVideoSettings,
  optionalInteger,
  optionalRatio,
  ownExtra,
  promptOf,
  unread,
  videoSettings,
  addMetadata,
} from '../_shared/video-fields.ts';
import { requestedRatio } from '../_shared/video-sizes.ts';
import { frameRate, name, ratios, resultQuery, submitQuery } from './wire.ts';

const read = new Set('req_key prompt image_urls binary_data_base64 seed aspect_ratio frames'.split(' '));

/** The largest image that the provider takes, in characters of base64: 4.7 MB. */
const largestImage = Math.floor((4.7 * 1024 * 1024 * 4) / 3);

/** The model's name, which here is the key of the service. Throws 400 when it is missing. */
export function modelIn(body: JsonObject): string {
  return requiredModel(body.req_key, 'req_key');
}

/** A client's request. Throws 400 with the path. */
export function decode(body: JsonObject): VideoRequest {
  const urls = imagesOf(body.image_urls, 'image_urls');
  const wrong = urls.findIndex(({ kind }) => kind !== 'url');
  if (wrong >= 0) throw wrongType(`image_urls[${wrong}]`, 'a URL');
  const images = urls.length > 0 ? urls : imagesOf(body.binary_data_base64, 'binary_data_base64');
  const frames = optionalInteger(body.frames, 'frames');
  if (frames !== undefined && (frames < 2 || frames > 3600 * frameRate))
    throw wrongValue('frames', 'the number of frames, such as 121');
  const seed = optionalInteger(body.seed, 'seed');
  const extra = unread(body, read);
  return {
    operation: 'create-video',
    format: name,
    model: modelIn(body),
    prompt: promptOf(body.prompt, images),
    images,
    ...videoSettings({
      seconds: frames === undefined ? undefined : (frames - 1) / frameRate,
      aspectRatio: optionalRatio(body.aspect_ratio, 'aspect_ratio'),
      // Minus one asks for any.
      seed: seed === -1 ? undefined : seed,
      imageRole: frameRole(images.length),
    }),
    ...extraOf(name, extra),
  };
}

/** The key of the service for a model: `jimeng_v30` stands for the three that take none, one or two images. */
export function serviceKey(model: string, images: number): string {
  const [, version] = /^jimeng_(v\d.*)$/.exec(model) ?? [];
  if (version === undefined) return model;
  const service = images === 0 ? 't2v' : images === 1 ? 'i2v_first' : 'i2v_first_tail';
  return `jimeng_${service}_${version}`;
}

/** The request as the provider takes it. */
export function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  reportVideoSettings(request, ['seconds', 'size', 'aspectRatio', 'seed'], target);
  const images = limitImages(request.images, 2, name, target);
  const frames = framesFor(request, target);
  const ratio = images.length > 0 ? undefined : requestedRatio(request, ratios, target);
  const { prompt, seed } = request;
  const body: JsonObject = {
    ...ownExtra(request, name, target),
    req_key: serviceKey(target.model, request.images.length),
    ...(prompt === '' ? {} : { prompt }),
    ...imagesFor(images),
    ...(seed === undefined ? {} : { seed }),
    ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
    ...(frames === undefined ? {} : { frames }),
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

/** Five seconds or ten. */
function framesFor({ format, seconds }: VideoRequest, target: EncodeTarget): number | undefined {
  if (!given(seconds)) return undefined;
  return Math.round((format === name ? seconds : fiveOrTen(seconds, target)) * frameRate) + 1;
}

/** How the provider is asked for a task: with the same key. */
export function ask({ id, model, images }: VideoTaskRequest): EncodedRequest {
  return { path: '/', query: resultQuery, body: { req_key: serviceKey(model, images), task_id: id } };
}
