/** Prepares a long request for encoding without decoding its long texts: marks stand in their place. */
import { isChat, type Block, type ChatRequest, type Message } from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { MarkedTexts, type Call } from 'sluice/internal';

/** A request with marks in place of its long texts. */
export interface Unread {
  readonly request: ChatRequest;
  readonly texts: MarkedTexts;
}

/**
 * Returns the request of a long call for an encoder that accepts marks. Texts that the encoder reads are decoded. Undefined where the whole request
 * must be decoded: it was edited, no text was left out, or something must be known of its texts.
 */
export function unreadOf(call: Call, codec: Codec): Unread | undefined {
  const { outline, bytes } = call.wire;
  const { edits } = call;
  if (outline === undefined || call.omittedBytes === 0 || codec.writesMarks !== true) return undefined;
  if (codec.format === call.codec.format || edits.decoded === true) return undefined;
  if (edits.system !== undefined || edits.systemPrompt !== undefined) return undefined;
  const request = call.outline;
  if (!isChat(request)) return undefined;
  const texts = MarkedTexts.of(outline, bytes);
  if (texts === undefined) return undefined;
  const reader = new Reader(texts);
  const system = reader.messages(request.system);
  const messages = reader.messages(request.messages);
  return reader.readsAll ? undefined : { request: { ...request, system, messages }, texts };
}

/** Replaces the marks of texts that the encoder reads. */
class Reader {
  readonly #texts: MarkedTexts;
  /** True where the whole history must be decoded. */
  readsAll = false;

  constructor(texts: MarkedTexts) {
    this.#texts = texts;
  }

  messages(messages: readonly Message[]): readonly Message[] {
    return messages.map((message, index) => {
      if (message.extra?.['chat-completions']?.$reasoning_details !== undefined) this.readsAll = true;
      // A last message of the model is a beginning that the provider continues, so that the encoder reads its text.
      const goesOn = message.role === 'assistant' && index === messages.length - 1;
      const content = this.#blocks(message.content, goesOn);
      return content === message.content ? message : { ...message, content };
    });
  }

  #blocks(blocks: readonly Block[], all: boolean): readonly Block[] {
    let filled: Block[] | undefined;
    for (const [index, block] of blocks.entries()) {
      const known = this.#block(block, all);
      if (known !== block) (filled ??= [...blocks])[index] = known;
    }
    return filled ?? blocks;
  }

  #block(block: Block, all: boolean): Block {
    switch (block.type) {
      case 'text':
        if (!all && block.citations === undefined && this.#texts.isProse(block.text)) return block;
        return this.#asRead(block);
      case 'refusal':
      case 'reasoning':
        return this.#asRead(block);
      case 'tool-call':
        return this.#called(block);
      case 'tool-result': {
        // The encoder reads whether the result of a failed call mentions the failure.
        const content = this.#blocks(block.content, all || block.failed === true);
        return content === block.content ? block : { ...block, content };
      }
      case 'opaque':
        return block;
      default:
        // The text of a document is in its bytes.
        if (Object.values(block.extra ?? {}).some(({ $source }) => $source === 'text')) this.readsAll = true;
        return block;
    }
  }

  #asRead<B extends Block & { readonly text: string }>(block: B): B {
    return this.#texts.isMarked(block.text) ? { ...block, text: this.#wordsOf(block.text) } : block;
  }

  #called(block: Extract<Block, { readonly type: 'tool-call' }>): Block {
    if (!this.#texts.isMarked(block.input)) return block;
    // Arguments that are no JSON, in the way in which some formats wrap them.
    if (block.input.includes('"_raw"')) this.readsAll = true;
    return { ...block, input: this.#wordsOf(block.input) };
  }

  #wordsOf(text: string): string {
    const words = this.#texts.restored(text);
    // A text of the client that looks like a mark would be taken for one.
    if (this.#texts.isMarked(words)) this.readsAll = true;
    return words;
  }
}
