/** Decodes the content blocks of a Converse request, with its cache points. */
import { wrongType } from '../../../sdk/errors.ts';
import type { Block, Source } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import { brokenArguments } from '../../../json/arguments.ts';
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
import { defined, isText, setOf, textsIn } from '../../_shared/fields.ts';
import { proofIn } from '../../_shared/proof.ts';
import { readBlocks } from '../../_shared/read-blocks.ts';
import { decodeCitation } from '../citations.ts';
import { formatOf, mediaKinds, mimeOf, type MediaKind } from '../parts.ts';
import { formatName, leftovers } from '../wire.ts';
import type { Leftovers } from '../../_shared/extra.ts';

/** Returns the content blocks. A cache point marks the block before it. Throws 400 with the path. */
export function decodeBlocks(list: JsonValue | undefined, path: string): Block[] {
  return readBlocks(list, path, { block: decodeBlock, signature: bareSignature, cache: cacheOf });
}

/** Returns the mark that a cache point makes; undefined for a block of another kind, and for a point that only this format understands. */
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

/** A block, opened: what its one member holds, where that stands, and what is unknown in it and beside it. */
interface Opened {
  readonly wire: JsonObject;
  readonly path: string;
  readonly left: Leftovers;
}

interface BlockReading {
  /** Fields of the member that are read. */
  readonly known: ReadonlySet<string>;
  /** Undefined for a block whose inside only this format knows. */
  readonly read: (opened: Opened) => Block | undefined;
}

/** Readers of blocks, by the member that states the kind. Other blocks are kept verbatim. */
const readings: Readonly<Record<string, BlockReading>> = {
  toolUse: { known: setOf('toolUseId name input'), read: readCall },
  toolResult: { known: setOf('toolUseId content status'), read: readResult },
  reasoningContent: { known: setOf('reasoningText redactedContent'), read: readReasoning },
  citationsContent: { known: setOf('content citations'), read: readCited },
  ...Object.fromEntries(
    Object.values(mediaKinds).map((kind) => [
      kind.key,
      { known: setOf('format name source'), read: (opened: Opened) => readMedia(kind, opened) },
    ]),
  ),
};

function decodeBlock(block: JsonObject, at: string): Block {
  for (const key in block) {
    const inner = block[key];
    if (!given(inner)) continue;
    const path = `${at}.${key}`;
    if (key === 'text')
      return { type: 'text', text: requiredString(inner, path), ...beside(block, key).extra(), at };
    if (key === 'guardContent') return decodeGuarded(object(inner, path), block, at);
    const reading = Object.hasOwn(readings, key) ? readings[key] : undefined;
    if (reading === undefined) continue;
    const wire = object(inner, path);
    const left = beside(block, key).take(wire, reading.known, `${key}.`);
    const neutral = reading.read({ wire, path, left });
    return neutral === undefined ? opaque(block, at) : left.onto({ ...neutral, at });
  }
  return opaque(block, at);
}

function opaque(value: JsonObject, at: string): Block {
  return { type: 'opaque', format: formatName, value, at };
}

function object(inner: JsonValue, path: string): JsonObject {
  if (!isObject(inner)) throw wrongType(path, 'an object');
  return inner;
}

/** Collects the fields of a block beside its one member. Most blocks have none. */
function beside(block: JsonObject, key: string): Leftovers {
  const left = leftovers();
  for (const name in block) if (name !== key) return left.take(block, new Set([key]));
  return left;
}

function readCall({ wire, path }: Opened): Block {
  const input = given(wire.input) ? wire.input : {};
  return {
    type: 'tool-call',
    id: requiredString(wire.toolUseId, `${path}.toolUseId`),
    name: requiredString(wire.name, `${path}.name`),
    input: brokenArguments(input) ?? jsonText(input, `${path}.input`),
  };
}

function readResult({ wire, path, left }: Opened): Block {
  const status = optionalString(wire.status, `${path}.status`);
  const isKnown = status === 'success' || status === 'error';
  if (status !== undefined && !isKnown) left.put('toolResult.status', status);
  const content = requiredArray(wire.content, `${path}.content`);
  return {
    type: 'tool-result',
    id: requiredString(wire.toolUseId, `${path}.toolUseId`),
    content: content.map((part, index) => decodeResultPart(part, `${path}.content[${index}]`)),
    ...(isKnown ? { failed: status === 'error' } : {}),
  };
}

function decodeResultPart(value: JsonValue, at: string): Block {
  const part = object(value, at);
  if (!given(part.json)) return decodeBlock(part, at);
  const text = jsonText(part.json, `${at}.json`);
  return { type: 'text', text, ...beside(part, 'json').put('$json', true).extra(), at };
}

const thoughtFields = setOf('text signature');

function readReasoning({ wire, path, left }: Opened): Block {
  const hidden = optionalString(wire.redactedContent, `${path}.redactedContent`);
  if (hidden !== undefined)
    return { type: 'reasoning', text: '', proof: proofIn(formatName, 'encrypted', hidden) };
  const thought = requiredObject(wire.reasoningText, `${path}.reasoningText`);
  left.take(thought, thoughtFields, 'reasoningContent.reasoningText.');
  const signature = optionalString(thought.signature, `${path}.reasoningText.signature`);
  const text = requiredString(thought.text, `${path}.reasoningText.text`);
  if (!isText(signature)) return { type: 'reasoning', text };
  return { type: 'reasoning', text, proof: proofIn(formatName, 'signature', signature) };
}

function readCited({ wire, path, left }: Opened): Block {
  const content = optionalArray(wire.content, `${path}.content`) ?? [];
  // The division of the text into parts is kept for clients of this format only.
  left.put('$cited', wire.content ?? []);
  const citations = readObjects(wire.citations, `${path}.citations`, decodeCitation);
  return { type: 'text', text: textsIn(content).join(''), citations };
}

/** Decodes text or an image that a guardrail checks; for other formats it is plain text or an image. */
function decodeGuarded(wire: JsonObject, block: JsonObject, at: string): Block {
  const guarded = isObject(wire.text) && typeof wire.text.text === 'string' ? wire.text : undefined;
  if (guarded !== undefined) {
    const { text, ...qualified } = guarded;
    const left = beside(block, 'guardContent').put('guardContent', { ...wire, text: qualified });
    return { type: 'text', text: String(text), ...left.extra(), at };
  }
  const media = isObject(wire.image) ? decodeBlock({ image: wire.image }, at) : undefined;
  if (media?.type !== 'image') return opaque(block, at);
  return { ...media, extra: { [formatName]: { ...media.extra?.[formatName], guardContent: {} } } };
}

function readMedia(kind: MediaKind, { wire, path, left }: Opened): Block | undefined {
  const where = requiredObject(wire.source, `${path}.source`);
  const format = optionalString(wire.format, `${path}.format`);
  const source = decodeSource(kind, where, format, `${path}.source`, left);
  if (source === undefined) return undefined;
  return { type: kind.type, source, ...defined({ name: optionalString(wire.name, `${path}.name`) }) };
}

const sourceFields = setOf('bytes text s3Location');
const locationFields = setOf('uri');

/** Returns undefined for a source that only this format has (blocks as a document's content). */
function decodeSource(
  kind: MediaKind,
  wire: JsonObject,
  format: string | undefined,
  path: string,
  left: Leftovers,
): Source | undefined {
  const mimeType = mimeOf(kind, format ?? (given(wire.text) ? 'txt' : ''));
  // The client's format name is kept where the MIME type would be encoded as another name.
  if (formatOf(kind, mimeType) !== format) left.put('$format', format ?? null);
  left.take(wire, sourceFields, `${kind.key}.source.`);
  const location = optionalObject(wire.s3Location, `${path}.s3Location`);
  if (location !== undefined) {
    left.take(location, locationFields, `${kind.key}.source.s3Location.`);
    const id = requiredString(location.uri, `${path}.s3Location.uri`);
    return { kind: 'file', id, format: formatName, mimeType };
  }
  const text = optionalString(wire.text, `${path}.text`);
  if (text !== undefined) {
    left.put('$source', 'text');
    return { kind: 'data', data: Buffer.from(text).toString('base64'), mimeType };
  }
  const data = optionalString(wire.bytes, `${path}.bytes`);
  return data === undefined ? undefined : { kind: 'data', data, mimeType };
}
