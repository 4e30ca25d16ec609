/** Reads the settings of requests for videos, checks them, and writes them for providers. */
import { unsupportedContent, missingValue, wrongType, wrongValue } from '../../sdk/errors.ts';
import type { ImageInput } from '../../model/image.ts';
import { parseObject } from '../../json/parse.ts';
import { isObject, type JsonObject, type JsonValue, type MutableObject } from '../../model/json.ts';
import type { VideoRequest } from '../../model/video.ts';
import type { EncodeTarget } from '../../sdk/format.ts';
import { given, optionalArray, optionalString } from './check.ts';
import { parseDataUrl, sniffBase64, toDataUrl } from './data-url.ts';
import { fieldsBeside, setOf } from './fields.ts';

/** Maximum duration of a video, in seconds. */
const longest = 3600;

/** Seconds, as a number or as its digits; undefined when not given. Throws 400 naming `path`. */
export function optionalSeconds(value: JsonValue | undefined, path: string): number | undefined {
  if (!given(value) || value === '') return undefined;
  const seconds =
    typeof value === 'string' && /^\d+(\.\d+)?s?$/.test(value) ? Number.parseFloat(value) : value;
  if (typeof seconds !== 'number') throw wrongType(path, 'a number of seconds');
  if (!(seconds > 0 && seconds <= longest)) throw wrongValue(path, `above 0 and at most ${longest} seconds`);
  return seconds;
}

/** Returns 5 or 10 seconds, for providers that make no other videos. */
export function fiveOrTen(seconds: number, { drop }: Pick<EncodeTarget, 'drop'>): number {
  const nearest = seconds <= 5 ? 5 : 10;
  if (nearest !== seconds) drop('settings.seconds');
  return nearest;
}

/** Returns an integer, as a number or as its digits (which is how forms spell it); undefined when not given. Throws 400 naming `path`. */
export function optionalInteger(value: JsonValue | undefined, path: string): number | undefined {
  if (!given(value) || value === '') return undefined;
  const number = typeof value === 'string' && /^-?\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) throw wrongType(path, 'an integer');
  return number;
}

/** Returns the width and height as `1280x720`; undefined when not given. Throws 400 naming `path`. */
export function optionalSize(value: JsonValue | undefined, path: string): string | undefined {
  const text = optionalString(value, path);
  if (text === undefined || text === '') return undefined;
  const [, width, height] = /^([1-9]\d{1,4})\s*[x*×]\s*([1-9]\d{1,4})$/i.exec(text) ?? [];
  if (width === undefined || height === undefined)
    throw wrongValue(path, 'a width and a height, such as "1280x720"');
  return `${width}x${height}`;
}

/** Returns an aspect ratio as `16:9`; undefined when not given. Throws 400 naming `path`. */
export function optionalRatio(value: JsonValue | undefined, path: string): string | undefined {
  const text = optionalString(value, path);
  if (text === undefined || text === '') return undefined;
  if (!/^\d{1,3}:\d{1,3}$/.test(text)) throw wrongValue(path, 'a ratio, such as "16:9"');
  return text;
}

/** Checks that a task has one video, because each video has its own id. Throws 400 naming `path` for more. */
export function checkCount(value: JsonValue | undefined, path: string): void {
  const count = optionalInteger(value, path);
  if (count !== undefined && count !== 1) throw wrongValue(path, '1: ask for each video by itself');
}

/** Decodes the prompt, which is optional beside an image. Throws 400 with `prompt`. */
export function promptOf(value: JsonValue | undefined, images: readonly unknown[]): string {
  const prompt = optionalString(value, 'prompt') ?? '';
  if (prompt.trim() === '' && images.length === 0) throw missingValue('prompt');
  return prompt;
}

/** Decodes fields of the provider's own API; in forms, they are JSON text. Throws 400 with `metadata`. */
export function metadataOf(value: JsonValue | undefined): JsonObject | undefined {
  if (!given(value) || value === '') return undefined;
  const metadata = typeof value === 'string' ? parseObject(value) : value;
  if (!isObject(metadata)) throw wrongType('metadata', 'an object');
  return Object.keys(metadata).length === 0 ? undefined : metadata;
}

/** Returns an image as a URL, a data URL or plain base64. Throws 400 naming `path`. */
export function imageOf(value: JsonValue | undefined, path: string): ImageInput {
  if (typeof value !== 'string') throw wrongType(path, 'a URL, or an image in base64');
  const text = value.trim();
  if (/^https?:\/\//i.test(text)) return { kind: 'url', url: text };
  const parsed = parseDataUrl(text) ?? { data: text, mimeType: sniffBase64(text) ?? '' };
  if (!/^[A-Za-z0-9+/_-]{8,}={0,2}$/.test(parsed.data.slice(0, 4096).replaceAll(/\s/g, '')))
    throw wrongValue(path, 'a URL, or an image in base64');
  return {
    kind: 'data',
    data: parsed.data,
    mimeType: parsed.mimeType === '' ? 'image/png' : parsed.mimeType,
  };
}

/** Returns the role of images that are frames of a video; undefined for 0 or more than 2 images. */
export function frameRole(images: number): VideoRequest['imageRole'] {
  if (images === 2) return 'first-and-last';
  return images === 1 ? 'first' : undefined;
}

/** Decodes a list of such images. Throws 400 with the path of the invalid one. */
export function imagesOf(value: JsonValue | undefined, path: string): readonly ImageInput[] {
  return (optionalArray(value, path) ?? []).map((image, index) => imageOf(image, `${path}[${index}]`));
}

/**
 * Returns an image as text for a provider: its URL, or its bytes as a data URL or as base64. Throws a 400 error for a file that another
 * provider keeps. `format` is the channel's, for the error.
 *
 * @example
 * const images = request.images.map((image) => imageText(image, 'data-url', 'acme'));
 */
export function imageText(image: ImageInput, bytesAs: 'data-url' | 'base64', format: string): string {
  switch (image.kind) {
    case 'url':
      return image.url;
    case 'data':
      return bytesAs === 'base64' ? image.data : toDataUrl(image.mimeType, image.data);
    case 'file':
      throw unsupportedContent('settings.images', 'a file that another provider stores', format);
    case 'upload':
      throw new Error('An uploaded image was not read before its request was encoded.');
  }
}

/** The members of a video request that providers may have no word for. */
const settings = ['seconds', 'size', 'aspectRatio', 'resolution', 'seed', 'negativePrompt', 'user'] as const;
type Setting = (typeof settings)[number];

/**
 * Reports each setting of a video request that the format of the provider does not carry.
 *
 * @example
 * reportVideoSettings(request, ['seconds', 'resolution'], target);
 */
export function reportVideoSettings(
  request: VideoRequest,
  carried: readonly Setting[],
  { drop }: Pick<EncodeTarget, 'drop'>,
): void {
  for (const name of settings)
    if (request[name] !== undefined && !carried.includes(name)) drop(`settings.${name}`);
}

/**
 * Returns at most `most` images. More of them are a 400 error, or are dropped and reported where the operator prefers that
 * (`target.unsupported`).
 *
 * @example
 * const images = limitImages(request.images, 1, 'acme', target);
 */
export function limitImages(
  images: readonly ImageInput[],
  most: number,
  format: string,
  { drop, unsupported }: Pick<EncodeTarget, 'drop' | 'unsupported'>,
): readonly ImageInput[] {
  if (images.length <= most) return images;
  if (unsupported === 'refuse') {
    throw unsupportedContent('settings.images', most === 0 ? 'an image' : `more than ${most} images`, format);
  }
  drop('settings.images', 'content');
  return images.slice(0, most);
}

/** Fields that affect the price or send notifications must not be set through `metadata`. */
const guarded = setOf(`
  model model_name req_key prompt seconds duration durationSeconds dur frames n count sampleCount num_videos
  callback_url callbackUrl __proto__
`);

/**
 * Returns the body with the client's `metadata` added: members in the provider's own words. They replace nothing that the body has.
 * Members that decide the price, the model or the receiver of callbacks are dropped and reported.
 *
 * @example
 * return { path: '/videos', body: addMetadata({ model: target.model, prompt }, request.metadata, target) };
 */
export function addMetadata(
  body: JsonObject,
  metadata: JsonObject | undefined,
  { drop }: Pick<EncodeTarget, 'drop'>,
): JsonObject {
  if (metadata === undefined) return body;
  const added: MutableObject = {};
  for (const [name, value] of Object.entries(metadata)) {
    if (guarded.has(name)) drop(`metadata.${name}`);
    else if (!Object.hasOwn(body, name)) added[name] = value;
  }
  return { ...body, ...added };
}

/** Returns the members of a body that were not decoded, for the format's `extra`. */
export function unread(body: JsonObject, read: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(Object.entries(fieldsBeside(body, read)).filter(([, value]) => given(value)));
}

/** Callback URLs, to which providers would send their own task ids. Never forwarded. */
const callback = 'callback_url';

/** Returns the fields that only this format has, as they go to a provider of the same format. */
export function ownExtra(
  { extra }: VideoRequest,
  format: string,
  { drop }: Pick<EncodeTarget, 'drop'>,
): JsonObject {
  const own = extra?.[format] ?? {};
  if (!Object.hasOwn(own, callback)) return own;
  drop(callback);
  return fieldsBeside(own, new Set([callback]));
}

/** Settings of a video request that a decoder has read, and how its images are used. */
export type VideoSettings = {
  readonly [Name in Setting | 'metadata' | 'imageRole']?: VideoRequest[Name] | undefined;
};

/** Returns the neutral members of a request that are given, for a decoder to spread. */
export function videoSettings(
  members: VideoSettings,
): Pick<VideoRequest, Setting | 'metadata' | 'imageRole'> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}
