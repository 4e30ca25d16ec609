import { missing } from '../../../sdk/errors.ts';
import type { Block, MediaBlock, Source } from '../../../model/chat.ts';
import { isObject, type JsonObject } from '../../../model/json.ts';
import { given, optionalString, requiredString, requiredObject } from '../../_shared/check.ts';
import { parseDataUrl } from '../../_shared/data-url.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { formatName, leftovers } from '../wire.ts';
import {
  audioType,
  bareFile,
  breakpointOf,
  decodeContentWith,
  isAddress,
  sourceOf,
} from '../../_openai/parts.ts';
import { defined, setOf } from '../../_shared/fields.ts';

const textFields = setOf('type text annotations logprobs prompt_cache_breakpoint');
const refusalFields = setOf('type refusal prompt_cache_breakpoint');
const imageFields = setOf('type image_url file_id detail prompt_cache_breakpoint');
const fileFields = setOf('type file_data file_url file_id filename detail prompt_cache_breakpoint');
const audioFields = setOf('type input_audio prompt_cache_breakpoint');
const audioInner = setOf('data format');
const textTypes = setOf('input_text output_text text');

/** The blocks of a `content` or `output`. Throws 400 with the path. */
export const decodeContent = decodeContentWith(decodePart);

function decodePart(part: JsonObject, at: string): Block {
  const type = requiredString(part.type, `${at}.type`);
  if (textTypes.has(type)) return decodeText(part, type, at);
  const left = leftovers();
  switch (type) {
    case 'refusal': {
      const text = requiredString(part.refusal, `${at}.refusal`);
      return {
        type: 'refusal',
        text,
        at,
        ...breakpointOf(part, left),
        ...left.take(part, refusalFields).extra(),
      };
    }
    case 'input_image':
      return decodeImage(part, at, left.take(part, imageFields));
    case 'input_file':
      return decodeFile(part, at, left.take(part, fileFields));
    case 'input_audio':
      return decodeAudio(part, at, left.take(part, audioFields));
    default:
      return { type: 'opaque', format: formatName, value: part, at };
  }
}

/** What an answer carried beside its text: an empty list is mere form, log probabilities say nothing to a model. */
function decodeText(part: JsonObject, type: string, at: string): Block {
  const left = leftovers().take(part, textFields).put('$part', type);
  const text = requiredString(part.text, `${at}.text`);
  const { annotations, logprobs } = part;
  if (given(annotations))
    left.put(
      Array.isArray(annotations) && annotations.length === 0 ? '$annotations' : 'annotations',
      annotations,
    );
  if (given(logprobs)) left.put('$logprobs', logprobs);
  return { type: 'text', text, at, ...breakpointOf(part, left), ...left.extra() };
}

function decodeImage(part: JsonObject, at: string, left: Leftovers): MediaBlock {
  // An object is chat completions' shape, and tolerated.
  const holder = part.image_url;
  const url = optionalString(isObject(holder) ? holder.url : holder, `${at}.image_url`);
  const id = optionalString(part.file_id, `${at}.file_id`);
  if (url === undefined && id === undefined) throw missing(`${at}.image_url`);
  if (url !== undefined && id !== undefined) left.put('file_id', id);
  // The field is a matter of form here: this word says what its absence says elsewhere.
  if (part.detail === 'auto') left.put('$detail', 'auto');
  const source: Source =
    url === undefined ? { kind: 'file', id: id ?? '', format: formatName } : sourceOf(url, left);
  const detail = optionalString(
    part.detail ?? (isObject(holder) ? holder.detail : undefined),
    `${at}.detail`,
  );
  return {
    type: 'image',
    source,
    at,
    ...(detail === undefined || detail === 'auto' ? {} : { detail }),
    ...breakpointOf(part, left),
    ...left.extra(),
  };
}

function decodeFile(part: JsonObject, at: string, left: Leftovers): MediaBlock {
  const data = optionalString(part.file_data, `${at}.file_data`);
  const url = optionalString(part.file_url, `${at}.file_url`);
  const id = optionalString(part.file_id, `${at}.file_id`);
  const name = optionalString(part.filename, `${at}.filename`);
  const detail = optionalString(part.detail, `${at}.detail`);
  if (data === undefined && url === undefined && id === undefined) throw missing(`${at}.file_data`);
  if (data !== undefined && url !== undefined) left.put('file_url', url);
  if (id !== undefined && (data ?? url) !== undefined) left.put('file_id', id);
  return {
    type: 'file',
    source: fileSource({ data, url, id: id ?? '', name }, left),
    at,
    ...defined({ name, detail }),
    ...breakpointOf(part, left),
    ...left.extra(),
  };
}

interface FileWords {
  readonly data: string | undefined;
  readonly url: string | undefined;
  readonly id: string;
  readonly name: string | undefined;
}

/** `file_data` is a data URL or bare base64. */
function fileSource({ data, url, id, name }: FileWords, left: Leftovers): Source {
  if (data === undefined)
    return url === undefined ? { kind: 'file', id, format: formatName } : { kind: 'url', url };
  if (!isAddress(data)) return bareFile(data, name, left);
  left.put('$in', 'file_data');
  return sourceOf(data, left);
}

function decodeAudio(part: JsonObject, at: string, left: Leftovers): MediaBlock {
  const path = `${at}.input_audio`;
  const object = requiredObject(part.input_audio, path);
  const data = requiredString(object.data, `${path}.data`);
  const format = requiredString(object.format, `${path}.format`);
  left.take(object, audioInner, 'input_audio.').put('$input_audio', object);
  return {
    type: 'audio',
    source: { kind: 'data', data: parseDataUrl(data)?.data ?? data, mimeType: audioType(format) },
    at,
    ...breakpointOf(part, left),
    ...left.extra(),
  };
}
