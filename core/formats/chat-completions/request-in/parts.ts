import { missing } from '../../../sdk/errors.ts';
import type { Block, MediaBlock, Source } from '../../../model/chat.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import {
  given,
  optionalObject,
  optionalString,
  requiredString,
  requiredObject,
} from '../../_shared/check.ts';
import { parseDataUrl, sniffBase64 } from '../../_shared/data-url.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { formatName, leftovers } from '../wire.ts';
import {
  audioFormat,
  audioType,
  bareFile,
  breakpointOf,
  decodeContentWith,
  isAddress,
  sourceOf,
} from '../../_openai/parts.ts';
import { setOf } from '../../_shared/fields.ts';

const cacheFields = ['prompt_cache_breakpoint', 'cache_control'];
const textFields = new Set(['type', 'text', ...cacheFields]);
const refusalFields = new Set(['type', 'refusal', ...cacheFields]);
const imageFields = new Set(['type', 'image_url', ...cacheFields]);
const imageInner = setOf('url detail');
const audioFields = new Set(['type', 'input_audio', ...cacheFields]);
const audioInner = setOf('data format');
const fileFields = new Set(['type', 'file', ...cacheFields]);
const bareFileFields = new Set(['type', 'file_id', ...cacheFields]);
const fileInner = setOf('file_data file_id filename');
const videoFields = new Set(['type', 'video_url', ...cacheFields]);
const videoInner = setOf('url');

/** The blocks of a `content`. Throws 400 with the path. */
export const decodeContent = decodeContentWith(decodePart);

function decodePart(part: JsonObject, at: string): Block {
  const left = leftovers();
  switch (requiredString(part.type, `${at}.type`)) {
    case 'text': {
      const text = requiredString(part.text, `${at}.text`);
      return { type: 'text', text, at, ...cacheOf(part, left), ...left.take(part, textFields).extra() };
    }
    case 'refusal': {
      const text = requiredString(part.refusal, `${at}.refusal`);
      left.put('$part', true);
      return { type: 'refusal', text, at, ...cacheOf(part, left), ...left.take(part, refusalFields).extra() };
    }
    case 'image_url':
      return decodeImage(part, at, left.take(part, imageFields));
    case 'input_audio':
      return decodeAudio(part, at, left.take(part, audioFields));
    case 'file':
      return decodeFile(part, at, left.take(part, isBareFile(part) ? bareFileFields : fileFields));
    case 'video_url':
      return decodeVideo(part, at, left.take(part, videoFields));
    default:
      return { type: 'opaque', format: formatName, value: part, at };
  }
}

/** `prompt_cache_breakpoint`, or the `cache_control` that aggregators of this dialect take. A shape that is neither stays an unknown field. */
function cacheOf(part: JsonObject, left: Leftovers): { readonly cache?: { readonly ttl?: string } } {
  const control = part.cache_control;
  const cache = breakpointOf(part, left);
  if (!given(control)) return cache;
  if (!given(part.prompt_cache_breakpoint) && isObject(control) && control.type === 'ephemeral') {
    const { type: _, ttl, ...rest } = control;
    if (Object.keys(rest).length === 0 && (ttl === undefined || typeof ttl === 'string')) {
      left.put('$cache', 'cache_control');
      return { cache: ttl === undefined ? {} : { ttl } };
    }
  }
  left.put('cache_control', control);
  return cache;
}

function decodeImage(part: JsonObject, at: string, left: Leftovers): MediaBlock {
  const holder = part.image_url;
  const path = `${at}.image_url`;
  // A bare string is tolerated.
  const object = typeof holder === 'string' ? { url: holder } : optionalObject(holder, path);
  if (object === undefined) throw missing(path);
  const source = sourceOf(requiredString(object.url, `${path}.url`), left);
  const detail = optionalString(object.detail, `${path}.detail`);
  left.take(object, imageInner, 'image_url.');
  return {
    type: 'image',
    source,
    at,
    ...(detail === undefined ? {} : { detail }),
    ...cacheOf(part, left),
    ...left.extra(),
  };
}

function decodeVideo(part: JsonObject, at: string, left: Leftovers): MediaBlock {
  const object = requiredObject(part.video_url, `${at}.video_url`);
  const source = sourceOf(requiredString(object.url, `${at}.video_url.url`), left);
  left.take(object, videoInner, 'video_url.');
  return { type: 'video', source, at, ...cacheOf(part, left), ...left.extra() };
}

function decodeAudio(part: JsonObject, at: string, left: Leftovers): MediaBlock {
  const path = `${at}.input_audio`;
  const holder = part.input_audio;
  // Mistral's clients write an address, or bare base64, as with images.
  const object =
    typeof holder === 'string' ? { data: holder, format: soundIn(holder) } : requiredObject(holder, path);
  const data = requiredString(object.data, `${path}.data`);
  const format = requiredString(object.format, `${path}.format`);
  left.take(object, audioInner, 'input_audio.');
  left.put('$format', format);
  const mimeType = audioType(format);
  const source: Source = /^https?:\/\//i.test(data)
    ? { kind: 'url', url: data, mimeType }
    : audioData(data, mimeType, left);
  return { type: 'audio', source, at, ...cacheOf(part, left), ...left.extra() };
}

/** The format of a sound that says none: as its bytes tell, which an address does not. */
function soundIn(data: string): string {
  return audioFormat(parseDataUrl(data)?.mimeType ?? sniffBase64(data));
}

function audioData(data: string, mimeType: string, left: Leftovers): Source {
  const parsed = parseDataUrl(data);
  if (parsed === undefined) return { kind: 'data', data, mimeType };
  left.put('$url', data);
  return { kind: 'data', data: parsed.data, mimeType };
}

function decodeFile(part: JsonObject, at: string, left: Leftovers): MediaBlock {
  const path = `${at}.file`;
  // Mistral's clients name a file beside the type.
  const object = isBareFile(part) ? { file_id: part.file_id ?? null } : requiredObject(part.file, path);
  const data = optionalString(object.file_data, `${path}.file_data`);
  const id = optionalString(object.file_id, `${path}.file_id`);
  const name = optionalString(object.filename, `${path}.filename`);
  left.take(object, fileInner, 'file.');
  if (data === undefined && id === undefined) throw missing(`${path}.file_data`);
  if (data !== undefined && id !== undefined) left.put('file.file_id', id);
  const source: Source =
    data === undefined ? { kind: 'file', id: id ?? '', format: formatName } : fileData(data, name, left);
  return {
    type: 'file',
    source,
    at,
    ...(name === undefined ? {} : { name }),
    ...cacheOf(part, left),
    ...left.extra(),
  };
}

function isBareFile({ file, file_id: id }: JsonObject): boolean {
  return file === undefined && typeof id === 'string';
}

/** `file_data` is a data URL, a URL (at aggregators) or bare base64. */
function fileData(data: string, name: string | undefined, left: Leftovers): Source {
  return isAddress(data) ? sourceOf(data, left) : bareFile(data, name, left);
}
