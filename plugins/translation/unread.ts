import { isChat, type Block, type ChatRequest, type Message } from 'sluice';
import type { Codec } from 'sluice/channel-kit';
import { MarkedTexts, type Call } from 'sluice/internal';

/** A request in which marks stand for its long texts. */
export interface Unread {
  readonly request: ChatRequest;
  readonly texts: MarkedTexts;
}

/**
 * The request of a long call for an encoder that does not read long texts: of what somebody reads on the way the words are there. Undefined
 * where it has to be decoded whole: it was edited, nothing was left out of it, or too much of it is read.
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

/** Fills in what somebody reads of a history. */
class Reader {
  readonly #texts: MarkedTexts;
  /** Something has to be known of the history that the marks do not tell. */
  readsAll = false;

  constructor(texts: MarkedTexts) {
    this.#texts = texts;
  }

  messages(messages: readonly Message[]): readonly Message[] {
    return messages.map((message, index) => {
      if (message.extra?.['chat-completions']?.$reasoning_details !== undefined) this.readsAll = true;
      // The provider goes on with the last words of the model's own: they are looked at closely.
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
        return this.#said(block);
      case 'refusal':
      case 'reasoning':
        return this.#said(block);
      case 'tool-call':
        return this.#called(block);
      case 'tool-result': {
        // Whether a failed call says so is read.
        const content = this.#blocks(block.content, all || block.failed === true);
        return content === block.content ? block : { ...block, content };
      }
      case 'opaque':
        return block;
      default:
        // The words of a document are its bytes.
        if (Object.values(block.extra ?? {}).some(({ $source }) => $source === 'text')) this.readsAll = true;
        return block;
    }
  }

  #said<B extends Block & { readonly text: string }>(block: B): B {
    return this.#texts.isMarked(block.text) ? { ...block, text: this.#wordsOf(block.text) } : block;
  }

  #called(block: Extract<Block, { readonly type: 'tool-call' }>): Block {
    if (!this.#texts.isMarked(block.input)) return block;
    // Arguments that were no JSON, as some formats write them.
    if (block.input.includes('"_raw"')) this.readsAll = true;
    return { ...block, input: this.#wordsOf(block.input) };
  }

  #wordsOf(text: string): string {
    const words = this.#texts.restored(text);
    // The client's own words would be taken for a mark.
    if (this.#texts.isMarked(words)) this.readsAll = true;
    return words;
  }
}
