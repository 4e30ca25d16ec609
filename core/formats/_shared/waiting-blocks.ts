/** The events of a block that waits for the floor. */
interface WaitingBlock<Event> {
  readonly block: number;
  readonly events: readonly Event[];
}

/** Blocks that wait while another one is written, for formats that write blocks in sequence. First in, first out. */
export class WaitingBlocks<Event> {
  readonly #events = new Map<number, Event[]>();
  /** The blocks in their order: a Map from which the first is taken again and again has to look for it. */
  readonly #order: number[] = [];
  #next = 0;

  /** Adds an event of a block, which waits from now on. */
  add(block: number, event: Event): void {
    const events = this.#events.get(block);
    if (events !== undefined) {
      events.push(event);
      return;
    }
    this.#events.set(block, [event]);
    this.#order.push(block);
  }

  /** Returns undefined when none waits. */
  take(): WaitingBlock<Event> | undefined {
    const block = this.#order[this.#next];
    const events = block === undefined ? undefined : this.#events.get(block);
    if (block === undefined || events === undefined) return undefined;
    this.#next += 1;
    this.#events.delete(block);
    return { block, events };
  }
}
