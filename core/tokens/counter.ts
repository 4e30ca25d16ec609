/** Counts the tokens of texts in a worker thread, and estimates them when the thread has too much to do or fails. */
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';

/** Message to the thread: a text to count. */
export interface Order {
  readonly id: number;
  readonly text: string;
}

/** Message from the thread: the number of tokens of a text. */
export interface Counted {
  readonly id: number;
  readonly tokens: number;
}

interface Waiting {
  readonly text: string;
  readonly done: (tokens: number) => void;
}

/** Characters that may wait to be counted; whatever comes on top is estimated. */
const mostWaiting = 8 * 1024 * 1024;

/**
 * Returns an estimate without a tokenizer: four bytes a token. For figures that are needed before the actual ones are known.
 *
 * @example
 * const estimate = estimateTokens(call.wire.bytes.length);
 */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

/**
 * Counts one text after the other in a thread, so that counting does not block the event loop. The thread and its tables are loaded for the
 * first text.
 */
export class TokenCounter {
  #thread: Worker | undefined;
  readonly #waiting = new Map<number, Waiting>();
  #characters = 0;
  #ids = 0;

  count(text: string): Promise<number> {
    if (text.length === 0) return Promise.resolve(0);
    if (this.#characters + text.length > mostWaiting) return Promise.resolve(estimated(text));
    return new Promise((done) => {
      const thread = (this.#thread ??= this.#start());
      this.#ids += 1;
      const id = this.#ids;
      this.#waiting.set(id, { text, done });
      this.#characters += text.length;
      // Nothing else may keep the process alive.
      thread.ref();
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is a matter of windows
      thread.postMessage({ id, text } satisfies Order);
    });
  }

  #start(): Worker {
    const thread = new Worker(new URL(`worker${extname(import.meta.url)}`, import.meta.url), {
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: 16 },
    });
    thread.unref();
    thread.on('message', ({ id, tokens }: Counted) => this.#counted(id, tokens));
    // An error is followed by the exit.
    thread.on('error', () => {});
    thread.on('exit', () => {
      if (this.#thread === thread) this.#thread = undefined;
      for (const [id, { text }] of this.#waiting) this.#counted(id, estimated(text));
    });
    return thread;
  }

  #counted(id: number, tokens: number): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    this.#characters -= waiting.text.length;
    if (this.#waiting.size === 0) this.#thread?.unref();
    waiting.done(tokens);
  }
}

function estimated(text: string): number {
  return estimateTokens(Buffer.byteLength(text));
}
