import { cannotCarry } from '../../../sdk/errors.ts';
import type { Block, MediaBlock } from '../../../model/chat.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { toDataUrl } from '../../_shared/data-url.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import type { ToolNames } from '../../_shared/tool-ids.ts';
import type { EncodeTarget } from '../../../sdk/format.ts';
import { own } from '../extra.ts';
import { putBack } from '../../_shared/extra.ts';
import { formatName } from '../wire.ts';

/** What the parts of one request's encoder share. */
export interface Scope {
  readonly target: EncodeTarget;
  /** The request was written in another format: nothing of its spelling is known, and what the official API wants is supplied. */
  readonly foreign: boolean;
  /** Present where tool names must be re-spelled for the provider. */
  readonly names: ToolNames | undefined;
  /** Tools that take free text and go to the provider as functions. */
  readonly wrapped: ReadonlySet<string>;
}

const nested = ['image_url', 'input_audio', 'file', 'video_url', 'function', 'custom', 'audio'];

/** Puts a piece's own unknown fields back and reports those of other formats. */
export function finishPiece(
  wire: MutableObject,
  piece: Pick<Block, 'extra' | 'at'>,
  scope: Scope,
): MutableObject {
  putBack(wire, own(piece.extra), nested);
  loseForeign(piece.extra, formatName, piece.at, scope.target.lose);
  return wire;
}

/** Refuses input content that this format cannot carry; drops and reports it where the operator chose that, or the conversation can do without. */
export function refuse(
  piece: { readonly at?: string; readonly spare?: boolean },
  what: string,
  scope: Scope,
): undefined {
  if (scope.target.unsupported === 'refuse' && piece.spare !== true)
    throw cannotCarry(piece.at ?? 'messages', what, formatName);
  scope.target.lose(piece.at ?? 'messages', 'content');
  return undefined;
}

/** Reports a neutral field that this piece cannot take along. */
export function loseField(piece: { readonly at?: string }, field: string, scope: Scope): void {
  scope.target.lose(`${piece.at ?? ''}.${field}`);
}

/** Writes the blocks of a turn as one string where that is what they were (or what every provider takes), else as parts. */
export function writeContent(blocks: readonly Block[], plain: boolean | undefined, scope: Scope): JsonValue {
  const string = asString(blocks, plain, scope);
  if (string !== undefined) return string;
  const parts: JsonObject[] = [];
  for (const block of blocks) {
    const part = writePart(block, scope);
    if (part !== undefined) parts.push(part);
  }
  return parts;
}

/** A single text goes as a string: many providers of this dialect take parts in user turns only. */
function asString(blocks: readonly Block[], plain: boolean | undefined, scope: Scope): string | undefined {
  if (plain !== true && !(scope.foreign && blocks.length <= 1)) return undefined;
  let string = '';
  for (const block of blocks) {
    if (block.type !== 'text' || block.extra?.[formatName] !== undefined) return undefined;
    if (block.cache !== undefined && !refusesCache(scope)) return undefined;
    string += block.text;
  }
  for (const block of blocks) {
    loseOfText(block, scope);
    loseForeign(block.extra, formatName, block.at, scope.target.lose);
  }
  return string;
}

/** One block as a content part; undefined when it was dropped. Throws 400 for content that has no part here. */
export function writePart(block: Block, scope: Scope): JsonObject | undefined {
  switch (block.type) {
    case 'text':
      // Other formats allow an empty text; providers of this one refuse the part.
      if (scope.foreign && block.text === '') return undefined;
      loseOfText(block, scope);
      return finishPiece(withCache({ type: 'text', text: block.text }, block, scope), block, scope);
    case 'refusal':
      return finishPiece(withCache({ type: 'refusal', refusal: block.text }, block, scope), block, scope);
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return writeMedia(block, scope);
    case 'opaque':
      if (block.format === formatName) return block.value;
      return refuse(block, `content of type ${typeName(block.value)}`, scope);
    case 'reasoning':
      scope.target.lose(block.at ?? '');
      return undefined;
    case 'tool-call':
    case 'tool-result':
      return refuse(block, `a ${block.type} in this place`, scope);
  }
}

/** The `type` of an opaque value, for sentences and losses. */
export function typeName(value: JsonObject): string {
  return typeof value.type === 'string' ? value.type : 'an unknown kind';
}

function loseOfText(block: Block, scope: Scope): void {
  if (block.type !== 'text') return;
  if (block.citations !== undefined) loseField(block, 'citations', scope);
  if (block.proof !== undefined && own(block.extra).$detail === undefined) loseField(block, 'proof', scope);
  if (block.cache !== undefined && refusesCache(scope) && own(block.extra).$cache === undefined)
    loseField(block, 'cache', scope);
}

/** A provider that refuses fields it does not know names `cache` among what its models refuse. */
function refusesCache(scope: Scope): boolean {
  return scope.target.traits.refuses?.includes('cache') === true;
}

function withCache(part: MutableObject, block: Block, scope: Scope): MutableObject {
  const { cache } = block;
  if (cache === undefined) return part;
  if (own(block.extra).$cache === 'cache_control') {
    part.cache_control =
      cache.ttl === undefined ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: cache.ttl };
    return part;
  }
  if (refusesCache(scope)) {
    if (block.type !== 'text') loseField(block, 'cache', scope);
    return part;
  }
  part.prompt_cache_breakpoint = { mode: 'explicit' };
  if (cache.ttl !== undefined) loseField(block, 'cache.ttl', scope);
  return part;
}

function writeMedia(block: MediaBlock, scope: Scope): JsonObject | undefined {
  const part = mediaPart(block, scope);
  if (part === undefined) return undefined;
  if (block.name !== undefined && block.type !== 'file') loseField(block, 'name', scope);
  if (block.detail !== undefined && block.type !== 'image') loseField(block, 'detail', scope);
  return finishPiece(withCache(part, block, scope), block, scope);
}

function mediaPart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source } = block;
  if (source.kind === 'file' && (source.format !== formatName || block.type !== 'file')) {
    return refuse(block, `a file id of ${source.format}`, scope);
  }
  switch (block.type) {
    case 'image':
      return {
        type: 'image_url',
        image_url:
          block.detail === undefined ? { url: urlOf(block) } : { url: urlOf(block), detail: block.detail },
      };
    case 'video':
      return { type: 'video_url', video_url: { url: urlOf(block) } };
    case 'audio':
      return audioPart(block, scope);
    case 'file':
      return filePart(block, scope);
  }
}

/** The URL of a source, letter for letter where this format's client wrote it. */
function urlOf(block: MediaBlock): string {
  const { source } = block;
  const spelled = own(block.extra).$url;
  if (typeof spelled === 'string') return spelled;
  if (source.kind === 'url') return source.url;
  return source.kind === 'data' ? toDataUrl(source.mimeType, source.data) : '';
}

/** Sounds and documents have no place for an address here. */
export function wantsBytes({ type }: MediaBlock, traits: ModelTraits): boolean {
  return traits.fetchesUrls === false || type === 'audio' || type === 'file';
}

const audioFormats: Readonly<Record<string, string>> = {
  mpeg: 'mp3',
  'x-wav': 'wav',
  wave: 'wav',
  'vnd.wave': 'wav',
  'x-mp3': 'mp3',
};

function audioPart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source } = block;
  const { $format, $url } = own(block.extra);
  const spelled = typeof $format === 'string' ? $format : undefined;
  if (source.kind === 'url' && spelled === undefined) return refuse(block, 'audio by URL', scope);
  const subtype = (source.mimeType ?? 'audio/wav').split(/[;/]/)[1] ?? 'wav';
  const data =
    typeof $url === 'string'
      ? $url
      : source.kind === 'data'
        ? source.data
        : source.kind === 'url'
          ? source.url
          : '';
  return { type: 'input_audio', input_audio: { data, format: spelled ?? audioFormats[subtype] ?? subtype } };
}

function filePart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source, name } = block;
  if (source.kind === 'url' && scope.foreign) return refuse(block, 'a document by URL', scope);
  const file: MutableObject = {};
  if (name !== undefined) file.filename = name;
  if (source.kind === 'file') file.file_id = source.id;
  else
    file.file_data = own(block.extra).$bare === true && source.kind === 'data' ? source.data : urlOf(block);
  return { type: 'file', file };
}

/** True for a mark that decode-request left: the field is an object. */
export function objectMark(piece: Pick<Block, 'extra'>, name: string): JsonObject | undefined {
  const value = own(piece.extra)[name];
  return isObject(value) ? value : undefined;
}
