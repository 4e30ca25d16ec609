/** Requests of the generic video format, in both directions. */
import { missingValue, wrongValue } from '../../sdk/errors.ts';
import { filesOf } from '../../model/form.ts';
import type { ImageInput } from '../../model/image.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget, RouteParams } from '../../sdk/format.ts';
import { given, optionalString, requiredModel } from '../_shared/check.ts';
import { extraOf } from '../_shared/spelling.ts';
import {
  checkCount,
  gatewaySettings,
  imageOf,
  imagesOf,
  imageText,
  reportVideoSettings,
  optionalInteger,
  optionalSeconds,
  optionalSize,
  ownExtra,
  promptOf,
  unread,
  videoSettings,
  addMetadata,
} from '../_shared/video-fields.ts';
import { requestedSize } from '../_shared/video-sizes.ts';
import { name } from './wire.ts';

const read = new Set(
  'model prompt duration seconds size width height image images metadata seed n user aspect_ratio resolution negative_prompt response_format'.split(
    ' ',
  ),
);

/** A client's request. Throws 400 with the path. */
export function decode(body: JsonObject, params: RouteParams): VideoRequest {
  const images = imagesIn(body, params);
  checkCount(body.n, 'n');
  const format = optionalString(body.response_format, 'response_format');
  if (format !== undefined && format !== 'url') throw wrongValue('response_format', 'url');
  const seconds = given(body.duration)
    ? optionalSeconds(body.duration, 'duration')
    : optionalSeconds(body.seconds, 'seconds');
  const size = sizeIn(body);
  const settings = gatewaySettings(body);
  const extra = unread(body, read);
  return {
    operation: 'create-video',
    format: name,
    model: requiredModel(body.model),
    prompt: promptOf(body.prompt, images),
    images,
    ...videoSettings({ seconds, size, ...settings }),
    ...extraOf(name, extra),
  };
}

function imagesIn(body: JsonObject, { form }: RouteParams): readonly ImageInput[] {
  const files = ['image', 'images'].flatMap((field) => filesOf(form, field));
  if (files.length > 0) return files.map((upload) => ({ kind: 'upload', upload }));
  const first = given(body.image) && body.image !== '' ? [imageOf(body.image, 'image')] : [];
  return [...first, ...imagesOf(body.images, 'images')];
}

function sizeIn(body: JsonObject): string | undefined {
  const width = optionalInteger(body.width, 'width');
  const height = optionalInteger(body.height, 'height');
  if (width === undefined && height === undefined) return optionalSize(body.size, 'size');
  if (width === undefined) throw missingValue('width');
  if (height === undefined) throw missingValue('height');
  return optionalSize(`${width}x${height}`, 'width');
}

/** The request as another gateway takes it. */
export function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  reportVideoSettings(
    request,
    ['seconds', 'size', 'aspectRatio', 'resolution', 'seed', 'negativePrompt', 'user'],
    target,
  );
  const { prompt, images, seconds, seed, negativePrompt, user, metadata } = request;
  const size = requestedSize(request);
  const texts = images.map((image) => imageText(image, 'data-url', name));
  const inner: JsonObject = {
    ...(negativePrompt === undefined ? {} : { negative_prompt: negativePrompt }),
    ...(isObject(metadata) ? addMetadata({}, metadata, target) : {}),
  };
  return {
    path: '/video/generations',
    body: {
      ...ownExtra(request, name, target),
      model: target.model,
      prompt,
      ...(texts.length === 1 ? { image: texts[0] } : {}),
      ...(texts.length > 1 ? { images: texts } : {}),
      ...(seconds === undefined ? {} : { duration: seconds }),
      ...(size === undefined ? {} : { size }),
      ...(seed === undefined ? {} : { seed }),
      ...(user === undefined ? {} : { user }),
      ...(Object.keys(inner).length === 0 ? {} : { metadata: inner }),
    },
  };
}
