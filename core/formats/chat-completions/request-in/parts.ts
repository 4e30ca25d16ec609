import { missing, wrongType } from '../../../sdk/errors.ts';
import type { Block, MediaBlock, Source } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { given, optionalObject, optionalString, requiredString } from '../../_shared/check.ts';
import { parseDataUrl, sniffBase64 } from '../../_shared/data-url.ts';
import { leftovers } from '../extra.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { formatName } from '../wire.ts';

const cacheFields = ['prompt_cache_breakpoint', 'cache_control'];
const textFields = new Set(['type', 'text', ...cacheFields]);
const refusalFields = new Set(['type', 'refusal', ...cacheFields]);
const imageFields = new Set(['type', 'image_url', ...cacheFields]);
const imageInner = new Set(['url', 'detail']);
const audioFields = new Set(['type', 'input_audio', ...cacheFields]);
const audioInner = new Set(['data', 'format']);
const fileFields = new Set(['type', 'file', ...cacheFields]);
const fileInner = new Set(['file_data', 'file_id', 'filename']);
const videoFields = new Set(['type', 'video_url', ...cacheFields]);
const videoInner = new Set(['url']);

/** The blocks of a `content` that is a string or a list of parts. An empty string is no block: `plain` says that it was one. */
export function decodeContent(
  content: Exclude<JsonValue, null>,
  at: string,
): { readonly content: readonly Block[]; readonly plain?: true } {
  if (typeof content === 'string') {
    return { content: content === '' ? [] : [{ type: 'text', text: content, at }], plain: true };
  }
  if (!Array.isArray(content)) throw wrongType(at, 'a string or an array');
  return {
    content: (content as readonly JsonValue[]).map((part, index) => decodePart(part, `${at}[${index}]`)),
  };
}

function decodePart(part: JsonValue, at: string): Block {
  if (!isObject(part)) throw wrongType(at, 'an object');
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
      return decodeFile(part, at, left.take(part, fileFields));
    case 'video_url':
      return decodeVideo(part, at, left.take(part, videoFields));
    default:
      return { type: 'opaque', format: formatName, value: part, at };
  }
}

/** `prompt_cache_breakpoint`, or the `cache_control` that aggregators of this dialect take. A shape that is neither stays an unknown field. */
function cacheOf(part: JsonObject, left: Leftovers): { readonly cache?: { readonly ttl?: string } } {
  const mark = part.prompt_cache_breakpoint;
  const control = part.cache_control;
  if (isObject(mark) && mark.mode === 'explicit' && Object.keys(mark).length === 1) {
    if (given(control)) left.put('cache_control', control);
    return { cache: {} };
  }
  if (given(mark)) left.put('prompt_cache_breakpoint', mark);
  if (isObject(control) && control.type === 'ephemeral' && !given(mark)) {
    const { type: _, ttl, ...rest } = control;
    if (Object.keys(rest).length === 0 && (ttl === undefined || typeof ttl === 'string')) {
      left.put('$cache', 'cache_control');
      return { cache: ttl === undefined ? {} : { ttl } };
    }
  }
  if (given(control)) left.put('cache_control', control);
  return {};
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
  const object = optionalObject(part.video_url, `${at}.video_url`);
  if (object === undefined) throw missing(`${at}.video_url`);
  const source = sourceOf(requiredString(object.url, `${at}.video_url.url`), left);
  left.take(object, videoInner, 'video_url.');
  return { type: 'video', source, at, ...cacheOf(part, left), ...left.extra() };
}

/** A URL, opened when it is a data URL. One that would not come back letter for letter is kept as it was. */
function sourceOf(url: string, left: Leftovers): Source {
  const parsed = parseDataUrl(url);
  if (parsed === undefined) return { kind: 'url', url };
  const { mimeType, data } = parsed;
  if (url.length === mimeType.length + data.length + 13 && url.startsWith(`data:${mimeType};base64,`))
    return { kind: 'data', data, mimeType };
  left.put('$url', url);
  return {
    kind: 'data',
    data,
    mimeType: mimeType === 'text/plain' ? (sniffBase64(data) ?? mimeType) : mimeType,
  };
}

const audioTypes: Readonly<Record<string, string>> = { wav: 'audio/wav', mp3: 'audio/mp3' };

function decodeAudio(part: JsonObject, at: string, left: Leftovers): MediaBlock {
  const path = `${at}.input_audio`;
  const object = optionalObject(part.input_audio, path);
  if (object === undefined) throw missing(path);
  const data = requiredString(object.data, `${path}.data`);
  const format = requiredString(object.format, `${path}.format`);
  left.take(object, audioInner, 'input_audio.');
  left.put('$format', format);
  const mimeType = audioTypes[format.toLowerCase()] ?? `audio/${format.toLowerCase()}`;
  const source: Source = /^https?:\/\//i.test(data)
    ? { kind: 'url', url: data, mimeType }
    : audioData(data, mimeType, left);
  return { type: 'audio', source, at, ...cacheOf(part, left), ...left.extra() };
}

function audioData(data: string, mimeType: string, left: Leftovers): Source {
  const parsed = parseDataUrl(data);
  if (parsed === undefined) return { kind: 'data', data, mimeType };
  left.put('$url', data);
  return { kind: 'data', data: parsed.data, mimeType };
}

function decodeFile(part: JsonObject, at: string, left: Leftovers): MediaBlock {
  const path = `${at}.file`;
  const object = optionalObject(part.file, path);
  if (object === undefined) throw missing(path);
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

/** `file_data` is a data URL, a URL (at aggregators) or bare base64. */
function fileData(data: string, name: string | undefined, left: Leftovers): Source {
  if (/^(?:data:|https?:\/\/)/i.test(data)) return sourceOf(data, left);
  left.put('$bare', true);
  const mimeType =
    sniffBase64(data) ?? (name !== undefined && /\.txt$/i.test(name) ? 'text/plain' : 'application/pdf');
  return { kind: 'data', data, mimeType };
}
