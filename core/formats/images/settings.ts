/** Settings of image requests (`n`, `size`, `quality` …): decoding, encoding, and the test for pass-through. */
import { GatewayError, wrongValue } from '../../sdk/errors.ts';
import type { ImageRequest } from '../../model/image.ts';
import type { JsonObject, JsonValue, MutableObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given, optionalBoolean, optionalNumber, optionalString } from '../_shared/check.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
import type { ImageOperation } from './wire.ts';

/** Converts texts of a form to numbers and booleans. Texts that cannot be converted are left for the checks to refuse. */
export function typed(body: JsonObject): JsonObject {
  const read: MutableObject = {};
  for (const name of ['n', 'output_compression', 'partial_images'])
    if (given(body[name])) read[name] = asNumber(body[name]);
  if (given(body.stream)) read.stream = asBoolean(body.stream);
  return Object.keys(read).length === 0 ? body : { ...body, ...read };
}

function asNumber(value: JsonValue | undefined): JsonValue | undefined {
  return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
}

/** Converts a form's text for true or false to a boolean; returns other values unchanged. */
export function asBoolean(value: JsonValue | undefined): JsonValue | undefined {
  if (value === 'true' || value === 'True' || value === '1') return true;
  return value === 'false' || value === 'False' || value === '0' || value === '' ? false : value;
}

type Settings = Pick<
  ImageRequest,
  | 'stream'
  | 'count'
  | 'size'
  | 'quality'
  | 'background'
  | 'fileFormat'
  | 'compression'
  | 'style'
  | 'delivery'
  | 'partials'
  | 'user'
>;

/** Settings that are texts, by the client's name of each. */
const texts = [
  ['size', 'size'],
  ['quality', 'quality'],
  ['background', 'background'],
  ['output_format', 'fileFormat'],
  ['style', 'style'],
  ['user', 'user'],
] as const;

/** Members that are decoded as settings. */
export const settingNames: ReadonlySet<string> = new Set([
  ...texts.map(([name]) => name),
  'n',
  'output_compression',
  'partial_images',
  'stream',
  'response_format',
]);

/** Decodes the settings of a body. Throws 400 naming the field that is wrong. */
export function readSettings(body: JsonObject, operation: ImageOperation): Settings {
  const found: { -readonly [Name in keyof Settings]: Settings[Name] } = { stream: false };
  for (const [name, member] of texts) {
    const value = optionalString(body[name], name);
    if (value !== undefined) found[member] = value;
  }
  const count = optionalNumber(body.n, 'n', { min: 1, max: 10, integer: true });
  const compression = optionalNumber(body.output_compression, 'output_compression', {
    min: 0,
    max: 100,
    integer: true,
  });
  const partials = optionalNumber(body.partial_images, 'partial_images', { min: 0, max: 3, integer: true });
  const delivery = optionalString(body.response_format, 'response_format');
  if (delivery !== undefined && delivery !== 'url' && delivery !== 'b64_json')
    throw wrongValue('response_format', '"url" or "b64_json"');
  if (count !== undefined) found.count = count;
  if (compression !== undefined) found.compression = compression;
  if (partials !== undefined) found.partials = partials;
  if (delivery !== undefined) found.delivery = delivery === 'url' ? 'url' : 'base64';
  const stream = optionalBoolean(body.stream, 'stream');
  if (operation === 'vary-image' && stream === true)
    throw new GatewayError('unsupported_parameter', 'stream is not supported for variations.', {
      param: 'stream',
    });
  found.stream = stream === true;
  return found;
}

/** Encodes the settings for a provider. */
export function writeSettings(request: ImageRequest, { stream, traits, drop }: EncodeTarget): JsonObject {
  const { count, compression, partials, delivery } = request;
  const written: MutableObject = {};
  for (const [name, member] of texts) {
    const value = request[member];
    if (value !== undefined) written[name] = value;
  }
  if (count !== undefined) written.n = count;
  if (compression !== undefined) written.output_compression = compression;
  const { delivers, streams } = traits.images ?? {};
  if (delivers === undefined) {
    if (stream && streams === false) written.response_format = 'b64_json';
    else if (delivery !== undefined) written.response_format = delivery === 'url' ? 'url' : 'b64_json';
  } else if (delivers === 'base64' && delivery === 'url') drop('response_format');
  if (streams === false) {
    if (stream && partials !== undefined && partials > 0) drop('partial_images');
    return written;
  }
  if (stream) written.stream = true;
  if (partials !== undefined) written.partial_images = partials;
  return written;
}

/** Returns true when the client gets base64: when it requested base64, or a stream, which has no other form. */
function wantsBase64({ delivery, stream }: Pick<ImageRequest, 'delivery' | 'stream'>): boolean {
  return stream || delivery === 'base64';
}

/** Returns true when the client's request can pass through: the model supports streams, where one is requested, and the requested `response_format`. */
export function passes(body: JsonObject, { images }: ModelTraits): boolean {
  if (images === undefined) return true;
  const stream = asBoolean(body.stream) === true;
  if (stream && images.streams === false) return false;
  if (images.delivers === 'base64') return !given(body.response_format);
  const delivery = body.response_format === 'b64_json' ? 'base64' : 'url';
  return images.delivers !== 'url' || !wantsBase64({ delivery, stream });
}
