import { wrongType } from '../../../sdk/errors.ts';
import type { Block, MediaBlock, ReasoningBlock, Source, ToolResultBlock } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { brokenArguments } from '../../_shared/call-arguments.ts';
import {
  given,
  optionalArray,
  optionalObject,
  optionalString,
  requiredString,
  requiredObject,
  requiredArray,
  jsonText,
  readObjects,
} from '../../_shared/check.ts';
import { proofIn } from '../../_shared/proof.ts';
import { readBlocks } from '../../_shared/read-blocks.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { decodeCitation } from '../citations.ts';
import { formatOf, mediaKinds, mimeOf, type MediaKind } from '../parts.ts';
import { keepInner, name, unknown, withExtra } from '../wire.ts';
import { setOf } from '../../_shared/extra.ts';

/** Content blocks. A cache point marks the block before it. Throws 400 with the path. */
export function decodeBlocks(list: JsonValue | undefined, path: string): Block[] {
  return readBlocks(list, path, { block: decodeBlock, signature: bareSignature, cache: cacheOf });
}

/** The mark that a cache point makes; undefined for a block of another kind, and for a point that only this format understands. */
export function cacheOf(block: JsonObject, at: string): { readonly ttl?: string } | undefined {
  const point = optionalObject(block.cachePoint, `${at}.cachePoint`);
  if (point === undefined || point.type !== 'default' || Object.keys(block).length > 1) return undefined;
  const ttl = optionalString(point.ttl, `${at}.cachePoint.ttl`);
  if (Object.keys(point).some((key) => key !== 'type' && key !== 'ttl')) return undefined;
  return ttl === undefined ? {} : { ttl };
}

function bareSignature({ reasoningContent }: JsonObject): JsonValue | undefined {
  const inner = isObject(reasoningContent) ? reasoningContent.reasoningText : undefined;
  return isObject(inner) && inner.text === '' ? inner.signature : undefined;
}

/** How each block is read, by the member that says what it is. The others travel verbatim. */
const readers: Readonly<Record<string, (inner: JsonValue, block: JsonObject, at: string) => Block>> = {
  text: decodeText,
  toolUse: decodeCall,
  toolResult: decodeResult,
  reasoningContent: decodeReasoning,
  citationsContent: decodeCited,
  guardContent: decodeGuarded,
  ...Object.fromEntries(
    mediaKinds.map((kind) => [
      kind.key,
      (inner: JsonValue, block: JsonObject, at: string) => decodeMedia(kind, inner, block, at),
    ]),
  ),
};

function decodeBlock(block: JsonObject, at: string): Block {
  for (const key in block) {
    const inner = block[key];
    const read = Object.hasOwn(readers, key) ? readers[key] : undefined;
    if (read !== undefined && given(inner)) return read(inner, block, at);
  }
  return opaque(block, at);
}

function opaque(value: JsonObject, at: string): Block {
  return { type: 'opaque', format: name, value, at };
}

function object(inner: JsonValue, path: string): JsonObject {
  if (!isObject(inner)) throw wrongType(path, 'an object');
  return inner;
}

/** What a block has beside its one member. */
function beside(block: JsonObject, key: string): MutableObject {
  return unknown(block, new Set([key]));
}

function decodeText(inner: JsonValue, block: JsonObject, at: string): Block {
  const text = requiredString(inner, `${at}.text`);
  return { type: 'text', text, ...withExtra(beside(block, 'text')), at };
}

const callFields = setOf('toolUseId name input');

function decodeCall(inner: JsonValue, block: JsonObject, at: string): Block {
  const path = `${at}.toolUse`;
  const wire = object(inner, path);
  const rest = beside(block, 'toolUse');
  keepInner(rest, 'toolUse', wire, callFields);
  const input = given(wire.input) ? wire.input : {};
  return {
    type: 'tool-call',
    id: requiredString(wire.toolUseId, `${path}.toolUseId`),
    name: requiredString(wire.name, `${path}.name`),
    input: brokenArguments(input) ?? jsonText(input, `${path}.input`),
    ...withExtra(rest),
    at,
  };
}

const resultFields = setOf('toolUseId content status');

function decodeResult(inner: JsonValue, block: JsonObject, at: string): ToolResultBlock {
  const path = `${at}.toolResult`;
  const wire = object(inner, path);
  const rest = beside(block, 'toolResult');
  keepInner(rest, 'toolResult', wire, resultFields);
  const status = optionalString(wire.status, `${path}.status`);
  if (status !== undefined && status !== 'success' && status !== 'error') rest['toolResult.status'] = status;
  const content = requiredArray(wire.content, `${path}.content`);
  return {
    type: 'tool-result',
    id: requiredString(wire.toolUseId, `${path}.toolUseId`),
    content: content.map((part, index) => decodeResultPart(part, `${path}.content[${index}]`)),
    ...(status === 'error' || status === 'success' ? { failed: status === 'error' } : {}),
    ...withExtra(rest),
    at,
  };
}

function decodeResultPart(value: JsonValue, at: string): Block {
  const part = object(value, at);
  if (!given(part.json)) return decodeBlock(part, at);
  const rest = beside(part, 'json');
  rest.$json = true;
  return { type: 'text', text: jsonText(part.json, `${at}.json`), ...withExtra(rest), at };
}

const reasoningFields = setOf('reasoningText redactedContent');
const thoughtFields = setOf('text signature');

function decodeReasoning(inner: JsonValue, block: JsonObject, at: string): ReasoningBlock {
  const path = `${at}.reasoningContent`;
  const wire = object(inner, path);
  const rest = beside(block, 'reasoningContent');
  keepInner(rest, 'reasoningContent', wire, reasoningFields);
  const hidden = optionalString(wire.redactedContent, `${path}.redactedContent`);
  if (hidden !== undefined)
    return { type: 'reasoning', text: '', proof: proofIn(name, 'encrypted', hidden), ...withExtra(rest), at };
  const thought = requiredObject(wire.reasoningText, `${path}.reasoningText`);
  keepInner(rest, 'reasoningContent.reasoningText', thought, thoughtFields);
  const signature = optionalString(thought.signature, `${path}.reasoningText.signature`);
  return {
    type: 'reasoning',
    text: requiredString(thought.text, `${path}.reasoningText.text`),
    ...(signature === undefined || signature === '' ? {} : { proof: proofIn(name, 'signature', signature) }),
    ...withExtra(rest),
    at,
  };
}

const citedFields = setOf('content citations');

function decodeCited(inner: JsonValue, block: JsonObject, at: string): Block {
  const path = `${at}.citationsContent`;
  const wire = object(inner, path);
  const rest = beside(block, 'citationsContent');
  keepInner(rest, 'citationsContent', wire, citedFields);
  const content = optionalArray(wire.content, `${path}.content`) ?? [];
  // How the words are divided is a spelling.
  rest.$cited = wire.content ?? [];
  const said = content.map((part) => (isObject(part) && typeof part.text === 'string' ? part.text : ''));
  return {
    type: 'text',
    text: said.join(''),
    citations: readObjects(wire.citations, `${path}.citations`, decodeCitation),
    ...withExtra(rest),
    at,
  };
}

/** Text or an image that a guardrail shall look at; to others it is that text or image. */
function decodeGuarded(inner: JsonValue, block: JsonObject, at: string): Block {
  const path = `${at}.guardContent`;
  const wire = object(inner, path);
  const guarded = isObject(wire.text) && typeof wire.text.text === 'string' ? wire.text : undefined;
  if (guarded !== undefined) {
    const { text: _, ...qualified } = guarded;
    const rest: MutableObject = {
      ...beside(block, 'guardContent'),
      guardContent: { ...wire, text: qualified },
    };
    return { type: 'text', text: String(guarded.text), ...withExtra(rest), at };
  }
  const [image] = mediaKinds;
  if (image === undefined || !isObject(wire.image)) return opaque(block, at);
  const media = decodeMedia(image, wire.image, { image: wire.image }, at);
  if (media.type !== 'image') return opaque(block, at);
  return { ...media, extra: { [name]: { ...media.extra?.[name], guardContent: {} } } };
}

const mediaFields = setOf('format name source');

function decodeMedia(kind: MediaKind, inner: JsonValue, block: JsonObject, at: string): Block {
  const { key } = kind;
  const path = `${at}.${key}`;
  const wire = object(inner, path);
  const rest = beside(block, key);
  keepInner(rest, key, wire, mediaFields);
  const where = requiredObject(wire.source, `${path}.source`);
  const format = optionalString(wire.format, `${path}.format`);
  const source = decodeSource(kind, where, format, `${path}.source`, rest);
  if (source === undefined) return opaque(block, at);
  const title = optionalString(wire.name, `${path}.name`);
  const media: MediaBlock = { type: kind.type, source, ...withExtra(rest), at };
  return title === undefined ? media : { ...media, name: title };
}

const sourceFields = setOf('bytes text s3Location');

/** Undefined for a source that only this format knows (blocks as a document's content). */
function decodeSource(
  kind: MediaKind,
  wire: JsonObject,
  format: string | undefined,
  path: string,
  rest: MutableObject,
): Source | undefined {
  const mimeType = mimeOf(kind, format ?? (given(wire.text) ? 'txt' : ''));
  // Where the type says the same in other words the client's word is kept.
  if (formatOf(kind, mimeType) !== format) rest.$format = format ?? null;
  keepInner(rest, `${kind.key}.source`, wire, sourceFields);
  const location = optionalObject(wire.s3Location, `${path}.s3Location`);
  if (location !== undefined) {
    keepInner(rest, `${kind.key}.source.s3Location`, location, new Set(['uri']));
    const id = requiredString(location.uri, `${path}.s3Location.uri`);
    return { kind: 'file', id, format: name, mimeType };
  }
  const text = optionalString(wire.text, `${path}.text`);
  if (text !== undefined) {
    rest.$source = 'text';
    return { kind: 'data', data: Buffer.from(text).toString('base64'), mimeType };
  }
  const data = optionalString(wire.bytes, `${path}.bytes`);
  return data === undefined ? undefined : { kind: 'data', data, mimeType };
}
