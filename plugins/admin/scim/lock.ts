/** One change by SCIM at a time, on all gateways: a change of a group writes to many users, whose teams two changes must not overwrite. */
import { randomUUID } from 'node:crypto';
import { setTimeout as pass } from 'node:timers/promises';
import type { Stores } from 'sluice/internal';
import { ScimError } from './errors.ts';

const namespace = 'scim-lock';
const key = 'write';

/** Milliseconds after which a lock expires, because its gateway may have been killed; and those that a change waits for it. */
const lifetime = 60_000;
const patience = 20_000;
const pause = 20;

/** Most changes of this process that wait. */
const mostWaiting = 100;

/** Runs changes one after the other. */
export class ScimLock {
  readonly #stores: Stores;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /**
   * Runs a change after all changes of this process that came before it, and while no other gateway holds the lock. Throws 503 when 100 changes
   * of this process wait already, or another gateway holds the lock for 20 seconds. A change that takes more than 60 seconds loses the lock.
   */
  async run<Result>(job: () => Promise<Result>): Promise<Result> {
    if (this.#waiting >= mostWaiting) throw busy();
    this.#waiting += 1;
    const before = this.#last;
    const turn = before.then(() => this.#alone(job)).finally(() => (this.#waiting -= 1));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #alone<Result>(job: () => Promise<Result>): Promise<Result> {
    const owner = randomUUID();
    const until = performance.now() + patience;
    while (!(await this.#stores.add(namespace, key, owner, lifetime))) {
      if (performance.now() > until) throw busy();
      await pass(pause);
    }
    try {
      return await job();
    } finally {
      // Expires at once. A lock that another gateway has acquired meanwhile stays.
      await this.#stores.change<string>(namespace, key, (holder) =>
        holder === owner ? { value: holder, ttl: 1 } : undefined,
      );
    }
  }
}

function busy(): ScimError {
  return new ScimError(503, 'Other changes of the directory are under way: try again shortly.');
}
