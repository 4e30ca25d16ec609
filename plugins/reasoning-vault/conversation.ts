import { hash } from 'node:crypto';
import { chatOf, chatOutlineOf, type Block, type Call, type Message } from 'sluice';

/** The messages of a request, and how their texts are read. */
export interface Readable {
  readonly messages: readonly Message[];
  /** The words of a text of these messages, which may be a mark that stands for them. */
  words(text: string): string;
}

/** A conversation whose words stand in it. */
export function asItIs(messages: readonly Message[]): Readable {
  return { messages, words: (text) => text };
}

/** The conversation of a call. Of a long request, only texts that are asked for are read. */
export function conversationOf(call: Call): Readable {
  const { request, read } = call.texts();
  return { messages: chatOf({ operation: call.operation, request }).messages, words: read };
}

/**
 * Digests of what the user had said and the model had called before a message: what a client sends back in each turn, whatever it does to the
 * results of tools and to answers. Ask in the order of the messages.
 */
export class Before {
  readonly #conversation: () => Readable;
  #known: Readable | undefined;
  #next = 0;
  #digest = '';

  /** `conversation` is asked for when somebody wants a digest. */
  constructor(conversation: () => Readable) {
    this.#conversation = conversation;
  }

  /** The digest of all before the message of this index. */
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

  #add(said: string): void {
    this.#digest = hash('sha256', `${this.#digest} ${said}`, 'base64url');
  }
}

/** As much of a text is looked at from both of its ends, in characters. */
const glimpse = 24;

/**
 * What tells a conversation of this owner from most others, without a look at all of its words: how its first question begins, how it ends,
 * and how long it is.
 */
export function openingOf(call: Call, owner: string): string {
  const first = chatOutlineOf(call).messages.find(({ role }) => role === 'user')?.content ?? [];
  const seen = (block: Block | undefined): string =>
    block?.type === 'text' ? call.sampleText(block.text, glimpse) : '';
  // Most questions are one text.
  return JSON.stringify([owner, seen(first[0]), first.length > 1 ? seen(first.at(-1)) : '']);
}
