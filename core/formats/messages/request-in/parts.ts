/** Decodes the content blocks of a Messages request, with `cache_control`. */
import { missingValue, wrongType } from '../../../sdk/errors.ts';
import type { Block, Message, Source } from '../../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import { brokenArguments } from '../../../json/arguments.ts';
import {
  given,
  readObjects,
  optionalBoolean,
  optionalObject,
  optionalString,
  requiredString,
  requiredObject,
  jsonText,
} from '../../_shared/check.ts';
import { parseDataUrl, sniffBase64 } from '../../_shared/data-url.ts';
import { proofIn } from '../../_shared/proof.ts';
import { readBlocks } from '../../_shared/read-blocks.ts';
import { decodeCitation } from '../citations.ts';
import { formatName, leftovers } from '../wire.ts';
import type { Leftovers } from '../../_shared/extra.ts';
import { defined, isText, setOf } from '../../_shared/fields.ts';

/** Content as blocks, and whether it was one string. */
export type Content = Pick<Message, 'content' | 'plain'>;

/** Returns a message's content: a string or blocks. Throws 400 with the path. */
export function decodeContent(value: JsonValue | undefined, path: string): Content {
  if (!given(value)) throw missingValue(path);
  return contentOf(value, path, (list) => readBlocks(list, path, reader));
}

function contentOf(value: JsonValue, path: string, read: (list: JsonValue) => Block[]): Content {
  if (typeof value === 'string') return { content: [{ type: 'text', text: value, at: path }], plain: true };
  if (!Array.isArray(value)) throw wrongType(path, 'a string or an array');
  return { content: read(value) };
}

/** Reader of blocks of one type. */
interface Reading {
  /** Its fields that have a neutral meaning; all others are kept. */
  readonly known: ReadonlySet<string>;
  /** Undefined for a block whose inside only this format knows. */
  readonly read: (block: JsonObject, at: string, left: Leftovers) => Block | undefined;
}

const mediaFields = setOf('type source title cache_control');

/** Blocks that may also stand inside a tool result. */
const parts: readonly (readonly [string, Reading])[] = [
  ['text', { known: setOf('type text citations cache_control'), read: readText }],
  ['image', { known: mediaFields, read: (block, at, left) => readMedia('image', block, at, left) }],
  ['document', { known: mediaFields, read: (block, at, left) => readMedia('file', block, at, left) }],
];
const decodePart = decoder(parts);

const reader: Parameters<typeof readBlocks>[2] = {
  block: decoder([
    ...parts,
    ['tool_use', { known: setOf('type id name input cache_control'), read: readCall }],
    ['tool_result', { known: setOf('type tool_use_id content is_error cache_control'), read: readResult }],
    ['thinking', { known: setOf('type thinking signature'), read: readThinking }],
    ['redacted_thinking', { known: setOf('type data'), read: readRedacted }],
  ]),
  signature: ({ type, thinking, signature }) =>
    type === 'thinking' && thinking === '' ? signature : undefined,
};

/** Returns a decoder for blocks of these types. Blocks of other types are kept verbatim. */
function decoder(types: readonly (readonly [string, Reading])[]) {
  const readings = new Map(types);
  return (block: JsonObject, at: string): Block => {
    const reading = readings.get(requiredString(block.type, `${at}.type`));
    const left = leftovers();
    const neutral = reading?.read(block, at, left.take(block, reading.known));
    if (neutral === undefined) return { type: 'opaque', format: formatName, value: block, at };
    const caches = given(block.cache_control) && reading?.known.has('cache_control') === true;
    return left.onto(caches ? { ...neutral, ...cacheOf(block, at, left), at } : { ...neutral, at });
  };
}

function readText(block: JsonObject, at: string): Block {
  const text = requiredString(block.text, `${at}.text`);
  if (!given(block.citations)) return { type: 'text', text };
  return { type: 'text', text, citations: readObjects(block.citations, `${at}.citations`, decodeCitation) };
}

function readMedia(
  type: 'image' | 'file',
  block: JsonObject,
  at: string,
  left: Leftovers,
): Block | undefined {
  const wire = requiredObject(block.source, `${at}.source`);
  const source = decodeSource(type, wire, `${at}.source`, left);
  if (source === undefined) return undefined;
  return { type, source, ...defined({ name: optionalString(block.title, `${at}.title`) }) };
}

const sourceFields = setOf('type data url file_id media_type');

/** Returns the neutral source; undefined for one that only this format has (blocks as a document's content). */
function decodeSource(
  type: 'image' | 'file',
  wire: JsonObject,
  path: string,
  left: Leftovers,
): Source | undefined {
  left.take(wire, sourceFields, 'source.');
  const mimeType = optionalString(wire.media_type, `${path}.media_type`);
  switch (requiredString(wire.type, `${path}.type`)) {
    case 'base64': {
      const data = requiredString(wire.data, `${path}.data`);
      const shown = mimeType ?? sniffBase64(data);
      if (shown === undefined) throw missingValue(`${path}.media_type`);
      return { kind: 'data', data, mimeType: shown };
    }
    case 'url': {
      const url = requiredString(wire.url, `${path}.url`);
      const inline = parseDataUrl(url);
      if (inline !== undefined) return { kind: 'data', data: inline.data, mimeType: inline.mimeType };
      if (mimeType === undefined) return { kind: 'url', url };
      left.put('$mediaType', true);
      return { kind: 'url', url, mimeType };
    }
    case 'file':
      return { kind: 'file', id: requiredString(wire.file_id, `${path}.file_id`), format: formatName };
    case 'text': {
      if (type === 'image') return undefined;
      left.put('$source', 'text');
      const text = requiredString(wire.data, `${path}.data`);
      return {
        kind: 'data',
        data: Buffer.from(text).toString('base64'),
        mimeType: mimeType ?? 'text/plain',
      };
    }
    default:
      return undefined;
  }
}

function readCall(block: JsonObject, at: string): Block {
  const input = optionalObject(block.input, `${at}.input`);
  return {
    type: 'tool-call',
    id: requiredString(block.id, `${at}.id`),
    name: requiredString(block.name, `${at}.name`),
    input: input === undefined ? '' : (brokenArguments(input) ?? jsonText(input, `${at}.input`)),
  };
}

function readResult(block: JsonObject, at: string, left: Leftovers): Block {
  const { content } = block;
  const failed = optionalBoolean(block.is_error, `${at}.is_error`);
  if (!given(content)) left.put('$content', 'absent');
  const path = `${at}.content`;
  return {
    type: 'tool-result',
    id: requiredString(block.tool_use_id, `${at}.tool_use_id`),
    ...(given(content)
      ? contentOf(content, path, (list) => readObjects(list, path, decodePart))
      : { content: [] }),
    ...defined({ failed }),
  };
}

function readThinking(block: JsonObject, at: string): Block {
  const signature = optionalString(block.signature, `${at}.signature`);
  const text = optionalString(block.thinking, `${at}.thinking`) ?? '';
  if (!isText(signature)) return { type: 'reasoning', text };
  return { type: 'reasoning', text, proof: proofIn(formatName, 'signature', signature) };
}

function readRedacted(block: JsonObject, at: string): Block {
  const proof = proofIn(formatName, 'encrypted', requiredString(block.data, `${at}.data`));
  return { type: 'reasoning', text: '', proof };
}

const cacheFields = setOf('type ttl');

/** Decodes `cache_control` as the neutral cache mark; its unknown members go to `left`. */
export function cacheOf(
  piece: JsonObject,
  at: string,
  left: Leftovers,
): { readonly cache?: { readonly ttl?: string } } {
  const control = optionalObject(piece.cache_control, `${at}.cache_control`);
  if (control === undefined) return {};
  const ttl = optionalString(control.ttl, `${at}.cache_control.ttl`);
  left.take(control, cacheFields, 'cache_control.');
  if (given(control.type) && control.type !== 'ephemeral') left.put('cache_control.type', control.type);
  return { cache: ttl === undefined ? {} : { ttl } };
}
