import type { MediaBlock } from '../../../model/chat.ts';
import type { JsonObject, MutableObject } from '../../../model/json.ts';
import { parseDataUrl, sniffBase64 } from '../../_shared/data-url.ts';
import { numberedId } from '../../_shared/tool-ids.ts';
import { formatOf, mediaKinds, type MediaKind } from '../parts.ts';
import { formatName, own } from '../wire.ts';
import { requestPathOf, refuse } from '../../_shared/writing.ts';
import type { Writing } from './scope.ts';
import { defined } from '../../_shared/fields.ts';

/** Returns the block of a medium, by its key; undefined when the operator lets what cannot be carried drop. */
export function encodeMedia(
  block: MediaBlock,
  writing: Writing,
): { readonly key: MediaKind['key']; readonly wire: MutableObject } | undefined {
  const { target } = writing;
  const found = sourceOf(block, writing);
  if (found === undefined) return undefined;
  const { kind, format, source } = found;
  if (block.detail !== undefined) target.drop(`${requestPathOf(block)}.detail`);
  const title = titleOf(block, kind, writing);
  return { key: kind.key, wire: { ...defined({ format, name: title }), source } };
}

interface Found {
  readonly kind: MediaKind;
  readonly format: string | undefined;
  readonly source: JsonObject;
}

function sourceOf(block: MediaBlock, writing: Writing): Found | undefined {
  const { source } = block;
  switch (source.kind) {
    case 'file': {
      if (source.format !== formatName) return refuse(block, `a file id of ${source.format}`, writing);
      const { id: uri, mimeType = '' } = source;
      const kind = kindOf(block, mimeType);
      return { kind, format: ownFormat(block, kind, mimeType), source: { s3Location: { uri } } };
    }
    case 'url': {
      const inline = parseDataUrl(source.url);
      if (inline === undefined) return refuse(block, `${article(block)} by address`, writing);
      return dataOf(block, inline.data, inline.mimeType, writing);
    }
    case 'data':
      return dataOf(block, source.data, source.mimeType, writing);
  }
}

function dataOf(block: MediaBlock, data: string, mimeType: string, writing: Writing): Found | undefined {
  const bare = (mimeType.split(';')[0] ?? '').trim();
  const shown = bare === '' || bare === 'application/octet-stream' ? (sniffBase64(data) ?? bare) : bare;
  const kind = kindOf(block, shown);
  const format = ownFormat(block, kind, shown);
  const { $source, $format } = own(block.extra);
  if (format === undefined && $format !== null)
    return refuse(block, `${article(block)} of type ${shown}`, writing);
  if (!writing.native && format === 'txt' && shown !== 'text/plain')
    writing.target.drop(`${requestPathOf(block)}.mimeType`);
  const isText = $source === 'text';
  return {
    kind,
    format,
    source: isText ? { text: Buffer.from(data, 'base64').toString() } : { bytes: data },
  };
}

/** Returns the kind of a medium. A file with an image counts as an image. */
function kindOf({ type }: MediaBlock, mimeType: string): MediaKind {
  const wanted = type === 'file' && mimeType.startsWith('image/') ? 'image' : type;
  return mediaKinds[wanted];
}

function ownFormat(block: MediaBlock, kind: MediaKind, mimeType: string): string | undefined {
  const { $format } = own(block.extra);
  if ($format === null) return undefined;
  return typeof $format === 'string' ? $format : formatOf(kind, mimeType);
}

function article({ type }: MediaBlock): string {
  return type === 'image' || type === 'audio' ? `an ${type}` : `a ${type}`;
}

/** Documents must have a name, of certain characters, that no other has. */
function titleOf({ name: title, at }: MediaBlock, kind: MediaKind, writing: Writing): string | undefined {
  if (kind.key !== 'document') {
    if (title !== undefined && !writing.native) writing.target.drop(`${at ?? 'messages'}.name`);
    return writing.native ? title : undefined;
  }
  if (writing.native) return title;
  const plain = (title ?? 'document')
    .replaceAll(/[^\p{L}\p{N}\s\-()[\]]/gu, '-')
    .replaceAll(/\s+/g, ' ')
    .slice(0, 190);
  const given = numberedId(plain.trim() === '' ? 'document' : plain, writing.documents).replaceAll('_', '-');
  if (title !== undefined && given !== title) writing.target.drop(`${at ?? 'messages'}.name`);
  return given;
}
