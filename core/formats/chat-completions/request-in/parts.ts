/** Reads the content parts of a message. */
import { missingValue } from '../../../sdk/errors.ts';
import type { Block, Source } from '../../../model/chat.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { given, optionalString, requiredString, requiredObject } from '../../_shared/check.ts';
import { parseDataUrl, sniffBase64 } from '../../_shared/data-url.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { defined, setOf } from '../../_shared/fields.ts';
import { formatName, leftovers } from '../wire.ts';
import {
  audioFormat,
  audioType,
  bareFile,
  breakpointOf,
  contentReader,
  isAddress,
  sourceOf,
} from '../../_openai/parts.ts';

const imageInner = setOf('url detail');
const audioInner = setOf('data format');
const fileInner = setOf('file_data file_id filename');
const videoInner = setOf('url');

/** The blocks of a `content`. Throws 400 with the path. */
export const decodeContent = contentReader({
  format: formatName,
  leftovers,
  marks: 'prompt_cache_breakpoint cache_control',
  cacheOf,
  kinds: {
    text: ['text', ({ text }, at) => ({ type: 'text', text: requiredString(text, `${at}.text`), at })],
    refusal: ['refusal', decodeRefusal],
    image_url: ['image_url', decodeImage],
    input_audio: ['input_audio', decodeAudio],
    file: ['file', decodeFile],
    video_url: ['video_url', decodeVideo],
  },
  // Mistral's clients name a file beside the type.
  official(part) {
    if (part.type !== 'file' || part.file !== undefined || typeof part.file_id !== 'string') return part;
    const { file_id, ...rest } = part;
    return { ...rest, file: { file_id } };
  },
});

/** Returns the cache mark, from `prompt_cache_breakpoint` or the `cache_control` of aggregators. Other shapes stay an unknown field. */
function cacheOf(part: JsonObject, left: Leftovers): Pick<Block, 'cache'> {
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

function decodeRefusal({ refusal }: JsonObject, at: string, left: Leftovers): Block {
  left.put('$part', true);
  return { type: 'refusal', text: requiredString(refusal, `${at}.refusal`), at };
}

function decodeImage({ image_url: holder }: JsonObject, at: string, left: Leftovers): Block {
  const path = `${at}.image_url`;
  // A bare string is tolerated.
  const object = typeof holder === 'string' ? { url: holder } : requiredObject(holder, path);
  const source = sourceOf(requiredString(object.url, `${path}.url`), left);
  const detail = optionalString(object.detail, `${path}.detail`);
  left.take(object, imageInner, 'image_url.');
  return { type: 'image', source, at, ...defined({ detail }) };
}

function decodeVideo(part: JsonObject, at: string, left: Leftovers): Block {
  const object = requiredObject(part.video_url, `${at}.video_url`);
  const source = sourceOf(requiredString(object.url, `${at}.video_url.url`), left);
  left.take(object, videoInner, 'video_url.');
  return { type: 'video', source, at };
}

function decodeAudio({ input_audio: holder }: JsonObject, at: string, left: Leftovers): Block {
  const path = `${at}.input_audio`;
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
  return { type: 'audio', source, at };
}

/** Returns the format of audio without a `format` field, from its data URL or its bytes. */
function soundIn(data: string): string {
  return audioFormat(parseDataUrl(data)?.mimeType ?? sniffBase64(data));
}

function audioData(data: string, mimeType: string, left: Leftovers): Source {
  const parsed = parseDataUrl(data);
  if (parsed === undefined) return { kind: 'data', data, mimeType };
  left.put('$url', data);
  return { kind: 'data', data: parsed.data, mimeType };
}

function decodeFile(part: JsonObject, at: string, left: Leftovers): Block {
  const path = `${at}.file`;
  const object = requiredObject(part.file, path);
  const data = optionalString(object.file_data, `${path}.file_data`);
  const id = optionalString(object.file_id, `${path}.file_id`);
  const name = optionalString(object.filename, `${path}.filename`);
  left.take(object, fileInner, 'file.');
  if (data === undefined && id === undefined) throw missingValue(`${path}.file_data`);
  if (data !== undefined && id !== undefined) left.put('file.file_id', id);
  const source: Source =
    data === undefined ? { kind: 'file', id: id ?? '', format: formatName } : fileData(data, name, left);
  return { type: 'file', source, at, ...defined({ name }) };
}

/** Decodes `file_data`: a data URL, a URL (at aggregators) or bare base64. */
function fileData(data: string, name: string | undefined, left: Leftovers): Source {
  return isAddress(data) ? sourceOf(data, left) : bareFile(data, name, left);
}
