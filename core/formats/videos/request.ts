/** Requests of the videos format, in both directions. */
import { wrongType } from '../../sdk/errors.ts';
import { filesOf } from '../../model/form.ts';
import type { ImageInput } from '../../model/image.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import type { VideoRequest } from '../../model/video.ts';
import type { EncodedRequest, EncodeTarget, RouteParams } from '../../sdk/format.ts';
import { given, requiredModel } from '../_shared/check.ts';
import { extraOf } from '../_shared/spelling.ts';
import {
  limitImages,
  checkCount,
  gatewaySettings,
  imageOf,
  imagesOf,
  imageText,
  reportVideoSettings,
  optionalSeconds,
  optionalSize,
  ownExtra,
  promptOf,
  unread,
  videoSettings,
  addMetadata,
} from '../_shared/video-fields.ts';
import { uploadOf } from '../_shared/video-upload.ts';
import { requestedSize } from '../_shared/video-sizes.ts';
import { name } from './wire.ts';

const read = new Set(
  'model prompt seconds duration size input_reference image images metadata seed n user aspect_ratio resolution negative_prompt'.split(
    ' ',
  ),
);

/** The model's name; empty for a video that is made anew, whose model is that of the first. */
export function modelIn(body: JsonObject, { id }: RouteParams): string {
  return id === undefined ? requiredModel(body.model) : '';
}

/** A client's request. Throws 400 with the path. */
export function decode(body: JsonObject, params: RouteParams): VideoRequest {
  const model = modelIn(body, params);
  if (params.id !== undefined) return remix(body, params.id);
  const images = referencesIn(body, params);
  checkCount(body.n, 'n');
  const seconds = given(body.seconds)
    ? optionalSeconds(body.seconds, 'seconds')
    : optionalSeconds(body.duration, 'duration');
  const size = optionalSize(body.size, 'size');
  const settings = gatewaySettings(body);
  const extra = unread(body, read);
  return {
    operation: 'create-video',
    format: name,
    model,
    prompt: promptOf(body.prompt, []),
    images,
    ...videoSettings({ seconds, size, ...settings }),
    ...extraOf(name, extra),
  };
}

function remix(body: JsonObject, id: string): VideoRequest {
  return {
    operation: 'create-video',
    format: name,
    model: '',
    prompt: promptOf(body.prompt, []),
    images: [],
    remixOf: id,
  };
}

/** What the video begins with: a file of the form, or a URL in one of several spellings. */
function referencesIn(body: JsonObject, { form }: RouteParams): readonly ImageInput[] {
  const files = ['input_reference', 'image', 'images'].flatMap((field) => filesOf(form, field));
  if (files.length > 0) return files.map((upload) => ({ kind: 'upload', upload }));
  if (given(body.input_reference)) return [referenceOf(body.input_reference)];
  if (given(body.image)) return [imageOf(body.image, 'image')];
  return imagesOf(body.images, 'images');
}

function referenceOf(value: JsonValue): ImageInput {
  if (!isObject(value)) return imageOf(value, 'input_reference');
  if (typeof value.file_id === 'string') return { kind: 'file', id: value.file_id, format: name };
  if (!given(value.image_url)) throw wrongType('input_reference', 'a URL, or an object with image_url');
  return imageOf(value.image_url, 'input_reference.image_url');
}

/** The request as a provider of this format takes it: bytes of an image make it a form. */
export function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  const { prompt, remixOf } = request;
  if (remixOf !== undefined)
    return { path: `/videos/${encodeURIComponent(remixOf)}/remix`, body: { prompt } };
  const own = request.format === name;
  reportVideoSettings(
    request,
    own
      ? ['seconds', 'size', 'aspectRatio', 'resolution', 'seed', 'negativePrompt', 'user']
      : ['seconds', 'size', 'aspectRatio', 'resolution'],
    target,
  );
  const size = own ? request.size : requestedSize(request);
  const { seconds, aspectRatio, resolution, seed, negativePrompt, user } = request;
  const body: JsonObject = {
    model: target.model,
    prompt,
    ...(seconds === undefined ? {} : { seconds: String(Math.ceil(seconds)) }),
    ...(size === undefined ? {} : { size }),
    ...(own
      ? {
          ...(aspectRatio === undefined ? {} : { aspect_ratio: aspectRatio }),
          ...(resolution === undefined ? {} : { resolution }),
          ...(seed === undefined ? {} : { seed }),
          ...(negativePrompt === undefined ? {} : { negative_prompt: negativePrompt }),
          ...(user === undefined ? {} : { user }),
          ...ownExtra(request, name, target),
        }
      : {}),
  };
  const whole = addMetadata(body, request.metadata, target);
  const [image] = limitImages(request.images, 1, name, target);
  if (image === undefined) return { path: '/videos', body: whole };
  if (image.kind !== 'data') {
    const reference = image.kind === 'file' && image.format === name ? { file_id: image.id } : undefined;
    return {
      path: '/videos',
      body: {
        ...whole,
        input_reference: reference ?? { image_url: imageText(image, 'data-url', name) },
      },
    };
  }
  const fields = Object.entries(whole).map(([field, value]) => ({
    name: field,
    value: typeof value === 'string' ? value : JSON.stringify(value),
  }));
  return {
    path: '/videos',
    body: {},
    form: [...fields, { name: 'input_reference', file: uploadOf(image) }],
  };
}
