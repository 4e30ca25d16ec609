import type { MediaBlock, Source } from '../../model/chat.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ModelTraits } from '../../model/traits.ts';
import { optionalObject, optionalString, requiredString } from '../_shared/check.ts';
import type { Leftovers } from '../_shared/extra.ts';
import { fileFields, inlineFields, name as format, official } from './wire.ts';

/** What kind of block a MIME type makes. */
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

/** The type that an address suggests; undefined when its last path segment has no known ending. */
export function typeOfAddress(address: string): string | undefined {
  const path = /^[^?#]*/.exec(address)?.[0] ?? '';
  const ending = path.slice(path.lastIndexOf('.') + 1).toLowerCase();
  if (Object.hasOwn(endings, ending)) return endings[ending];
  return isVideoPage(address) ? 'video/mp4' : undefined;
}

/** Pages whose videos every provider of this format plays by itself. */
function isVideoPage(address: string): boolean {
  return /^https?:\/\/(?:www\.)?(?:youtube\.com\/watch|youtu\.be\/)/i.test(address);
}

/** Older models take addresses of files kept by the vendor alone. */
export function wantsBytes({ source }: MediaBlock, traits: ModelTraits): boolean {
  return traits.fetchesUrls === false && source.kind === 'url' && !isVideoPage(source.url);
}

/** Files of the vendor's own store: ids that mean nothing elsewhere. */
function isVendorFile(uri: string): boolean {
  return (
    !/^https?:\/\//i.test(uri) || /^https?:\/\/[^/]*\.googleapis\.com\/(?:upload\/)?v\w+\/files\//i.test(uri)
  );
}

/** Reads `inlineData`. `at` is the path of the object. Throws 400 with the path. */
export function readInline(
  value: JsonObject['x'],
  at: string,
  extras: Leftovers,
): { source: Source; type: MediaBlock['type']; name?: string } {
  const inline = official(optionalObject(value, at) ?? {}, inlineFields);
  const mimeType = requiredString(inline.mimeType, `${at}.mimeType`);
  const data = standardBase64(requiredString(inline.data, `${at}.data`));
  const shown = optionalString(inline.displayName, `${at}.displayName`);
  extras.take(inline, new Set(['mimeType', 'data', 'displayName']), 'inlineData.');
  return {
    source: { kind: 'data', data, mimeType },
    type: mediaType(mimeType),
    ...(shown === undefined ? {} : { name: shown }),
  };
}

/** Proto JSON takes URL-safe base64 too; other formats do not. */
function standardBase64(data: string): string {
  if (!data.includes('-') && !data.includes('_')) return data;
  return data.replaceAll('-', '+').replaceAll('_', '/');
}

/** Reads `fileData`. `at` is the path of the object. Throws 400 with the path. */
export function readFile(
  value: JsonObject['x'],
  at: string,
  extras: Leftovers,
): { source: Source; type: MediaBlock['type']; name?: string } {
  const file = official(optionalObject(value, at) ?? {}, fileFields);
  const uri = requiredString(file.fileUri, `${at}.fileUri`);
  const mimeType = optionalString(file.mimeType, `${at}.mimeType`);
  const shown = optionalString(file.displayName, `${at}.displayName`);
  extras.take(file, new Set(['mimeType', 'fileUri', 'displayName']), 'fileData.');
  const typed = mimeType === undefined ? {} : { mimeType };
  const source: Source = isVendorFile(uri)
    ? { kind: 'file', id: uri, format, ...typed }
    : { kind: 'url', url: uri, ...typed };
  return {
    source,
    type: mediaType(mimeType ?? typeOfAddress(uri)),
    ...(shown === undefined ? {} : { name: shown }),
  };
}

/** Part resolution ↔ neutral detail, for the words that have one. */
const details: Readonly<Record<string, string>> = {
  MEDIA_RESOLUTION_LOW: 'low',
  MEDIA_RESOLUTION_HIGH: 'high',
  MEDIA_RESOLUTION_ULTRA_HIGH: 'original',
};

/** The neutral word for `mediaResolution: {level}`; undefined for anything said otherwise. */
export function readDetail(value: JsonObject['x']): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const resolution = value as JsonObject;
  const { level } = resolution;
  if (typeof level !== 'string' || Object.keys(resolution).length !== 1 || !Object.hasOwn(details, level))
    return undefined;
  return details[level];
}

/** `mediaResolution` for a detail; undefined when there is none. */
export function writeDetail(detail: string): JsonObject | undefined {
  const level = Object.keys(details).find((word) => details[word] === detail);
  return level === undefined ? undefined : { level };
}
