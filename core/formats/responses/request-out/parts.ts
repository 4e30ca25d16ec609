import type { Block, MediaBlock, Message, TextBlock } from '../../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { marked, own } from '../extra.ts';
import { formatName } from '../wire.ts';
import { audioFormat } from '../../_openai/parts.ts';
import {
  finishPiece,
  loseField,
  refuse,
  refusesCache,
  typeName,
  urlOf,
  withCache,
  type Scope,
} from '../../_openai/scope.ts';

function finished(part: MutableObject, block: Block, scope: Scope): MutableObject {
  return finishPiece(withCache(part, block, scope), block, scope);
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
      return finished(textPart(block, role), block, scope);
    case 'refusal':
      return finished({ type: 'refusal', refusal: block.text }, block, scope);
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

function writeMedia(block: MediaBlock, scope: Scope): JsonObject | undefined {
  const part = mediaPart(block, scope);
  if (part === undefined) return undefined;
  if (block.name !== undefined && block.type !== 'file') loseField(block, 'name', scope);
  if (block.detail !== undefined && block.type === 'audio') loseField(block, 'detail', scope);
  return finished(part, block, scope);
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

function imagePart(block: MediaBlock, scope: Scope): MutableObject {
  const { source, detail } = block;
  const part: MutableObject = { type: 'input_image' };
  if (source.kind === 'file') part.file_id = source.id;
  else part.image_url = urlOf(block, formatName);
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

function audioPart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source } = block;
  const held = marked(block, '$input_audio');
  if (typeof held.data === 'string') return { type: 'input_audio', input_audio: held };
  if (source.kind !== 'data') return refuse(block, 'audio by URL', scope);
  return {
    type: 'input_audio',
    input_audio: { data: source.data, format: audioFormat(source.mimeType) },
  };
}

function filePart(block: MediaBlock, scope: Scope): MutableObject {
  const { source, name, detail } = block;
  const { $bare, $in } = own(block.extra);
  const part: MutableObject = { type: 'input_file' };
  if (source.kind === 'file') part.file_id = source.id;
  else if (source.kind === 'url' && $in !== 'file_data') part.file_url = source.url;
  else part.file_data = $bare === true && source.kind === 'data' ? source.data : urlOf(block, formatName);
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
