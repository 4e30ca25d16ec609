/** Recalls of what was counted ahead: messages between processes by way of the shared store. */
import { passed, type Clock } from '../ledger/clock.ts';
import { holdersScript, recallScript } from './scripts.ts';
import { holdersOf, prefix, type RatesStore } from './store.ts';

/** Longest time in ms for which a call waits for what other processes give back. */
const recallTime = 100;

/** Time in ms between two looks whether they have. */
const lookEvery = 10;

/** Time in ms for which a message waits for a process that does not read it. */
const messageTime = 10_000;

/** Time in ms after which messages are no longer waited for when nothing was counted ahead. */
const idle = 5_000;

/** Pause in ms after messages could not be read. */
const pause = 500;

/** Dependencies of {@link Recalls}. */
export interface RecallsOptions {
  readonly store: RatesStore;
  /** Name of this process. */
  readonly process: string;
  readonly clock: Clock;
  /** Gives back what is free of these subjects, of all by default, and leaves their holders. */
  readonly giveBack: (subjects?: readonly string[]) => void;
  /** True while anything is held for calls that follow. */
  readonly holdsAnything: () => boolean;
}

/**
 * Asks other processes to give back what was counted ahead for them, and hears when they ask. Messages go by lists in the store: they are
 * not lost while nobody reads, need no other permission than the counters, and follow them to another server.
 */
export class Recalls {
  readonly #options: RecallsOptions;
  readonly #mailbox: string;
  /** By subjects: recalls that are under way. Calls that find no room meanwhile wait for the same one. */
  readonly #open = new Map<string, Promise<void>>();
  #wantedAt = 0;
  #isRunning = false;
  #isListening = false;
  #isClosed = false;

  constructor(options: RecallsOptions) {
    this.#options = options;
    this.#mailbox = mailboxOf(options.process);
  }

  /** Returns true when this process hears recalls, without which nothing may be counted ahead for it. It will hear them soon otherwise. */
  listen(): boolean {
    this.#wantedAt = this.#options.clock.now();
    if (!this.#isRunning && !this.#isClosed) {
      this.#isRunning = true;
      void this.#readMessages();
    }
    return this.#isListening;
  }

  /** Has these processes give back what is free of the subjects. Resolves when they have, and after a moment in any case. */
  recall(subjects: readonly string[], holders: readonly string[]): Promise<void> {
    const name = subjects.join('\n');
    const open = this.#open.get(name);
    if (open !== undefined) return open;
    const recall = this.#recall(subjects, holders)
      .catch(() => {})
      .finally(() => this.#open.delete(name));
    this.#open.set(name, recall);
    return recall;
  }

  close(): void {
    this.#isClosed = true;
    this.#isListening = false;
  }

  async #recall(subjects: readonly string[], holders: readonly string[]): Promise<void> {
    const { store, clock } = this.#options;
    const others = holders.filter((holder) => holder !== this.#options.process);
    if (others.length < holders.length) this.#options.giveBack(subjects);
    const keys = subjects.map(holdersOf);
    const deadline = clock.now() + recallTime;
    let left: readonly unknown[] = holders;
    if (others.length > 0)
      await store.run(recallScript, others.map(mailboxOf), [JSON.stringify(subjects), String(messageTime)]);
    for (;;) {
      const isLate = clock.now() >= deadline;
      // Who does not answer may be gone. What it holds is free when its lease is over; no further call waits for it.
      const values = [isLate ? '1' : '0', ...left.map(String)];
      // oxlint-disable no-await-in-loop -- one look after the other
      left = await store.run(holdersScript, keys, values);
      if (left.length === 0 || isLate) return;
      await passed(clock, lookEvery);
      // oxlint-enable no-await-in-loop
    }
  }

  async #readMessages(): Promise<void> {
    const { store, clock, giveBack, holdsAnything } = this.#options;
    const isWanted = (): boolean =>
      !this.#isClosed && (holdsAnything() || clock.now() - this.#wantedAt < idle);
    while (isWanted()) {
      // oxlint-disable no-await-in-loop -- one message after the other
      try {
        // The first message is its own: it shows that messages arrive.
        if (!this.#isListening) await store.run(recallScript, [this.#mailbox], ['[]', String(messageTime)]);
        const message = await store.receive(this.#mailbox);
        this.#isListening = !this.#isClosed;
        const subjects = message === undefined ? [] : subjectsIn(message);
        if (subjects.length > 0) giveBack(subjects);
      } catch {
        this.#isListening = false;
        giveBack();
        await passed(clock, pause);
      }
      // oxlint-enable no-await-in-loop
    }
    this.#isListening = false;
    this.#isRunning = false;
  }
}

function mailboxOf(process: string): string {
  return `${prefix}to:${process}`;
}

function subjectsIn(message: string): readonly string[] {
  const subjects: unknown = JSON.parse(message);
  return Array.isArray(subjects) ? subjects.filter((one) => typeof one === 'string') : [];
}
