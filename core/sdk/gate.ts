/**
 * Something that is shut and opened with a gate.
 *
 * @example
 * call.gate.attach({ pause: () => source.pause(), resume: () => source.resume() });
 */
export interface Valve {
  pause(): void;
  resume(): void;
}

/**
 * The one backpressure valve of a call. Whoever writes to the client closes it when the client's buffer is full and opens it when
 * it has drained; whoever reads from a provider either attaches a valve or awaits `opened()` after each read.
 * Closed by several holders, it opens when all have let go.
 *
 * @example
 * call.gate.close();
 * await somethingSlow().finally(() => call.gate.open());
 */
export class Gate {
  #holders = 0;
  #valve: Valve | undefined;
  /** Beside the first: only while several channels are asked at once. */
  #others: Set<Valve> | undefined;
  #waiting: (() => void)[] = [];

  get closed(): boolean {
    return this.#holders > 0;
  }

  /** Shuts the gate. Each close needs one open. */
  close(): void {
    this.#holders += 1;
    if (this.#holders > 1) return;
    this.#valve?.pause();
    if (this.#others !== undefined) for (const valve of this.#others) valve.pause();
  }

  open(): void {
    if (this.#holders === 0) return;
    this.#holders -= 1;
    if (this.#holders > 0) return;
    this.#valve?.resume();
    if (this.#others !== undefined) for (const valve of this.#others) valve.resume();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const go of waiting) go();
  }

  /** Resolves at once when open, else when it opens. */
  opened(): Promise<void> | undefined {
    if (this.#holders === 0) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Connects a reader until it is detached. */
  attach(valve: Valve): void {
    if (this.#valve === undefined || this.#valve === valve) this.#valve = valve;
    else (this.#others ??= new Set()).add(valve);
    if (this.#holders > 0) valve.pause();
  }

  /** Forgets a reader that has nothing more to read. */
  detach(valve: Valve): void {
    if (this.#valve === valve) this.#valve = undefined;
    else this.#others?.delete(valve);
  }
}
