/** Content parts that only Mistral has: documents, audio, and references in replies. */
import type { ChatRequest, JsonObject, MediaBlock, ReasoningBlock } from 'sluice';
import { unsupportedContent, toDataUrl, type EncodeTarget } from 'sluice/channel-kit';

type Message = ChatRequest['messages'][number];
type Block = Message['content'][number];

/**
 * Returns the request with those of its pieces that chat completions have no words for, or others, as parts of Mistral's own: documents, sounds,
 * and what the model thought before.
 */
export function withOwnParts(request: ChatRequest, target: EncodeTarget): ChatRequest {
  const inside = (blocks: readonly Block[]): readonly Block[] =>
    blocks.flatMap((block) => partOf(block, target) ?? []);
  const withParts = (message: Message): Message => ({
    ...message,
    content: inside(message.content).map((block) =>
      block.type === 'tool-result' ? { ...block, content: inside(block.content) } : block,
    ),
  });
  return { ...request, system: request.system.map(withParts), messages: request.messages.map(withParts) };
}

/** Returns the block itself where chat completions say it as Mistral does, or not at all. Undefined for one that was dropped; throws 400 for one that cannot go. */
function partOf(block: Block, target: EncodeTarget): Block | undefined {
  switch (block.type) {
    // Mistral has no refusals, so that a refusal becomes a text.
    case 'refusal':
      return part({ type: 'text', text: block.text }, block);
    case 'video': {
      const at = block.at ?? 'messages';
      if (target.unsupported === 'refuse') throw unsupportedContent(at, 'video', 'mistral');
      target.drop(at, 'content');
      return undefined;
    }
    case 'reasoning':
      return thinkingOf(block, target);
    case 'file':
      return documentOf(block, target);
    case 'audio':
      return soundOf(block, target);
    default:
      return block;
  }
}

/** Wraps a part of Mistral's own format for chat completions. */
function part(value: JsonObject, { at }: Block): Block {
  return { type: 'opaque', format: 'chat-completions', value, ...(at === undefined ? {} : { at }) };
}

/** Encodes reasoning, which only reasoning models accept. `closed`: this thought has ended, and another may follow. */
function thinkingOf(block: ReasoningBlock, { traits, drop }: EncodeTarget): Block {
  const { text, proof, at } = block;
  const signature = proof?.format === 'mistral-chat' ? proof.value : undefined;
  if (traits.replaysReasoning !== true || (text === '' && signature === undefined)) return block;
  if (proof !== undefined && signature === undefined) drop(`${at ?? 'messages'}.proof`);
  return part(
    {
      type: 'thinking',
      thinking: [{ type: 'text', text }],
      ...(signature === undefined ? {} : { signature }),
      closed: true,
    },
    block,
  );
}

/** Encodes a document: by its URL, as a data URL, as text, or by its id if it was uploaded. */
function documentOf(block: MediaBlock, { drop }: EncodeTarget): Block {
  const { source, name, cache, at } = block;
  if (source.kind === 'file' && source.format !== 'chat-completions') return block;
  if (cache !== undefined) drop(`${at ?? 'messages'}.cache`);
  if (source.kind === 'file') return part({ type: 'file', file_id: source.id }, block);
  if (source.kind === 'data' && source.mimeType.startsWith('text/')) {
    const text = Buffer.from(source.data, 'base64').toString('utf8');
    return part({ type: 'text', text: name === undefined ? text : `${name}:\n${text}` }, block);
  }
  const url = source.kind === 'url' ? source.url : toDataUrl(source.mimeType, source.data);
  return part(
    { type: 'document_url', document_url: url, ...(name === undefined ? {} : { document_name: name }) },
    block,
  );
}

/** Returns a sound by its address, or in base64; its bytes tell what it is. */
function soundOf(block: MediaBlock, { drop }: EncodeTarget): Block {
  const { source, cache, at } = block;
  if (source.kind === 'file') return block;
  if (cache !== undefined) drop(`${at ?? 'messages'}.cache`);
  return part({ type: 'input_audio', input_audio: source.kind === 'url' ? source.url : source.data }, block);
}
