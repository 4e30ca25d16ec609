/** Tells of a database that is lost, and back, without it: each gateway for itself, by its first worker. */
import { setTimeout as wait } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { itemOf, type Alert, type Condition, type Item, type Message } from './alert.ts';
import type { Deliveries } from './deliveries.ts';
import { pauseAfter, type SenderOptions } from './sender.ts';

/** Looks in a row that must find the database down: one may have met a short lock. */
const looksToTell = 2;

/** The outage of the database, as this process sees it. */
export class Outage {
  readonly #deliveries: Deliveries;
  readonly #options: SenderOptions;
  readonly #destinationsOf: (item: Item) => readonly string[];
  #isClosed = false;
  /** The last delivery to each destination: the end of an outage is told behind its beginning. */
  readonly #last = new Map<string, Promise<void>>();
  #looks = 0;
  #told: Alert | undefined;

  constructor(
    deliveries: Deliveries,
    options: SenderOptions,
    destinationsOf: (item: Item) => readonly string[],
  ) {
    this.#deliveries = deliveries;
    this.#options = options;
    this.#destinationsOf = destinationsOf;
  }

  /** The database is down. `isFirst`: this process tells it for its gateway. */
  down(condition: Condition, isFirst: boolean, now: number): void {
    this.#looks += 1;
    if (this.#looks < looksToTell || !isFirst || this.#told !== undefined) return;
    this.#told = {
      ...condition,
      state: 'firing',
      since: now,
      count: 1,
      missed: 0,
      notifiedAt: now,
      notified: 'firing',
    };
    this.#tell(this.#told, now);
  }

  /** The database is up. Returns the alert of the outage that has ended, for the list; undefined where none was told. */
  up(now: number): Alert | undefined {
    this.#looks = 0;
    const told = this.#told;
    if (told === undefined) return undefined;
    this.#told = undefined;
    const resolved: Alert = { ...told, state: 'resolved', resolvedAt: now, notified: 'resolved' };
    this.#tell(resolved, now);
    return resolved;
  }

  close(): void {
    this.#isClosed = true;
  }

  #tell(alert: Alert, now: number): void {
    const item = itemOf(alert, now);
    for (const destination of this.#destinationsOf(item)) {
      const message: Message = {
        id: `msg_${randomUUID().replaceAll('-', '')}`,
        destination,
        items: [item],
        more: 0,
        tries: 1,
        nextAt: now,
        createdAt: now,
      };
      const before = this.#last.get(destination) ?? Promise.resolve();
      this.#last.set(
        destination,
        before.then(() => this.#deliver(message)),
      );
    }
  }

  /** Never rejects. */
  async #deliver(message: Message): Promise<void> {
    for (let tries = 1; tries <= this.#options.attempts && !this.#isClosed; tries += 1) {
      // oxlint-disable no-await-in-loop -- one try after the other
      if ((await this.#deliveries.send({ ...message, tries })) === undefined) return;
      await wait(pauseAfter(tries, this.#options.backoff), undefined, { ref: false });
      // oxlint-enable no-await-in-loop
    }
  }
}
