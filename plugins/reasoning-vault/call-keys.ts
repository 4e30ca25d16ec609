import { hash } from 'node:crypto';
import type { Message } from 'sluice';
import { turnKey } from './memory.ts';
import type { CalledTool } from './turn.ts';

/**
 * The key under which a call's turn is kept; ids that count from one need the conversation before the message `index` beside them.
 */
export function keyOfCall(owner: string, call: IdOfCall, asked: Asked, index: number): string {
  return uniqueKey(owner, call) ?? turnKey(owner, call.id, `${call.name} ${asked.before(index)}`);
}

/** The key of a call whose id is no other conversation's; undefined where that cannot be said of it. */
export function uniqueKey(owner: string, call: IdOfCall): string | undefined {
  const { id, name } = call;
  const known = knownKeys.get(id);
  if (known !== undefined && known.name === name && known.owner === owner) return known.key;
  const key = isUnique(call) ? turnKey(owner, id) : undefined;
  if (id.length + name.length <= longestKnown) {
    if (knownKeys.size >= mostKnown) knownKeys.clear();
    knownKeys.set(id, { owner, name, key });
  }
  return key;
}

/**
 * Keys that were found lately: each turn of a conversation brings the calls of all turns before. To find 142 of them anew takes 0.3 ms,
 * a fifth of what such a request costs in all.
 */
const knownKeys = new Map<
  string,
  { readonly owner: string; readonly name: string; readonly key: string | undefined }
>();
const mostKnown = 10_000;
/** Characters. */
const longestKnown = 200;

type IdOfCall = Pick<CalledTool, 'id' | 'name'>;

/** True for an id that is random enough to be no other conversation's: it holds a run of letters and digits besides the tool's name. */
function isUnique({ id, name }: IdOfCall): boolean {
  const runs = id.replace(name, ' ').match(/[A-Za-z0-9]{8,}/g);
  return runs?.some((run) => /\d/.test(run) && /[A-Za-z]/.test(run)) === true;
}

/** Digests of what the user had said before a message. Ask in the order of the messages. */
export class Asked {
  readonly #words: () => readonly Message[];
  #next = 0;
  #digest = '';

  /** `words` gives the messages when somebody asks. */
  constructor(words: () => readonly Message[]) {
    this.#words = words;
  }

  before(index: number): string {
    const messages = this.#words();
    for (; this.#next < index; this.#next += 1) {
      const message = messages[this.#next];
      if (message?.role !== 'user') continue;
      for (const block of message.content)
        if (block.type === 'text') this.#digest = hash('sha256', this.#digest + block.text, 'base64url');
    }
    return this.#digest;
  }
}
