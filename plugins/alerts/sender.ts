/** Delivers the messages of the outbox: one at a time to each destination, in order, with retries. */
import { limits, type AlertState, type Message } from './alert.ts';
import type { SharedAlertState } from './shared-state.ts';
import type { Deliveries } from './deliveries.ts';

/** Maximum pause between two attempts in milliseconds. */
const longestPause = 30 * 60_000;

/** Maximum number of attempts of a delivery. */
export interface SenderOptions {
  readonly attempts: number;
  /** Milliseconds before the second attempt. */
  readonly backoff: number;
}

/** Returns the milliseconds until the next try: twice as long each time, with a fifth more or less by chance. */
export function pauseAfter(tries: number, backoff: number, chance = Math.random()): number {
  return Math.round(Math.min(longestPause, backoff * 2 ** (tries - 1)) * (0.8 + 0.4 * chance));
}

/**
 * Sends while this process holds the lease. A try is counted before it is made, so that a message which is being sent takes no further alerts,
 * and one whose process is killed is tried again by the next, with the same id.
 */
export class Sender {
  readonly #state: SharedAlertState;
  readonly #deliveries: Deliveries;
  readonly #options: SenderOptions;
  readonly #failed: (error: unknown) => void;
  readonly #dropped: (message: Message, reason: string) => void;
  readonly #busy = new Map<string, Promise<void>>();
  #isClosed = false;

  constructor(
    state: SharedAlertState,
    deliveries: Deliveries,
    options: SenderOptions,
    events: { failed: (error: unknown) => void; dropped: (message: Message, reason: string) => void },
  ) {
    this.#state = state;
    this.#deliveries = deliveries;
    this.#options = options;
    this.#failed = events.failed;
    this.#dropped = events.dropped;
  }

  /** Starts the due deliveries without waiting for them. */
  kick({ outbox }: AlertState): void {
    const now = Date.now();
    for (const name of new Set(outbox.map(({ destination }) => destination))) {
      const head = outbox.find(({ destination }) => destination === name);
      if (head === undefined || head.nextAt > now || this.#busy.has(name) || this.#isClosed) continue;
      const run = this.#run(name)
        .catch(this.#failed)
        .finally(() => this.#busy.delete(name));
      this.#busy.set(name, run);
    }
  }

  /** Starts nothing any more, and waits for what is under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#busy.values());
  }

  async #run(destination: string): Promise<void> {
    while (!this.#isClosed && this.#state.isHeld) {
      // oxlint-disable no-await-in-loop -- one message after the other
      const message = await this.#beginAttempt(destination);
      if (message === undefined || !this.#state.isHeld) return;
      const error = await this.#deliveries.send(message);
      await this.#settle(message, error);
      if (error !== undefined) return;
      // oxlint-enable no-await-in-loop
    }
  }

  /** Counts an attempt to deliver the first message, if it is due. */
  async #beginAttempt(destination: string): Promise<Message | undefined> {
    let claimed: Message | undefined;
    const changed = await this.#state.change((current) => {
      const head = current.outbox.find((one) => one.destination === destination);
      claimed = undefined;
      if (head === undefined || head.nextAt > Date.now()) return undefined;
      const tries = head.tries + 1;
      const tried = { ...head, tries, nextAt: Date.now() + pauseAfter(tries, this.#options.backoff) };
      claimed = tried;
      return { ...current, outbox: current.outbox.map((one) => (one === head ? tried : one)) };
    });
    return changed === undefined ? undefined : claimed;
  }

  /** Removes a message that was delivered, or was tried often enough. */
  async #settle(message: Message, error: string | undefined): Promise<void> {
    const isOver = error === undefined || message.tries >= this.#options.attempts;
    await this.#state.change((current) => ({
      ...current,
      outbox: isOver ? current.outbox.filter(({ id }) => id !== message.id) : current.outbox,
      deliveries: {
        ...Object.fromEntries(Object.entries(current.deliveries).slice(-limits.perDestination)),
        [message.destination]: { at: Date.now(), ...(error === undefined ? {} : { error }) },
      },
    }));
    if (isOver && error !== undefined) this.#dropped(message, 'attempts');
  }
}
