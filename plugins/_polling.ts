/** Polls items at providers until they are finished. `Polled` has the storage of the items and the function that polls one. */
export interface Polled<Item> {
  keyOf(item: Item): string;
  /** Claims at most `most` items that are due, for this process until its lease expires. */
  claim(most: number): Promise<readonly Item[]>;
  /** Claims this item, due or not. Returns undefined where another process holds it. */
  claimOne(item: Item): Promise<Item | undefined>;
  find(item: Item): Promise<Item | undefined>;
  /** Polls the provider about a claimed item, and stores the result. */
  poll(item: Item): Promise<Item>;
  /** Reports that items could not be looked up, or that this item could not be stored. */
  failed(error: unknown, item?: Item): void;
}

/** Intervals and limits of polling. Times are in milliseconds. */
export interface PollingOptions {
  readonly first: number;
  readonly most: number;
  /** Questions of this process at the same time. */
  readonly parallel: number;
  /** Timeout of one request to the provider. */
  readonly patience: number;
  /** The longest pause between two looks for what is due. */
  readonly longestPause: number;
}

/** Each pause is so many times the one before. */
const growth = 1.5;

/**
 * Looks for what is due and asks about it. Of all gateways on one database one asks about an item at a time: it holds a lease, which another
 * takes over when it is gone.
 */
export class Polling<Item> {
  readonly #polled: Polled<Item>;
  readonly #options: PollingOptions;
  readonly #running = new Map<string, Promise<Item>>();
  /** Cancels running requests. */
  readonly #ends = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #closed = false;

  constructor(polled: Polled<Item>, options: PollingOptions) {
    this.#polled = polled;
    this.#options = options;
  }

  /** Looks for due items repeatedly. While lookups fail, as when the database is down, the pauses grow. */
  start(): void {
    const { first, longestPause } = this.#options;
    const shortest = Math.min(longestPause, Math.max(20, first / 5));
    const again = (pause: number): void => {
      if (this.#closed) return;
      this.#timer = setTimeout(() => {
        this.#looking = this.#look().then((hasLooked) =>
          again(hasLooked ? shortest : Math.min(longestPause, pause * growth)),
        );
      }, pause).unref();
    };
    again(shortest);
  }

  /** Returns the time of the next poll after `asks` polls. An integer, because PostgreSQL rejects fractions here. */
  nextPollAt(asks: number, now: number): number {
    return now + Math.round(Math.min(this.#options.most, this.#options.first * growth ** Math.min(asks, 30)));
  }

  /** Returns the item as its provider has it now; as it was known where somebody else is asking, or the provider takes longer than `patience`. */
  async refresh(item: Item, patience: number): Promise<Item> {
    const result = this.#running.get(this.#polled.keyOf(item)) ?? this.#claimAndPoll(item);
    const timer = Promise.withResolvers<Item>();
    const timeout = setTimeout(() => timer.resolve(item), patience);
    try {
      return await Promise.race([result, timer.promise]);
    } finally {
      clearTimeout(timeout);
    }
  }

  /** Runs a request and calls `end` when it takes too long, when this closes, and when it has finished. */
  async within<Answer>(end: () => void, question: () => Promise<Answer>): Promise<Answer> {
    const timer = setTimeout(end, this.#options.patience);
    this.#ends.add(end);
    try {
      return await question();
    } finally {
      clearTimeout(timer);
      this.#ends.delete(end);
      end();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#looking;
    for (const end of this.#ends) end();
    await Promise.allSettled(this.#running.values());
  }

  /** Resolves to whether it could be looked. */
  async #look(): Promise<boolean> {
    try {
      const free = this.#options.parallel - this.#running.size;
      if (free <= 0 || this.#closed) return true;
      for (const item of await this.#polled.claim(free)) void this.#run(item);
      return true;
    } catch (error) {
      this.#report(error);
      return false;
    }
  }

  async #claimAndPoll(item: Item): Promise<Item> {
    const claimed = await this.#polled.claimOne(item);
    if (claimed === undefined) return (await this.#polled.find(item)) ?? item;
    return this.#run(claimed);
  }

  #run(item: Item): Promise<Item> {
    const key = this.#polled.keyOf(item);
    const run = this.#polled
      .poll(item)
      .catch((error: unknown) => {
        this.#report(error, item);
        return item;
      })
      .finally(() => void this.#running.delete(key));
    this.#running.set(key, run);
    return run;
  }

  /** Reports a failure. A report that fails itself must end neither the looks nor the process. */
  #report(error: unknown, item?: Item): void {
    if (this.#closed) return;
    try {
      this.#polled.failed(error, item);
    } catch {
      // There is nobody left to report the failure to.
    }
  }
}
