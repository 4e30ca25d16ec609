/** Input images and masks of image requests: files of a form, data URLs, addresses and file ids. */
import { GatewayError, missingValue, wrongType } from '../../sdk/errors.ts';
import { filesOf, type Upload } from '../../model/form.ts';
import type { ImageInput } from '../../model/image.ts';
import { isObject, type JsonObject, type JsonValue } from '../../model/json.ts';
import { mediaKind } from '../../model/media-kind.ts';
import { given, optionalArray, optionalString } from '../_shared/check.ts';
import { parseDataUrl, toDataUrl } from '../_shared/data-url.ts';
import type { RouteParams } from '../../sdk/format.ts';
import { formatName } from './wire.ts';

/** Returns the images of a form. Throws 400 if there is none, or if the bytes of one are not an image. */
export function uploadsOf({ image }: JsonObject, { form }: RouteParams): readonly ImageInput[] {
  const files = filesOf(form, 'image');
  if (files.length === 0) throw given(image) ? wrongType('image', 'a file') : missingValue('image');
  return files.map((file) => ({ kind: 'upload', upload: checked(file, 'image') }));
}

/** Returns the mask of a form. */
export function uploadedMask({ mask }: JsonObject, { form }: RouteParams): ImageInput | undefined {
  const [file, another] = filesOf(form, 'mask');
  if (another !== undefined)
    throw new GatewayError('invalid_value', 'mask must be given once.', { param: 'mask' });
  if (file !== undefined) return { kind: 'upload', upload: checked(file, 'mask') };
  if (given(mask)) throw wrongType('mask', 'a file');
  return undefined;
}

function checked(file: Upload, param: string): Upload {
  if (file.size === 0) throw new GatewayError('invalid_value', `${param} is empty.`, { param });
  const kind = mediaKind(file.head);
  if (kind?.startsWith('image/') === true) return file;
  throw new GatewayError(
    'invalid_value',
    `${param} must be an image: PNG, JPEG, WebP or another that can be edited. Its content is ${kind ?? 'of a kind that is not known'}.`,
    { param },
  );
}

/** Decodes the images that a JSON body names, and returns the other members of each beside them. */
export function namedImages(value: JsonValue | undefined): {
  readonly images: readonly ImageInput[];
  readonly others: readonly JsonObject[];
} {
  const list = optionalArray(value, 'images') ?? [];
  if (list.length === 0) throw missingValue('images');
  const read = list.map((one, index) => namedImage(one, `images[${index}]`));
  return { images: read.map(({ image }) => image), others: read.map(({ other }) => other) };
}

/** Decodes an image that is given by URL, as a data URL, or by the id of a file at the provider. */
export function namedImage(
  value: JsonValue | undefined,
  path: string,
): { readonly image: ImageInput; readonly other: JsonObject } {
  if (!isObject(value)) throw wrongType(path, 'an object');
  const { image_url: address, file_id: file, ...other } = value;
  const id = optionalString(file, `${path}.file_id`);
  const url = optionalString(address, `${path}.image_url`);
  if (id !== undefined && url !== undefined)
    throw new GatewayError('invalid_value', `${path} must have either image_url or file_id.`, {
      param: path,
    });
  if (id !== undefined) return { image: { kind: 'file', id, format: formatName }, other };
  if (url === undefined) throw missingValue(`${path}.image_url`);
  if (!/^data:/i.test(url)) return { image: { kind: 'url', url }, other };
  const data = parseDataUrl(url);
  if (data === undefined || !data.mimeType.startsWith('image/'))
    throw new GatewayError('invalid_value', `${path}.image_url must hold an image.`, {
      param: `${path}.image_url`,
    });
  return { image: { kind: 'data', ...data }, other };
}

/** Encodes an image for a JSON body. */
export function writeImage(image: ImageInput, other: JsonObject = {}): JsonObject {
  switch (image.kind) {
    case 'data':
      return { image_url: toDataUrl(image.mimeType, image.data), ...other };
    case 'url':
      return { image_url: image.url, ...other };
    case 'file':
      return { file_id: image.id, ...other };
    case 'upload':
      throw new Error('Files and addresses of images do not come together.');
  }
}
