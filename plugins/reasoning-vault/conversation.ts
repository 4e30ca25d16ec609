/** Digests of a conversation: of everything before a message, and of its first user message. */
import { hash } from 'node:crypto';
import { chatOf, chatOutlineOf, type Block, type Call, type Message } from 'sluice';

/** The messages of a request, and a function that reads their texts. */
export interface Readable {
  readonly messages: readonly Message[];
  /** Returns the content of a text of these messages, which may be a mark for a long text. */
  words(text: string): string;
}

/** Returns messages whose texts contain no marks. */
export function asItIs(messages: readonly Message[]): Readable {
  return { messages, words: (text) => text };
}

/** Returns the conversation of a call. Of a long request, texts are decoded when they are read. */
export function conversationOf(call: Call): Readable {
  const { request, read } = call.texts();
  return { messages: chatOf({ operation: call.operation, request }).messages, words: read };
}

/**
 * Digests of the user's texts and the model's tool calls before a message, which clients send back unchanged, unlike results of tools and answers.
 * Digests must be requested in the order of the messages.
 */
export class Before {
  readonly #conversation: () => Readable;
  #known: Readable | undefined;
  #next = 0;
  #digest = '';

  /** `conversation` is called when the first digest is requested. */
  constructor(conversation: () => Readable) {
    this.#conversation = conversation;
  }

  /** Returns the digest of all before the message of this index. */
  digest(index: number): string {
    const { messages, words } = (this.#known ??= this.#conversation());
    for (; this.#next < index; this.#next += 1) {
      const message = messages[this.#next];
      if (message?.role !== 'user' && message?.role !== 'assistant') continue;
      for (const block of message.content) {
        if (block.type === 'tool-call') this.#add(`call ${JSON.stringify([block.id, block.name])}`);
        else if (block.type === 'text' && message.role === 'user') this.#add(`user ${words(block.text)}`);
      }
    }
    return this.#digest;
  }

  #add(text: string): void {
    this.#digest = hash('sha256', `${this.#digest} ${text}`, 'base64url');
  }
}

/** Number of characters that are sampled at each end of a text. */
const glimpse = 24;

/**
 * Returns a text that identifies a conversation among most others, without reading all of it: beginning, end and length of its first user message.
 */
export function openingOf(call: Call, owner: string): string {
  const first = chatOutlineOf(call).messages.find(({ role }) => role === 'user')?.content ?? [];
  const seen = (block: Block | undefined): string =>
    block?.type === 'text' ? call.sampleText(block.text, glimpse) : '';
  // Most user messages are one text.
  return JSON.stringify([owner, seen(first[0]), first.length > 1 ? seen(first.at(-1)) : '']);
}
