/** Reads the content parts of an input item. */
import { missingValue } from '../../../sdk/errors.ts';
import type { Block, Source } from '../../../model/chat.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { given, optionalString, requiredString, requiredObject } from '../../_shared/check.ts';
import { parseDataUrl } from '../../_shared/data-url.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { formatName, leftovers } from '../wire.ts';
import {
  audioType,
  bareFile,
  breakpointOf,
  contentReader,
  isAddress,
  sourceOf,
} from '../../_openai/parts.ts';
import { defined, setOf } from '../../_shared/fields.ts';

const audioInner = setOf('data format');
const text = ['text annotations logprobs', decodeText] as const;

/** The blocks of a `content` or `output`. Throws 400 with the path. */
export const decodeContent = contentReader({
  format: formatName,
  leftovers,
  marks: 'prompt_cache_breakpoint',
  cacheOf: breakpointOf,
  kinds: {
    input_text: text,
    output_text: text,
    text,
    refusal: [
      'refusal',
      ({ refusal }, at) => ({ type: 'refusal', text: requiredString(refusal, `${at}.refusal`), at }),
    ],
    input_image: ['image_url file_id detail', decodeImage],
    input_file: ['file_data file_url file_id filename detail', decodeFile],
    input_audio: ['input_audio', decodeAudio],
  },
});

/** Returns the members of a response beside its text that are not sent: empty lists have no meaning, and models do not use log probabilities. */
function decodeText(part: JsonObject, at: string, left: Leftovers): Block {
  left.put('$part', part.type ?? null);
  const { annotations, logprobs } = part;
  if (given(annotations))
    left.put(
      Array.isArray(annotations) && annotations.length === 0 ? '$annotations' : 'annotations',
      annotations,
    );
  if (given(logprobs)) left.put('$logprobs', logprobs);
  return { type: 'text', text: requiredString(part.text, `${at}.text`), at };
}

function decodeImage(part: JsonObject, at: string, left: Leftovers): Block {
  // An object is chat completions' shape, and tolerated.
  const holder = part.image_url;
  const url = optionalString(isObject(holder) ? holder.url : holder, `${at}.image_url`);
  const id = optionalString(part.file_id, `${at}.file_id`);
  if (url === undefined && id === undefined) throw missingValue(`${at}.image_url`);
  if (url !== undefined && id !== undefined) left.put('file_id', id);
  // The field is required here: this value means the same as no field in other formats.
  if (part.detail === 'auto') left.put('$detail', 'auto');
  const source: Source =
    url === undefined ? { kind: 'file', id: id ?? '', format: formatName } : sourceOf(url, left);
  const detail = optionalString(
    part.detail ?? (isObject(holder) ? holder.detail : undefined),
    `${at}.detail`,
  );
  return { type: 'image', source, at, ...(detail === 'auto' ? {} : defined({ detail })) };
}

function decodeFile(part: JsonObject, at: string, left: Leftovers): Block {
  const data = optionalString(part.file_data, `${at}.file_data`);
  const url = optionalString(part.file_url, `${at}.file_url`);
  const id = optionalString(part.file_id, `${at}.file_id`);
  const name = optionalString(part.filename, `${at}.filename`);
  const detail = optionalString(part.detail, `${at}.detail`);
  if (data === undefined && url === undefined && id === undefined) throw missingValue(`${at}.file_data`);
  if (data !== undefined && url !== undefined) left.put('file_url', url);
  if (id !== undefined && (data ?? url) !== undefined) left.put('file_id', id);
  const source: Source =
    data !== undefined
      ? fileData(data, name, left)
      : url === undefined
        ? { kind: 'file', id: id ?? '', format: formatName }
        : { kind: 'url', url };
  return { type: 'file', source, at, ...defined({ name, detail }) };
}

/** Decodes `file_data`: a data URL or bare base64. */
function fileData(data: string, name: string | undefined, left: Leftovers): Source {
  if (!isAddress(data)) return bareFile(data, name, left);
  left.put('$in', 'file_data');
  return sourceOf(data, left);
}

function decodeAudio(part: JsonObject, at: string, left: Leftovers): Block {
  const path = `${at}.input_audio`;
  const object = requiredObject(part.input_audio, path);
  const data = requiredString(object.data, `${path}.data`);
  const format = requiredString(object.format, `${path}.format`);
  left.take(object, audioInner, 'input_audio.').put('$input_audio', object);
  return {
    type: 'audio',
    source: { kind: 'data', data: parseDataUrl(data)?.data ?? data, mimeType: audioType(format) },
    at,
  };
}
