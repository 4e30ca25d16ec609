/** What providers work on and is asked about until it has come to its end: where it is kept, and how one is asked about. */
export interface Polled<Item> {
  keyOf(item: Item): string;
  /** Takes so many that are due, for this process alone while its lease lasts. */
  claim(most: number): Promise<readonly Item[]>;
  /** Takes this one, due or not; undefined where somebody else has it. */
  claimOne(item: Item): Promise<Item | undefined>;
  find(item: Item): Promise<Item | undefined>;
  /** Asks about one that was claimed, and keeps what it has come to. */
  ask(item: Item): Promise<Item>;
  /** None can be looked for now; or this one could not be kept. */
  failed(error: unknown, item?: Item): void;
}

/** When is asked. Times are in milliseconds. */
export interface PollingOptions {
  readonly first: number;
  readonly most: number;
  /** Questions of this process at the same time. */
  readonly parallel: number;
  /** For one answer. */
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
  /** Ends what is being asked. */
  readonly #ends = new Set<() => void>();
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #closed = false;

  constructor(polled: Polled<Item>, options: PollingOptions) {
    this.#polled = polled;
    this.#options = options;
  }

  /** Looks again and again for what is due. While looks fail, as with a database that is gone, the pauses grow. */
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

  /** When one that was just made, or asked about so often, is to be asked about. A whole number, because PostgreSQL refuses others. */
  nextAsk(asks: number, now: number): number {
    return now + Math.round(Math.min(this.#options.most, this.#options.first * growth ** Math.min(asks, 30)));
  }

  /** The item as its provider has it now; as it was known where somebody else is asking, or the provider takes longer than `patience`. */
  async refresh(item: Item, patience: number): Promise<Item> {
    const asked = this.#running.get(this.#polled.keyOf(item)) ?? this.#claimAndAsk(item);
    const timer = Promise.withResolvers<Item>();
    const timeout = setTimeout(() => timer.resolve(item), patience);
    try {
      return await Promise.race([asked, timer.promise]);
    } finally {
      clearTimeout(timeout);
    }
  }

  /** Asks a question that `end` ends: when it takes too long, when this closes, and when it has been answered. */
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

  async #claimAndAsk(item: Item): Promise<Item> {
    const claimed = await this.#polled.claimOne(item);
    if (claimed === undefined) return (await this.#polled.find(item)) ?? item;
    return this.#run(claimed);
  }

  #run(item: Item): Promise<Item> {
    const key = this.#polled.keyOf(item);
    const run = this.#polled
      .ask(item)
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
      // Nobody is left to report it to.
    }
  }
}
