/** Runs one SCIM change at a time on all gateways, because a group change writes to many users and two changes must not overwrite their teams. */
import { whileLocked } from 'sluice/internal';
import type { Stores } from '../core-types.ts';
import { ScimError } from './errors.ts';

const lock = {
  namespace: 'scim-lock',
  key: 'write',
  lifeMs: 60_000,
  patienceMs: 20_000,
  refusal: () => busy(),
};

/** Maximum number of changes that wait in this process. */
const mostWaiting = 100;

/** Runs changes sequentially. */
export class ScimLock {
  readonly #stores: Stores;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /**
   * Runs a change after all changes of this process that came before it, and while no other gateway holds the lock. Throws 503 when 100 changes
   * of this process wait already, or another gateway holds the lock for 20 seconds.
   */
  async run<Result>(job: () => Promise<Result>): Promise<Result> {
    if (this.#waiting >= mostWaiting) throw busy();
    this.#waiting += 1;
    const before = this.#last;
    const run = before.then(() => whileLocked(this.#stores, lock, job)).finally(() => (this.#waiting -= 1));
    this.#last = run.catch(() => undefined);
    return run;
  }
}

function busy(): ScimError {
  return new ScimError(503, 'Other changes of the directory are under way: try again shortly.');
}
