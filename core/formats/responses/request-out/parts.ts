import { cannotCarry } from '../../../sdk/errors.ts';
import type { Block, MediaBlock, Message, TextBlock } from '../../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { toDataUrl } from '../../_shared/data-url.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import type { ToolNames } from '../../_shared/tool-ids.ts';
import type { EncodeTarget } from '../../../sdk/format.ts';
import { marked, own } from '../extra.ts';
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

/** Puts a piece's own unknown fields back and reports those of other formats. */
export function finishPiece(
  wire: MutableObject,
  piece: Pick<Block, 'extra' | 'at'>,
  scope: Scope,
): MutableObject {
  putBack(wire, own(piece.extra));
  loseForeign(piece.extra, formatName, piece.at, scope.target.lose);
  return wire;
}

/** Refuses input content that this format cannot carry; drops and reports it where the operator chose that, or the conversation can do without. */
export function refuse(
  piece: { readonly at?: string; readonly spare?: boolean },
  what: string,
  scope: Scope,
): undefined {
  const at = piece.at ?? 'messages';
  if (scope.target.unsupported === 'refuse' && piece.spare !== true) throw cannotCarry(at, what, formatName);
  scope.target.lose(at, 'content');
  return undefined;
}

/** Reports a neutral field that this piece cannot take along. */
export function loseField(piece: { readonly at?: string }, field: string, scope: Scope): void {
  scope.target.lose(`${piece.at ?? ''}.${field}`);
}

/** Writes the blocks of a turn or of a result as one string where that is what they were, or where it says everything; else as parts. */
export function writeContent(
  blocks: readonly Block[],
  plain: boolean | undefined,
  role: Message['role'],
  scope: Scope,
): JsonValue {
  const said = scope.foreign ? blocks.filter((block) => block.type !== 'text' || block.text !== '') : blocks;
  if (fitsString(said, plain, scope)) {
    let string = '';
    for (const block of said) {
      if (block.type !== 'text') continue;
      loseOfText(block, scope);
      loseForeign(block.extra, formatName, block.at, scope.target.lose);
      string += block.text;
    }
    return string;
  }
  const parts: JsonObject[] = [];
  for (const block of said) {
    const part = writePart(block, role, scope);
    if (part !== undefined) parts.push(part);
  }
  return parts;
}

function fitsString(blocks: readonly Block[], plain: boolean | undefined, scope: Scope): boolean {
  if (plain !== true && !(scope.foreign && blocks.length <= 1)) return false;
  return blocks.every(
    (block) =>
      block.type === 'text' &&
      block.extra?.[formatName] === undefined &&
      (block.cache === undefined || refusesCache(scope)),
  );
}

/** One block as a content part; undefined when it was dropped. Throws 400 for content that has no part here. */
function writePart(block: Block, role: Message['role'], scope: Scope): JsonObject | undefined {
  switch (block.type) {
    case 'text':
      loseOfText(block, scope);
      return finishPiece(withCache(textPart(block, role), block, scope), block, scope);
    case 'refusal':
      return finishPiece(withCache({ type: 'refusal', refusal: block.text }, block, scope), block, scope);
    case 'image':
    case 'audio':
    case 'video':
    case 'file':
      return role === 'assistant' && scope.foreign
        ? refuse(block, `${block.type} in an assistant turn`, scope)
        : writeMedia(block, scope);
    case 'opaque':
      if (block.format === formatName) return block.value;
      return refuse(block, `content of type ${typeName(block.value)}`, scope);
    case 'reasoning':
    case 'tool-call':
    case 'tool-result':
      return refuse(block, `a ${block.type} in this place`, scope);
  }
}

/** The `type` of an opaque value, for sentences. */
export function typeName(value: JsonObject): string {
  return typeof value.type === 'string' ? value.type : 'an unknown kind';
}

function textPart(block: TextBlock, role: Message['role']): MutableObject {
  const { $part, $annotations, $logprobs } = own(block.extra);
  const type = typeof $part === 'string' ? $part : role === 'assistant' ? 'output_text' : 'input_text';
  const part: MutableObject = { type, text: block.text };
  if ($annotations !== undefined) part.annotations = $annotations;
  else if ($part === undefined && type === 'output_text') part.annotations = [];
  if ($logprobs !== undefined) part.logprobs = $logprobs;
  return part;
}

function loseOfText(block: TextBlock, scope: Scope): void {
  if (block.citations !== undefined) loseField(block, 'citations', scope);
  if (block.proof !== undefined) loseField(block, 'proof', scope);
  if (block.cache !== undefined && refusesCache(scope)) loseField(block, 'cache', scope);
}

/** A provider that refuses fields it does not know names `cache` among what its models refuse. */
function refusesCache(scope: Scope): boolean {
  return scope.target.traits.refuses?.includes('cache') === true;
}

function withCache(part: MutableObject, block: Block, scope: Scope): MutableObject {
  if (block.cache === undefined) return part;
  if (refusesCache(scope)) {
    if (block.type !== 'text') loseField(block, 'cache', scope);
    return part;
  }
  part.prompt_cache_breakpoint = { mode: 'explicit' };
  if (block.cache.ttl !== undefined) loseField(block, 'cache.ttl', scope);
  return part;
}

function writeMedia(block: MediaBlock, scope: Scope): JsonObject | undefined {
  const part = mediaPart(block, scope);
  if (part === undefined) return undefined;
  if (block.name !== undefined && block.type !== 'file') loseField(block, 'name', scope);
  if (block.detail !== undefined && block.type === 'audio') loseField(block, 'detail', scope);
  return finishPiece(withCache(part, block, scope), block, scope);
}

function mediaPart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source } = block;
  if (source.kind === 'file' && source.format !== formatName)
    return refuse(block, `a file id of ${source.format}`, scope);
  switch (block.type) {
    case 'image':
      return imagePart(block, scope);
    case 'audio':
      return audioPart(block, scope);
    case 'file':
      return filePart(block, scope);
    case 'video':
      return refuse(block, 'video', scope);
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

function imagePart(block: MediaBlock, scope: Scope): MutableObject {
  const { source, detail } = block;
  const part: MutableObject = { type: 'input_image' };
  if (source.kind === 'file') part.file_id = source.id;
  else part.image_url = urlOf(block);
  const { $detail } = own(block.extra);
  // Typed providers require the field.
  const shown = detail ?? (scope.foreign || $detail !== undefined ? 'auto' : undefined);
  if (shown !== undefined) part.detail = shown;
  return part;
}

/** Sounds have no place for an address here; videos have none at all. */
export function wantsBytes({ type }: MediaBlock, traits: ModelTraits): boolean {
  return type === 'audio' || (type !== 'video' && traits.fetchesUrls === false);
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
  const held = marked(block, '$input_audio');
  if (typeof held.data === 'string') return { type: 'input_audio', input_audio: held };
  if (source.kind !== 'data') return refuse(block, 'audio by URL', scope);
  const subtype = source.mimeType.split(/[;/]/)[1] ?? 'wav';
  return {
    type: 'input_audio',
    input_audio: { data: source.data, format: audioFormats[subtype] ?? subtype },
  };
}

function filePart(block: MediaBlock, scope: Scope): MutableObject {
  const { source, name, detail } = block;
  const { $bare, $in } = own(block.extra);
  const part: MutableObject = { type: 'input_file' };
  if (source.kind === 'file') part.file_id = source.id;
  else if (source.kind === 'url' && $in !== 'file_data') part.file_url = source.url;
  else part.file_data = $bare === true && source.kind === 'data' ? source.data : urlOf(block);
  // Bytes without a name are refused.
  const shown = name ?? (scope.foreign && source.kind === 'data' ? defaultName(source.mimeType) : undefined);
  if (shown !== undefined) part.filename = shown;
  if (detail !== undefined) part.detail = detail;
  return part;
}

function defaultName(mimeType: string): string {
  const subtype = /\/([a-z0-9]+)/i.exec(mimeType)?.[1] ?? 'bin';
  return `document.${subtype === 'plain' ? 'txt' : subtype}`;
}
