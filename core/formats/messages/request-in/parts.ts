import { missing, wrongType } from '../../../sdk/errors.ts';
import type {
  Block,
  MediaBlock,
  ReasoningBlock,
  Source,
  TextBlock,
  ToolResultBlock,
} from '../../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import { brokenArguments } from '../../_shared/call-arguments.ts';
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
import { setOf } from '../../_shared/fields.ts';

/** Content as blocks, and whether it was one string. */
export interface Content {
  readonly content: readonly Block[];
  readonly plain?: boolean;
}

/** A message's content: a string or blocks. Throws 400 with the path. */
export function decodeContent(value: JsonValue | undefined, path: string): Content {
  if (typeof value === 'string') return { content: [{ type: 'text', text: value, at: path }], plain: true };
  if (!given(value)) throw missing(path);
  if (!Array.isArray(value)) throw wrongType(path, 'a string or an array');
  return { content: readBlocks(value as readonly JsonValue[], path, reader) };
}

const reader: Parameters<typeof readBlocks>[2] = {
  block: decodeBlock,
  signature: ({ type, thinking, signature }) =>
    type === 'thinking' && thinking === '' ? signature : undefined,
};

function decodeBlock(block: JsonObject, at: string): Block {
  switch (requiredString(block.type, `${at}.type`)) {
    case 'tool_use':
      return decodeCall(block, at);
    case 'tool_result':
      return decodeResult(block, at);
    case 'thinking':
      return decodeThinking(block, at);
    case 'redacted_thinking':
      return decodeRedacted(block, at);
    default:
      return decodePart(block, at);
  }
}

/** A block that may also stand inside a tool result. What is not known travels verbatim. */
function decodePart(block: JsonObject, at: string): Block {
  switch (requiredString(block.type, `${at}.type`)) {
    case 'text':
      return decodeText(block, at);
    case 'image':
      return decodeMedia('image', block, at);
    case 'document':
      return decodeMedia('file', block, at);
    default:
      return { type: 'opaque', format: formatName, value: block, at };
  }
}

const textFields = setOf('type text citations cache_control');

function decodeText(block: JsonObject, at: string): TextBlock {
  const left = leftovers().take(block, textFields);
  const text = requiredString(block.text, `${at}.text`);
  const citations = given(block.citations)
    ? readObjects(block.citations, `${at}.citations`, decodeCitation)
    : undefined;
  return {
    type: 'text',
    text,
    ...(citations === undefined ? {} : { citations }),
    ...cacheOf(block, at, left),
    ...left.extra(),
    at,
  };
}

const mediaFields = setOf('type source title cache_control');

function decodeMedia(type: 'image' | 'file', block: JsonObject, at: string): Block {
  const wire = requiredObject(block.source, `${at}.source`);
  const left = leftovers().take(block, mediaFields);
  const source = decodeSource(type, wire, `${at}.source`, left);
  if (source === undefined) return { type: 'opaque', format: formatName, value: block, at };
  const title = optionalString(block.title, `${at}.title`);
  const media: MediaBlock = {
    type,
    source,
    ...(title === undefined ? {} : { name: title }),
    ...cacheOf(block, at, left),
    ...left.extra(),
    at,
  };
  return media;
}

const sourceFields = setOf('type data url file_id media_type');

/** The neutral source; undefined for one that only this format knows (blocks as a document's content). */
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
      if (shown === undefined) throw missing(`${path}.media_type`);
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

const callFields = setOf('type id name input cache_control');

function decodeCall(block: JsonObject, at: string): Block {
  const left = leftovers().take(block, callFields);
  const input = optionalObject(block.input, `${at}.input`);
  return {
    type: 'tool-call',
    id: requiredString(block.id, `${at}.id`),
    name: requiredString(block.name, `${at}.name`),
    input: input === undefined ? '' : (brokenArguments(input) ?? jsonText(input, `${at}.input`)),
    ...cacheOf(block, at, left),
    ...left.extra(),
    at,
  };
}

const resultFields = setOf('type tool_use_id content is_error cache_control');

function decodeResult(block: JsonObject, at: string): ToolResultBlock {
  const left = leftovers().take(block, resultFields);
  const failed = optionalBoolean(block.is_error, `${at}.is_error`);
  if (!given(block.content)) left.put('$content', 'absent');
  return {
    type: 'tool-result',
    id: requiredString(block.tool_use_id, `${at}.tool_use_id`),
    ...decodeResultContent(block.content, `${at}.content`),
    ...(failed === undefined ? {} : { failed }),
    ...cacheOf(block, at, left),
    ...left.extra(),
    at,
  };
}

function decodeResultContent(value: JsonValue | undefined, path: string): Content {
  if (typeof value === 'string') return { content: [{ type: 'text', text: value, at: path }], plain: true };
  if (!given(value)) return { content: [] };
  if (!Array.isArray(value)) throw wrongType(path, 'a string or an array');
  return { content: readObjects(value as readonly JsonValue[], path, decodePart) };
}

const thinkingFields = setOf('type thinking signature');

function decodeThinking(block: JsonObject, at: string): ReasoningBlock {
  const signature = optionalString(block.signature, `${at}.signature`);
  return {
    type: 'reasoning',
    text: optionalString(block.thinking, `${at}.thinking`) ?? '',
    ...(signature === undefined || signature === ''
      ? {}
      : { proof: proofIn(formatName, 'signature', signature) }),
    ...leftovers().take(block, thinkingFields).extra(),
    at,
  };
}

const redactedFields = setOf('type data');

function decodeRedacted(block: JsonObject, at: string): ReasoningBlock {
  return {
    type: 'reasoning',
    text: '',
    proof: proofIn(formatName, 'encrypted', requiredString(block.data, `${at}.data`)),
    ...leftovers().take(block, redactedFields).extra(),
    at,
  };
}

const cacheFields = setOf('type ttl');

/** `cache_control` as the neutral cache mark; what is unknown in it goes to `left`. */
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
