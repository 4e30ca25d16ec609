/** Requests of the kling format, in both directions. */
import { missingValue, wrongValue } from '../../sdk/errors.ts';
import type { JsonObject } from '../../model/json.ts';
import type { VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget, RouteParams } from '../../sdk/format.ts';
import { given, optionalNumber, optionalString } from '../_shared/check.ts';
import { extraOf } from '../_shared/spelling.ts';
import {
  limitImages,
  fiveOrTen,
  imageOf,
  imageText,
  reportVideoSettings,
  optionalRatio,
  optionalSeconds,
  ownExtra,
  promptOf,
  unread,
  videoSettings,
  addMetadata,
} from '../_shared/video-fields.ts';
import { requestedRatio } from '../_shared/video-sizes.ts';
import { name, ratios } from './wire.ts';

const read = new Set(
  'model_name model prompt negative_prompt duration aspect_ratio image image_tail'.split(' '),
);
const longestPrompt = 2500;

/** The model's name. Throws 400 when it is missing. */
export function modelIn(body: JsonObject): string {
  const model = optionalString(body.model_name, 'model_name') ?? optionalString(body.model, 'model');
  if (model === undefined || model === '') throw missingValue('model_name');
  return model;
}

/** A client's request. Throws 400 with the path. */
export function decode(body: JsonObject, { kind }: RouteParams): VideoRequest {
  const images = ['image', 'image_tail'].flatMap((field) =>
    given(body[field]) && body[field] !== '' ? [imageOf(body[field], field)] : [],
  );
  if (kind === 'image2video' && images.length === 0) throw missingValue('image');
  const prompt = promptOf(body.prompt, images);
  if (prompt.length > longestPrompt) throw wrongValue('prompt', `at most ${longestPrompt} characters long`);
  optionalNumber(body.cfg_scale, 'cfg_scale', { min: 0, max: 1 });
  optionalString(body.mode, 'mode');
  const extra = unread(body, read);
  const first = given(body.image) && body.image !== '';
  return {
    operation: 'create-video',
    format: name,
    model: modelIn(body),
    prompt,
    images,
    ...videoSettings({
      seconds: optionalSeconds(body.duration, 'duration'),
      aspectRatio: optionalRatio(body.aspect_ratio, 'aspect_ratio'),
      negativePrompt: optionalString(body.negative_prompt, 'negative_prompt'),
      imageRole: images.length === 2 ? 'first-and-last' : first ? 'first' : undefined,
    }),
    ...extraOf(name, extra),
  };
}

/** Which of the two paths a video of so many images belongs to. */
export function pathFor(images: number): string {
  return `/v1/videos/${images > 0 ? 'image2video' : 'text2video'}`;
}

/** The request as the provider takes it. */
export function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  reportVideoSettings(request, ['seconds', 'size', 'aspectRatio', 'negativePrompt'], target);
  const [image, tail] = limitImages(request.images, 2, name, target);
  const ratio = image === undefined ? requestedRatio(request, ratios, target) : undefined;
  const seconds = secondsFor(request, target);
  const { prompt, negativePrompt } = request;
  const body: JsonObject = {
    ...ownExtra(request, name, target),
    model_name: target.model,
    ...(prompt === '' ? {} : { prompt }),
    ...(negativePrompt === undefined ? {} : { negative_prompt: negativePrompt }),
    ...(seconds === undefined ? {} : { duration: seconds }),
    ...(ratio === undefined ? {} : { aspect_ratio: ratio }),
    ...(image === undefined ? {} : { image: imageText(image, 'base64', name) }),
    ...(tail === undefined ? {} : { image_tail: imageText(tail, 'base64', name) }),
  };
  return { path: pathFor(request.images.length), body: addMetadata(body, request.metadata, target) };
}

/** Five seconds or ten; the provider's own clients may know of more. */
function secondsFor({ format, seconds }: VideoRequest, target: EncodeTarget): string | undefined {
  if (seconds === undefined) return undefined;
  return String(format === name ? seconds : fiveOrTen(seconds, target));
}
