/** Encodes text, images, audio and files as content parts of Responses. */
import type { MediaBlock, Message, TextBlock } from '../../../model/chat.ts';
import type { ModelTraits } from '../../../model/traits.ts';
import { formatName, kept, own } from '../wire.ts';
import { audioFormat } from '../../_openai/parts.ts';
import { contentWriter } from '../../_openai/content.ts';
import { refuse, urlOf, type Scope } from '../../_openai/scope.ts';
import type { MutableObject } from '../../../model/json.ts';

/** Writes the blocks of a turn or of a result. */
export const writeContent = contentWriter({
  text: textPart,
  media: mediaPart,
  detailed: ['image', 'file', 'video'],
});

function textPart(block: TextBlock, role: Message['role'] | undefined): MutableObject {
  const { $part, $annotations, $logprobs } = own(block.extra);
  const type = typeof $part === 'string' ? $part : role === 'assistant' ? 'output_text' : 'input_text';
  const part: MutableObject = { type, text: block.text };
  if ($annotations !== undefined) part.annotations = $annotations;
  else if ($part === undefined && type === 'output_text') part.annotations = [];
  if ($logprobs !== undefined) part.logprobs = $logprobs;
  return part;
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

/** Returns true for media that the gateway must fetch: audio has no URL in this format. Video is not supported, and not fetched. */
export function wantsBytes({ type }: MediaBlock, traits: ModelTraits): boolean {
  return type === 'audio' || (type !== 'video' && traits.fetchesUrls === false);
}

function audioPart(block: MediaBlock, scope: Scope): MutableObject | undefined {
  const { source } = block;
  const held = kept(block.extra, '$input_audio') ?? {};
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
