/** Runs statements a few at a time, so that those of a question that was abandoned need not run. */
import { setImmediate } from 'node:timers/promises';
import { readerSignal } from '../waiting-reader.ts';
import type { Ask } from './long-reads.ts';

/** Permits for statements that run at the same time. */
export class Turns {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#free = most;
  }

  /** Resolves when one more may run. {@link leave} ends it. */
  async enter(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}

/** Returns a function that runs a statement in its turn, and rejects instead when its question has been abandoned by then. */
export function inTurn(ask: Ask, turns: Turns): Ask {
  return async (sql, values) => {
    await turns.enter();
    try {
      // A message that abandons the question is read meanwhile: SQLite holds the thread while a statement runs.
      await setImmediate();
      readerSignal()?.throwIfAborted();
      return await ask(sql, values);
    } finally {
      turns.leave();
    }
  };
}
