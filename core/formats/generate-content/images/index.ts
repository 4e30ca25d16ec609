import { unsupportedContent } from '../../../sdk/errors.ts';
import type { ImageInput, ImageRequest, ImageResult, ImageTokens } from '../../../model/image.ts';
import type { OperationResult } from '../../../model/event.ts';
import type { JsonObject } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { reportForeign } from '../../_shared/foreign.ts';
import { defined } from '../../_shared/fields.ts';
import { defineCodec } from '../../_shared/define-codec.ts';
import { refuseContent } from '../../_shared/refuse.ts';
import type { Codec, Codecs, EncodedRequest, EncodeTarget } from '../../../sdk/format.ts';
import { methodPath } from '../request-out/index.ts';
import { writeSize } from './size.ts';
import { readImages } from './reply.ts';
import { formatName } from '../wire.ts';
import { lookupTable } from '../../../model/lookup-table.ts';

/** Ratios of models that answer in contents, and of those that predict. */
const contentRatios = '1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9'.split(' ');
const predictRatios = '1:1 3:4 4:3 9:16 16:9'.split(' ');

/** Most images of one prediction. Contents hold one. */
const mostPredicted = 4;

function making(operation: 'generate-image' | 'edit-image'): Codec<ImageRequest> {
  return defineCodec<ImageRequest>({
    format: formatName,
    operation,
    path: '',
    inlinesImages: true,
    decodeRequest: noClient,
    encodeRequest: (request, target) =>
      target.traits.images?.predicts === true ? predict(request, target) : content(request, target),
    split,
    join,
    decodeWhole: readImages,
    encodeWhole: noClient,
  });
}

/** Generates images with models that return images in chat. Clients of this format send chat requests, so no request is decoded here. */
export const images: Codecs = {
  'generate-image': making('generate-image'),
  'edit-image': making('edit-image'),
};

function noClient(): never {
  throw new Error('Clients of this format ask for images as for a chat.');
}

function split(request: ImageRequest, { images: traits }: ModelTraits): readonly ImageRequest[] {
  const atOnce = traits?.predicts === true ? mostPredicted : 1;
  const { count = 1 } = request;
  if (count <= atOnce) return [request];
  return Array.from({ length: Math.ceil(count / atOnce) }, (_, index) => ({
    ...request,
    count: Math.min(atOnce, count - index * atOnce),
  }));
}

function join(results: readonly OperationResult[]): ImageResult {
  const all = results as readonly ImageResult[];
  const tokens = all.reduce<ImageTokens | undefined>((sum, one) => sumTokens(sum, one.tokens), undefined);
  return {
    ...all[0],
    images: all.flatMap((result) => result.images),
    ...defined({ tokens }),
  };
}

function sumTokens(one: ImageTokens | undefined, other: ImageTokens | undefined): ImageTokens | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    inputText: one.inputText + other.inputText,
    inputImage: one.inputImage + other.inputImage,
    outputText: one.outputText + other.outputText,
    outputImage: one.outputImage + other.outputImage,
  };
}

/** Settings that neither kind of request supports. `auto` has no effect. */
function dropSettings(request: ImageRequest, { drop }: EncodeTarget): void {
  const { quality, background, style, delivery, partials = 0, user, extra } = request;
  reportForeign(extra, formatName, undefined, drop);
  if (quality !== undefined && quality !== 'auto') drop('quality');
  if (background !== undefined && background !== 'auto') drop('background');
  if (style !== undefined) drop('style');
  if (delivery === 'url') drop('response_format');
  if (partials > 0) drop('partial_images');
  if (user !== undefined) drop('user');
}

function content(request: ImageRequest, target: EncodeTarget): EncodedRequest {
  const { prompt, images: given, mask, fileFormat, compression } = request;
  const { model, traits, drop } = target;
  dropSettings(request, target);
  if (fileFormat !== undefined && fileFormat !== 'png') drop('output_format');
  if (compression !== undefined) drop('output_compression');
  if (mask !== undefined) refuseContent({ at: 'mask' }, 'a mask', formatName, target);
  const imageConfig = writeSize(request, contentRatios, traits, drop);
  return {
    ...methodPath(model, 'generateContent'),
    body: {
      contents: [{ role: 'user', parts: [{ text: prompt }, ...given.map(inlined)] }],
      generationConfig: {
        responseModalities: ['TEXT', 'IMAGE'],
        ...(Object.keys(imageConfig).length === 0 ? {} : { imageConfig }),
      },
    },
  };
}

function inlined(image: ImageInput, index: number): JsonObject {
  if (image.kind === 'data') return { inlineData: { mimeType: image.mimeType, data: image.data } };
  if (image.kind === 'file')
    throw unsupportedContent(`images[${index}]`, 'a file stored by another provider', formatName);
  throw new Error('An image was not read before its request was encoded.');
}

const outputTypes = lookupTable<string>({ png: 'image/png', jpeg: 'image/jpeg' });

function predict(request: ImageRequest, target: EncodeTarget): EncodedRequest {
  const { prompt, images: given, mask, count, fileFormat, compression } = request;
  const { model, traits, drop } = target;
  dropSettings(request, target);
  if (given.length > 0)
    throw unsupportedContent('image', 'an image to be changed', `${formatName} (:predict)`);
  if (mask !== undefined) refuseContent({ at: 'mask' }, 'a mask', formatName, target);
  const mimeType = outputTypes[fileFormat ?? ''];
  if (fileFormat !== undefined && mimeType === undefined) drop('output_format');
  const compresses = compression !== undefined && fileFormat === 'jpeg';
  if (compression !== undefined && !compresses) drop('output_compression');
  const outputOptions = mimeType && { mimeType, ...(compresses ? { compressionQuality: compression } : {}) };
  const { imageSize: sampleImageSize, ...ratio } = writeSize(request, predictRatios, traits, drop);
  return {
    ...methodPath(model, 'predict'),
    body: {
      instances: [{ prompt }],
      parameters: {
        sampleCount: count ?? 1,
        ...ratio,
        ...defined({ sampleImageSize, outputOptions }),
      },
    },
  };
}
