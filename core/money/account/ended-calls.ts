/** Work that is left when a call has ended. It must not throw. */
export interface EndedCall {
  settle(): void;
}

/**
 * Does the work that is left of calls that have ended, for all calls of one turn of the event loop together. Done between calls that still
 * run, the work of each would find the processor's caches cold and cost several times as much.
 * Nothing depends on when it is done: the figures of a call are final before its work is added, and `flush` does all of it at once.
 */
export class EndedCalls {
  #waiting: EndedCall[] = [];

  add(call: EndedCall): void {
    this.#waiting.push(call);
    if (this.#waiting.length === 1) setImmediate(this.#run);
  }

  /** Does all work that waits, for a gateway that closes. */
  flush(): void {
    this.#run();
  }

  readonly #run = (): void => {
    const all = this.#waiting;
    this.#waiting = [];
    for (const call of all) call.settle();
  };
}
