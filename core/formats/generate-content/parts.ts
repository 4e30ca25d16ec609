/** Media of generateContent for both directions: reads `inlineData` and `fileData`, infers MIME types, maps `mediaResolution`. */
import type { MediaBlock, Source } from '../../model/chat.ts';
import { isObject, type JsonObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { given, optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { defined, setOf } from '../_shared/fields.ts';
import { formatName, official } from './wire.ts';

/** Returns the kind of media block for a MIME type. */
export function mediaType(mimeType: string | undefined): MediaBlock['type'] {
  const family = mimeType?.slice(0, mimeType.indexOf('/')).toLowerCase();
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'file';
}

/** File name ending → MIME type, for addresses that come without one. */
const endings: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  heic: 'image/heic',
  pdf: 'application/pdf',
  txt: 'text/plain',
  csv: 'text/csv',
  html: 'text/html',
  mp3: 'audio/mp3',
  wav: 'audio/wav',
  ogg: 'audio/ogg',
  flac: 'audio/flac',
  mp4: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
};

/** Returns the MIME type that a URL suggests; undefined when its last path segment has no known extension. */
export function typeOfAddress(address: string): string | undefined {
  const path = /^[^?#]*/.exec(address)?.[0] ?? '';
  const ending = path.slice(path.lastIndexOf('.') + 1).toLowerCase();
  if (Object.hasOwn(endings, ending)) return endings[ending];
  return isVideoPage(address) ? 'video/mp4' : undefined;
}

/** Returns true for video pages that every provider of this format fetches itself. */
function isVideoPage(address: string): boolean {
  return /^https?:\/\/(?:www\.)?(?:youtube\.com\/watch|youtu\.be\/)/i.test(address);
}

/** Returns true for a URL that the gateway must fetch, because older models take only URLs of the vendor's file store. */
export function wantsBytes({ source }: MediaBlock, traits: ModelTraits): boolean {
  return traits.fetchesUrls === false && source.kind === 'url' && !isVideoPage(source.url);
}

/** Returns true for a file in the vendor's own store, whose URI no other provider can read. */
function isVendorFile(uri: string): boolean {
  return (
    !/^https?:\/\//i.test(uri) || /^https?:\/\/[^/]*\.googleapis\.com\/(?:upload\/)?v\w+\/files\//i.test(uri)
  );
}

/** Reads the media of a part, from `inlineData` or else `fileData`. `at` is the path of the part. Throws 400 with the path. */
export function readMedia(part: JsonObject, at: string, extras: Leftovers): Omit<MediaBlock, 'at' | 'extra'> {
  const inline = given(part.inlineData);
  const key = inline ? 'inlineData' : 'fileData';
  const path = `${at}.${key}`;
  const wire = official(optionalObject(part[key], path) ?? {}, inline ? 'inlineData' : 'fileData');
  const name = optionalString(wire.displayName, `${path}.displayName`);
  extras.take(wire, inline ? readInline : readFile, `${key}.`);
  if (inline) {
    const mimeType = requiredString(wire.mimeType, `${path}.mimeType`);
    const data = standardBase64(requiredString(wire.data, `${path}.data`));
    return { source: { kind: 'data', data, mimeType }, type: mediaType(mimeType), ...defined({ name }) };
  }
  const uri = requiredString(wire.fileUri, `${path}.fileUri`);
  const mimeType = optionalString(wire.mimeType, `${path}.mimeType`);
  const typed = defined({ mimeType });
  const source: Source = isVendorFile(uri)
    ? { kind: 'file', id: uri, format: formatName, ...typed }
    : { kind: 'url', url: uri, ...typed };
  return { source, type: mediaType(mimeType ?? typeOfAddress(uri)), ...defined({ name }) };
}

const readInline = setOf('mimeType data displayName');
const readFile = setOf('mimeType fileUri displayName');

/** Returns standard base64. Proto JSON accepts URL-safe base64 too; other formats do not. */
function standardBase64(data: string): string {
  if (!data.includes('-') && !data.includes('_')) return data;
  return data.replaceAll('-', '+').replaceAll('_', '/');
}

/** Part resolution ↔ neutral detail, for the words that have one. */
const details: Readonly<Record<string, string>> = {
  MEDIA_RESOLUTION_LOW: 'low',
  MEDIA_RESOLUTION_HIGH: 'high',
  MEDIA_RESOLUTION_ULTRA_HIGH: 'original',
};

/** Returns the neutral value of `mediaResolution: {level}`; undefined for any other form. */
export function readDetail(value: JsonObject['x']): string | undefined {
  if (!isObject(value) || Object.keys(value).length !== 1 || typeof value.level !== 'string')
    return undefined;
  return Object.hasOwn(details, value.level) ? details[value.level] : undefined;
}

/** Returns `mediaResolution` for a detail; undefined if there is none. */
export function writeDetail(detail: string): JsonObject | undefined {
  const level = Object.keys(details).find((word) => details[word] === detail);
  return level === undefined ? undefined : { level };
}
