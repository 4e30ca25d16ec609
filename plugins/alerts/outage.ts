/** Notifies of a lost and restored database without using it. The first worker of each gateway does this. */
import { setTimeout as wait } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import type { Alert, AlertState, Condition, Item, Message, Mute } from './alert.ts';
import type { Deliveries } from './deliveries.ts';
import { notify } from './reconcile.ts';
import { pauseAfter, type SenderOptions } from './sender.ts';

/** Consecutive checks that must find the database down, because a single one may have hit a short lock. */
const looksToAlert = 2;

/** Options of outage notifications and their delivery. */
export interface OutageOptions extends SenderOptions {
  /** Milliseconds for which a notified outage is not notified again. */
  readonly throttle: number;
}

/** The outage of the database, as this process sees it. */
export class Outage {
  readonly #deliveries: Deliveries;
  readonly #options: OutageOptions;
  readonly #destinationsOf: (item: Item) => readonly string[];
  readonly #closing = Promise.withResolvers<void>();
  #isClosed = false;
  /** Last delivery to each destination, so that the end of an outage is sent after its start. */
  readonly #last = new Map<string, Promise<void>>();
  #looks = 0;
  /** The present outage, or the last one. */
  #alert: Alert | undefined;
  #mutes: readonly Mute[] = [];

  constructor(
    deliveries: Deliveries,
    options: OutageOptions,
    destinationsOf: (item: Item) => readonly string[],
  ) {
    this.#deliveries = deliveries;
    this.#options = options;
    this.#destinationsOf = destinationsOf;
  }

  /** Takes over the mutes of the shared state, because they cannot be read while the database is down. */
  follow({ mutes }: Pick<AlertState, 'mutes'>): void {
    this.#mutes = mutes;
  }

  /** Reports that the database is down. `isFirst`: this process sends the alert for its gateway. */
  down(condition: Condition, isFirst: boolean, now: number): void {
    this.#looks += 1;
    if (this.#looks < looksToAlert || !isFirst) return;
    const before = this.#alert;
    const count = (before?.count ?? 0) + 1;
    const begun = {
      ...before,
      ...condition,
      state: 'firing',
      since: now,
      resolvedAt: undefined,
      count,
      missed: 0,
    } as const;
    this.#alert = this.#notify(before?.state === 'firing' ? before : begun, now);
  }

  /** Ends an outage, because the database is up. Returns its alert for the list; undefined if there was none. */
  up(now: number): Alert | undefined {
    this.#looks = 0;
    if (this.#alert?.state !== 'firing') return undefined;
    this.#alert = this.#notify({ ...this.#alert, state: 'resolved', resolvedAt: now }, now);
    return this.#alert;
  }

  /** Tries no delivery again, and waits for those that are under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closing.resolve();
    await Promise.all(this.#last.values());
  }

  /** Notifies of an alert unless it is muted or was notified recently. */
  #notify(alert: Alert, now: number): Alert {
    const items: Item[] = [];
    const after = notify(alert, { now, throttle: this.#options.throttle, mutes: this.#mutes, items });
    for (const item of items) this.#send(item, now);
    return after;
  }

  #send(item: Item, now: number): void {
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

  /** Delivers a message. Never rejects. */
  async #deliver(message: Message): Promise<void> {
    const { attempts, backoff } = this.#options;
    for (let tries = 1; ; tries += 1) {
      // oxlint-disable no-await-in-loop -- one try after the other
      const error = await this.#deliveries.send({ ...message, tries });
      if (error === undefined || tries >= attempts) return;
      await Promise.race([
        wait(pauseAfter(tries, backoff), undefined, { ref: false }),
        this.#closing.promise,
      ]);
      if (this.#isClosed) return;
      // oxlint-enable no-await-in-loop
    }
  }
}
