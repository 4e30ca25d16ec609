/** Time between the announcement of a stop and the stop. */
export class Announcement {
  #end: (() => void) | undefined;

  /** Waits for a time in milliseconds, until `end` is called, or until `over` resolves. */
  async last(time: number, over: Promise<void>): Promise<void> {
    const ended = Promise.withResolvers<void>();
    this.#end = ended.resolve;
    const timer = setTimeout(ended.resolve, time);
    await Promise.race([ended.promise, over]);
    clearTimeout(timer);
    this.#end = undefined;
  }

  /** Ends the announcement early. Returns false if there is none. */
  end(): boolean {
    this.#end?.();
    return this.#end !== undefined;
  }
}
