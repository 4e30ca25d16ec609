/** Videos of generateContent: `:predictLongRunning` and its operations. */
import { unsupportedContent, missingValue, wrongType } from '../../../sdk/errors.ts';
import type { ImageInput } from '../../../model/image.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import type { VideoRequest } from '../../../model/video.ts';
import type { EncodedRequest, EncodeTarget, RouteParams } from '../../../sdk/format.ts';
import { given, optionalArray, optionalObject, readObjects } from '../../_shared/check.ts';
import { extraOf } from '../../_shared/spelling.ts';
import { defineVideoCodecs } from '../../_shared/video-codec.ts';
import {
  limitImages,
  checkCount,
  ownExtra,
  promptOf,
  unread,
  videoSettings,
  addMetadata,
} from '../../_shared/video-fields.ts';
import { requestedRatio } from '../../_shared/video-sizes.ts';
import { videoFields, wholeSeconds } from '../../_shared/video-table.ts';
import { modelOf } from '../request-in/index.ts';
import { methodPath } from '../request-out/index.ts';
import { contentRequest, readReport, writeReport } from './report.ts';
import { formatName } from '../wire.ts';
import { defined, setOf } from '../../_shared/fields.ts';

const ratios = ['16:9', '9:16'];
const instanceFields = setOf('prompt image lastFrame referenceImages');

const fields = videoFields(
  {
    seconds: { name: 'durationSeconds', encode: wholeSeconds },
    aspectRatio: {
      name: 'aspectRatio',
      encode: (request, target) => requestedRatio(request, ratios, target),
    },
    resolution: 'resolution',
    seed: 'seed',
    negativePrompt: 'negativePrompt',
  },
  'parameters.',
);
const parameterFields = new Set([...fields.names, 'sampleCount', 'numberOfVideos']);

function decode(body: JsonObject, params: RouteParams): VideoRequest {
  const [first, ...more] = optionalArray(body.instances, 'instances') ?? [];
  if (first === undefined) throw missingValue('instances');
  if (!isObject(first)) throw wrongType('instances[0]', 'an object');
  if (more.length > 0) checkCount(more.length + 1, 'instances');
  const parameters = optionalObject(body.parameters, 'parameters') ?? {};
  checkCount(parameters.sampleCount, 'parameters.sampleCount');
  checkCount(parameters.numberOfVideos, 'parameters.numberOfVideos');
  const references = readObjects(first.referenceImages, 'instances[0].referenceImages', ({ image }, path) =>
    imageIn(image, `${path}.image`),
  );
  const images = [
    ...(given(first.image) ? [imageIn(first.image, 'instances[0].image')] : []),
    ...(given(first.lastFrame) ? [imageIn(first.lastFrame, 'instances[0].lastFrame')] : []),
    ...references,
  ];
  const instance = unread(first, instanceFields);
  const extra: JsonObject = {
    ...unread(parameters, parameterFields),
    ...(Object.keys(instance).length === 0 ? {} : { $instance: instance }),
  };
  return {
    operation: 'create-video',
    format: formatName,
    model: modelOf(params),
    prompt: promptOf(first.prompt, images),
    images,
    ...videoSettings({
      ...fields.decode(parameters),
      imageRole:
        references.length > 0
          ? 'reference'
          : given(first.lastFrame)
            ? 'first-and-last'
            : given(first.image)
              ? 'first'
              : undefined,
    }),
    ...extraOf(formatName, extra),
  };
}

function imageIn(value: JsonValue | undefined, path: string): ImageInput {
  if (!isObject(value)) throw wrongType(path, 'an object');
  const { bytesBase64Encoded: bytes, mimeType, inlineData, gcsUri } = value;
  const data = isObject(inlineData) ? inlineData.data : bytes;
  const type = isObject(inlineData) ? inlineData.mimeType : mimeType;
  if (typeof gcsUri === 'string')
    return {
      kind: 'file',
      id: gcsUri,
      format: formatName,
      ...(typeof type === 'string' ? { mimeType: type } : {}),
    };
  if (typeof data !== 'string') throw missingValue(`${path}.bytesBase64Encoded`);
  return { kind: 'data', data, mimeType: typeof type === 'string' ? type : 'image/png' };
}

function encode(request: VideoRequest, target: EncodeTarget): EncodedRequest {
  fields.report(request, target);
  const { $instance: instance, ...own } = ownExtra(request, formatName, target);
  const { prompt, imageRole } = request;
  const settings = fields.encode(request, target);
  const images = limitImages(request.images, imageRole === 'reference' ? 3 : 2, formatName, target).map(
    imageOut,
  );
  const [first, last] = images;
  const parameters = { ...own, ...settings };
  const whole = addMetadata(parameters, request.metadata, target);
  return {
    ...methodPath(target.model, 'predictLongRunning'),
    body: {
      instances: [
        {
          ...(isObject(instance) ? instance : {}),
          prompt,
          ...(imageRole === 'reference'
            ? { referenceImages: images.map((image) => ({ image, referenceType: 'asset' })) }
            : defined({ image: first, lastFrame: last })),
        },
      ],
      ...(Object.keys(whole).length === 0 ? {} : { parameters: whole }),
    },
  };
}

function imageOut(image: ImageInput): JsonObject {
  if (image.kind === 'data') return { bytesBase64Encoded: image.data, mimeType: image.mimeType };
  if (image.kind === 'file' && image.format === formatName)
    return { gcsUri: image.id, ...(image.mimeType === undefined ? {} : { mimeType: image.mimeType }) };
  throw unsupportedContent('settings.images', 'an image by its URL', formatName);
}

/** Videos as long-running operations: `{model}:predictLongRunning`. */
export const videos = defineVideoCodecs({
  format: formatName,
  words: { ...fields.words, 'settings.images': 'instances[0].image' },
  model: (_body, params) => modelOf(params),
  decode,
  encode,
  readReport,
  writeSubmitted: writeReport,
  writeStatus: writeReport,
  ask: ({ id }) => ({
    path: `/${id.split('/').map(encodeURIComponent).join('/')}`,
    method: 'GET',
    body: {},
  }),
  contentRequest,
});
