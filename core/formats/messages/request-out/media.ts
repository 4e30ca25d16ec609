/** Encodes images and documents of a Messages request. */
import type { MediaBlock, Source } from '../../../model/chat.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { officialType, parseDataUrl, sniffBase64 } from '../../_shared/data-url.ts';
import type { MutableObject } from '../../../model/json.ts';
import { imageTypes, formatName, own } from '../wire.ts';
import { requestPathOf, refuse } from '../../_shared/writing.ts';
import type { Writing } from './scope.ts';

/** An image or document block's `type` and `source`. */
export interface EncodedSource {
  readonly type: 'image' | 'document';
  readonly source: MutableObject;
}

/** Encodes the source of an image or a document; undefined when it cannot be carried and the operator set `drop`. Throws 400 otherwise. */
export function encodeSource(block: MediaBlock, writing: Writing): EncodedSource | undefined {
  const type = block.type === 'image' ? 'image' : 'document';
  const { source } = block;
  switch (source.kind) {
    case 'file':
      if (source.format !== formatName) return refuse(block, `a file id of ${source.format}`, writing);
      return { type, source: { type: 'file', file_id: source.id } };
    case 'url':
      return encodeUrl(type, source, block, writing);
    case 'data':
      return encodeData(type, source, block, writing);
  }
}

/** Returns true for a URL that the gateway must fetch: only PDF files can be given by URL, other documents are sent as text. */
export function wantsBytes({ type, source }: MediaBlock, traits: ModelTraits): boolean {
  if (type === 'audio' || type === 'video' || source.kind !== 'url') return false;
  const hasText = type === 'file' && source.mimeType !== undefined && source.mimeType !== 'application/pdf';
  return hasText || traits.fetchesUrls === false;
}

function encodeUrl(
  type: EncodedSource['type'],
  source: Source & { kind: 'url' },
  block: MediaBlock,
  writing: Writing,
): EncodedSource | undefined {
  const inline = parseDataUrl(source.url);
  if (inline !== undefined) return encodeData(type, inline, block, writing);
  const wire: MutableObject = { type: 'url', url: source.url };
  if (source.mimeType !== undefined) {
    if (own(block.extra).$mediaType === true) wire.media_type = source.mimeType;
    else writing.target.drop(`${requestPathOf(block)}.mimeType`);
  }
  return { type, source: wire };
}

function encodeData(
  type: EncodedSource['type'],
  { data, mimeType }: { readonly data: string; readonly mimeType: string },
  block: MediaBlock,
  writing: Writing,
): EncodedSource | undefined {
  if (writing.native) {
    const text = own(block.extra).$source === 'text';
    return { type, source: text ? textSource(data, mimeType) : base64Source(data, mimeType) };
  }
  const bare = bareType(mimeType, data);
  if (type === 'image' || bare.startsWith('image/')) {
    if (!imageTypes.has(bare)) return refuse(block, `an image of type ${bare}`, writing);
    return { type: 'image', source: base64Source(data, bare) };
  }
  if (bare === 'application/pdf') return { type, source: base64Source(data, bare) };
  if (!isText(bare)) return refuse(block, `a file of type ${bare}`, writing);
  if (bare !== 'text/plain') writing.target.drop(`${requestPathOf(block)}.mimeType`);
  return { type, source: textSource(data, 'text/plain') };
}

/** Returns the official MIME type without parameters; detected from the data where the client's is missing or generic. */
function bareType(mimeType: string, data: string): string {
  const bare = officialType((mimeType.split(';')[0] ?? '').trim().toLowerCase());
  return bare === '' || bare === 'application/octet-stream' ? (sniffBase64(data) ?? bare) : bare;
}

/** Returns true for types whose content is text. */
function isText(mimeType: string): boolean {
  return mimeType.startsWith('text/') || mimeType === 'application/json' || mimeType === 'application/xml';
}

function base64Source(data: string, mimeType: string): MutableObject {
  return { type: 'base64', media_type: mimeType, data };
}

function textSource(data: string, mimeType: string): MutableObject {
  return { type: 'text', media_type: mimeType, data: Buffer.from(data, 'base64').toString('utf8') };
}
