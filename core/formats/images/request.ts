/** Decodes and encodes requests of `/v1/images` to generate, edit or vary images, as JSON or multipart forms. */
import { wrongType, wrongValue } from '../../sdk/errors.ts';
import { plainName, type FormPart } from '../../model/form.ts';
import type { ImageInput, ImageRequest } from '../../model/image.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { given, optionalBoolean, optionalString, requiredModel, requiredString } from '../_shared/check.ts';
import { fieldsBeside } from '../_shared/fields.ts';
import { reportForeign } from '../_shared/foreign.ts';
import { extraOf, spellingIn } from '../_shared/spelling.ts';
import type { EncodedRequest, EncodeTarget, RouteParams } from '../../sdk/format.ts';
import { namedImage, namedImages, uploadedMask, uploadsOf, writeImage } from './parts.ts';
import { asBoolean, readSettings, settingNames, typed, writeSettings } from './settings.ts';
import { formatName, paths, type ImageOperation } from './wire.ts';

/** Images and mask of a request, and how they were spelled. */
interface Pictures {
  readonly images: readonly ImageInput[];
  readonly mask?: ImageInput | undefined;
  readonly spelling: JsonObject;
}

/** Decodes a request: JSON, or a form whose fields are texts. Throws 400 with the path. */
export function decodeRequest(
  operation: ImageOperation,
): (body: JsonObject, params: RouteParams) => ImageRequest {
  return (wire, params) => {
    const body = params.form === undefined ? wire : typed(wire);
    const settings = readSettings(body, operation);
    const { images, mask, spelling } = picturesOf(operation, body, params);
    const { model, prompt } = body;
    return {
      operation,
      format: formatName,
      model: requiredModel(model),
      prompt: promptOf(prompt, operation),
      images,
      ...(mask === undefined ? {} : { mask }),
      ...settings,
      ...extraOf(
        formatName,
        fieldsBeside(body, operation === 'generate-image' ? read : readWithImages),
        spelling,
      ),
    };
  };
}

/** Reads the model and the stream flag. */
export function peek(operation: ImageOperation): (
  body: JsonObject,
  params: RouteParams,
) => {
  readonly model: string;
  readonly stream: boolean;
} {
  return ({ model, stream }, { form }) => ({
    model: requiredModel(model),
    stream:
      operation !== 'vary-image' &&
      optionalBoolean(form === undefined ? stream : asBoolean(stream), 'stream') === true,
  });
}

function promptOf(value: JsonValue | undefined, operation: ImageOperation): string {
  if (operation === 'vary-image') return optionalString(value, 'prompt') ?? '';
  const prompt = requiredString(value, 'prompt');
  if (prompt.trim() === '') throw wrongValue('prompt', 'a text that is not empty');
  return prompt;
}

function picturesOf(operation: ImageOperation, body: JsonObject, params: RouteParams): Pictures {
  const { form } = params;
  if (operation === 'generate-image') return { images: [], spelling: {} };
  if (form !== undefined) {
    const texts = form.flatMap((part) => ('value' in part ? [[part.name, part.value]] : []));
    const files = form.flatMap((part) =>
      'file' in part && !/^(image|mask)$/.test(plainName(part.name)) ? [plainName(part.name)] : [],
    );
    return {
      images: uploadsOf(body, params),
      mask: uploadedMask(body, params),
      spelling: { $parts: texts, ...(files.length === 0 ? {} : { $files: files }) },
    };
  }
  const { images, others } = namedImages(body.images);
  const mask = given(body.mask) ? namedImage(body.mask, 'mask') : undefined;
  return {
    images,
    mask: mask?.image,
    spelling: {
      ...(others.some(isFull) ? { $images: others } : {}),
      ...(mask !== undefined && isFull(mask.other) ? { $mask: mask.other } : {}),
    },
  };
}

function isFull(object: JsonObject): boolean {
  return Object.keys(object).length > 0;
}

/** Members that are decoded; others go to `extra`. */
const read: ReadonlySet<string> = new Set(['model', 'prompt', ...settingNames]);
const readWithImages: ReadonlySet<string> = new Set([...read, 'image', 'images', 'mask']);

/** Encodes a request to a provider: a form where its images are uploaded files, else JSON. */
export function encodeRequest(request: ImageRequest, target: EncodeTarget): EncodedRequest {
  const { operation, images, mask, extra, prompt } = request;
  const { drop } = target;
  reportForeign(extra, formatName, undefined, drop);
  const own = extra?.[formatName] ?? {};
  const spelling = spellingIn(extra, formatName);
  const path = paths[operation];
  const settings = writeSettings(request, target);
  const baseFields = {
    model: target.model,
    ...(operation === 'vary-image' && prompt === '' ? {} : { prompt }),
  };
  if (images.every(({ kind }) => kind !== 'upload') && mask?.kind !== 'upload') {
    const rests = Array.isArray(spelling.$images) ? (spelling.$images as readonly JsonObject[]) : [];
    const pictures =
      operation === 'generate-image'
        ? {}
        : {
            images: images.map((image, index) => writeImage(image, rests[index])),
            ...(mask === undefined
              ? {}
              : { mask: writeImage(mask, isObject(spelling.$mask) ? spelling.$mask : undefined) }),
          };
    return { path, body: { ...baseFields, ...pictures, ...settings, ...own } };
  }
  if (Array.isArray(spelling.$files))
    for (const name of spelling.$files as readonly string[]) drop(name, 'content');
  const parts: FormPart[] = Object.entries({ ...baseFields, ...settings }).map(([name, value]) => ({
    name,
    value: String(value),
  }));
  for (const image of images) {
    if (image.kind !== 'upload') throw wrongType('image', 'a file');
    parts.push({ name: images.length > 1 ? 'image[]' : 'image', file: image.upload });
  }
  if (mask?.kind === 'upload') parts.push({ name: 'mask', file: mask.upload });
  const texts = Array.isArray(spelling.$parts)
    ? (spelling.$parts as readonly (readonly [string, string])[])
    : [];
  for (const [name, value] of texts) if (Object.hasOwn(own, plainName(name))) parts.push({ name, value });
  return { path, body: {}, form: parts };
}
