/** Requests of the vidu format, in both directions. */
import { missingValue, wrongValue } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget, RouteParams } from '../../sdk/format.ts';
import { optionalString, requiredModel } from '../_shared/check.ts';
import { extraOf } from '../_shared/spelling.ts';
import {
  limitImages,
  frameRole,
  imagesOf,
  imageText,
  reportVideoSettings,
  optionalInteger,
  optionalRatio,
  optionalSeconds,
  ownExtra,
  promptOf,
  unread,
  videoSettings,
  addMetadata,
} from '../_shared/video-fields.ts';
import { requestedRatio, requestedResolution } from '../_shared/video-sizes.ts';
import { kinds, name, ratios } from './wire.ts';

const read = new Set('model prompt images duration seed aspect_ratio resolution'.split(' '));

/** How many images each path takes. */
const counts: Readonly<Record<string, readonly [least: number, most: number]>> = {
  text2video: [0, 0],
  img2video: [1, 1],
  'start-end2video': [2, 2],
  reference2video: [1, 7],
};

/** A client's request. Throws 400 with the path. */
export function decode(body: JsonObject, { kind = 'text2video' }: RouteParams): VideoRequest {
  const images = imagesOf(body.images, 'images');
  const [least, most] = counts[kind] ?? [0, 7];
  if (images.length < least && images.length === 0) throw missingValue('images');
  if (images.length < least || images.length > most)
    throw wrongValue('images', least === most ? `${most} images on this path` : `${least} to ${most} images`);
  const extra = unread(body, read);
  return {
    operation: 'create-video',
    format: name,
    model: requiredModel(body.model),
    prompt: promptOf(body.prompt, images),
    images,
    ...videoSettings({
      seconds: optionalSeconds(body.duration, 'duration'),
      aspectRatio: optionalRatio(body.aspect_ratio, 'aspect_ratio'),
      resolution: optionalString(body.resolution, 'resolution'),
      seed: optionalInteger(body.seed, 'seed'),
      imageRole: kind === 'reference2video' ? 'reference' : frameRole(images.length),
    }),
    ...extraOf(name, extra),
  };
}

/** The path for so many images, used in this way. */
function kindFor(images: number, role: VideoRequest['imageRole']): (typeof kinds)[number] {
  if (images === 0) return 'text2video';
  if (role === 'reference' || images > 2) return 'reference2video';
  return images === 1 ? 'img2video' : 'start-end2video';
}

/** The request as the provider takes it. */
export function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  reportVideoSettings(request, ['seconds', 'size', 'aspectRatio', 'resolution', 'seed'], target);
  const images = limitImages(request.images, 7, name, target).map((image) =>
    imageText(image, 'data-url', name),
  );
  const kind = kindFor(images.length, request.imageRole);
  const { prompt, seconds, seed } = request;
  const shaped = kind === 'text2video' || kind === 'reference2video';
  const ratio = shaped ? requestedRatio(request, ratios, target) : undefined;
  const resolution = requestedResolution(request);
  const body: JsonObject = {
    ...ownExtra(request, name, target),
    model: target.model,
    ...(images.length === 0 ? {} : { images }),
    ...(prompt === '' ? {} : { prompt }),
    ...(seconds === undefined ? {} : { duration: Math.ceil(seconds) }),
    ...(seed === undefined ? {} : { seed }),
    ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
    ...(resolution === undefined ? {} : { resolution }),
  };
  return { path: `/${kind}`, body: addMetadata(body, request.metadata, target) };
}
