import type { Block, MediaBlock } from '../../../model/chat.ts';
import type { JsonObject, JsonValue } from '../../../model/json.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { loseForeign } from '../../_shared/foreign.ts';
import type { MutableObject } from '../../_shared/settings.ts';
import { own } from '../extra.ts';
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

const nested = ['image_url', 'input_audio', 'file', 'video_url'];

function finished(part: MutableObject, block: Block, scope: Scope): MutableObject {
  return finishPiece(withMark(part, block, scope), block, scope, nested);
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
      return finished({ type: 'text', text: block.text }, block, scope);
    case 'refusal':
      return finished({ type: 'refusal', refusal: block.text }, block, scope);
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

function loseOfText(block: Block, scope: Scope): void {
  if (block.type !== 'text') return;
  if (block.citations !== undefined) loseField(block, 'citations', scope);
  if (block.proof !== undefined && own(block.extra).$detail === undefined) loseField(block, 'proof', scope);
  if (block.cache !== undefined && refusesCache(scope) && own(block.extra).$cache === undefined)
    loseField(block, 'cache', scope);
}

/** Aggregators of this dialect take another mark, which has a lifetime. */
function withMark(part: MutableObject, block: Block, scope: Scope): MutableObject {
  const { cache } = block;
  if (cache === undefined || own(block.extra).$cache !== 'cache_control')
    return withCache(part, block, scope);
  part.cache_control =
    cache.ttl === undefined ? { type: 'ephemeral' } : { type: 'ephemeral', ttl: cache.ttl };
  return part;
}

function writeMedia(block: MediaBlock, scope: Scope): JsonObject | undefined {
  const part = mediaPart(block, scope);
  if (part === undefined) return undefined;
  if (block.name !== undefined && block.type !== 'file') loseField(block, 'name', scope);
  if (block.detail !== undefined && block.type !== 'image') loseField(block, 'detail', scope);
  return finished(part, block, scope);
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
          block.detail === undefined
            ? { url: urlOf(block, formatName) }
            : { url: urlOf(block, formatName), detail: block.detail },
      };
    case 'video':
      return { type: 'video_url', video_url: { url: urlOf(block, formatName) } };
    case 'audio':
      return audioPart(block, scope);
    case 'file':
      return filePart(block, scope);
  }
}

/** Sounds and documents have no place for an address here. */
export function wantsBytes({ type }: MediaBlock, traits: ModelTraits): boolean {
  return traits.fetchesUrls === false || type === 'audio' || type === 'file';
}

function audioPart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source } = block;
  const { $format, $url } = own(block.extra);
  const spelled = typeof $format === 'string' ? $format : undefined;
  if (source.kind === 'url' && spelled === undefined) return refuse(block, 'audio by URL', scope);
  const data =
    typeof $url === 'string'
      ? $url
      : source.kind === 'data'
        ? source.data
        : source.kind === 'url'
          ? source.url
          : '';
  return { type: 'input_audio', input_audio: { data, format: spelled ?? audioFormat(source.mimeType) } };
}

function filePart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source, name } = block;
  if (source.kind === 'url' && scope.foreign) return refuse(block, 'a document by URL', scope);
  const file: MutableObject = {};
  if (name !== undefined) file.filename = name;
  if (source.kind === 'file') file.file_id = source.id;
  else
    file.file_data =
      own(block.extra).$bare === true && source.kind === 'data' ? source.data : urlOf(block, formatName);
  return { type: 'file', file };
}
