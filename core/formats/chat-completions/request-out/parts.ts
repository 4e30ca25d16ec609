/** Encodes text, images, audio, video and files as content parts of chat completions. */
import type { MediaBlock } from '../../../model/chat.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { contentWriter } from '../../_openai/content.ts';
import { audioFormat } from '../../_openai/parts.ts';
import { refuse, urlOf, type Scope } from '../../_openai/scope.ts';
import { defined } from '../../_shared/fields.ts';
import type { MutableObject } from '../../../model/json.ts';
import { formatName, own } from '../wire.ts';

/** Writes the blocks of a turn. */
export const writeContent = contentWriter({
  text: ({ text }) => ({ type: 'text', text }),
  media: mediaPart,
  detailed: ['image'],
  nested: ['image_url', 'input_audio', 'file', 'video_url'],
  keepsLists: true,
  sparesReasoning: true,
});

function mediaPart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source } = block;
  if (source.kind === 'file' && (source.format !== formatName || block.type !== 'file')) {
    return refuse(block, `a file id of ${source.format}`, scope);
  }
  switch (block.type) {
    case 'image':
      return {
        type: 'image_url',
        image_url: { url: urlOf(block, formatName), ...defined({ detail: block.detail }) },
      };
    case 'video':
      return { type: 'video_url', video_url: { url: urlOf(block, formatName) } };
    case 'audio':
      return audioPart(block, scope);
    case 'file':
      return filePart(block, scope);
  }
}

/** Returns true for media that must be fetched by the gateway, because audio and files have no URL in this format. */
export function wantsBytes({ type }: MediaBlock, traits: ModelTraits): boolean {
  return traits.fetchesUrls === false || type === 'audio' || type === 'file';
}

function audioPart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source } = block;
  const { $format, $url } = own(block.extra);
  const spelled = typeof $format === 'string' ? $format : undefined;
  if (source.kind === 'url' && spelled === undefined) return refuse(block, 'audio by URL', scope);
  const data = source.kind === 'data' && $url === undefined ? source.data : urlOf(block, formatName);
  return { type: 'input_audio', input_audio: { data, format: spelled ?? audioFormat(source.mimeType) } };
}

function filePart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source, name } = block;
  if (source.kind === 'url' && scope.foreign) return refuse(block, 'a document by URL', scope);
  const file: MutableObject = defined({ filename: name });
  if (source.kind === 'file') file.file_id = source.id;
  else
    file.file_data =
      own(block.extra).$bare === true && source.kind === 'data' ? source.data : urlOf(block, formatName);
  return { type: 'file', file };
}
