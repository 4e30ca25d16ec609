import { startBookkeeper } from '../../core/money/ledger/bookkeeper.ts';
import type {
  Bookkeeper,
  BudgetState,
  Ledger,
  Reservation,
  Settlement,
} from '../../core/money/ledger/index.ts';
import { BudgetExhausted } from '../../core/money/ledger/periods.ts';
import type { Budget, HeldBudget } from '../../core/sdk/budget.ts';
import { MemoryDatabase } from './database.ts';
import { Chance, ProcessClock, startOfTime, Timeline } from './time.ts';

/*
 * Workers of several gateways with their real bookkeepers, before one database that is slow, loses requests and answers, and is cut off from
 * some of them; processes that stand still, are killed and start again; clocks that differ. All of it follows from one number, the seed.
 */

/** Milliseconds after which a worker gives a request to the database up, as the real ledgers do. */
const patience = 1_000;

/** Time in ms before a refusal in which there must have been no room for the call: what others give back takes as long to arrive. */
const giveBackTime = 2_500;

/** Time in ms after its end for which a call may hold its reservation in the database: settlements are gathered, and take their way. */
const settleTime = 300;

/** Failures in a world. */
export interface Faults {
  readonly slow: boolean;
  readonly losses: boolean;
  readonly cuts: boolean;
  readonly stops: boolean;
  readonly kills: boolean;
  readonly clocks: boolean;
}

/** A rule that a world has broken. */
export class BrokenRule extends Error {}

interface Worker {
  readonly number: number;
  readonly clock: ProcessClock;
  readonly bookkeeper: Bookkeeper;
  cutUntil: number;
}

interface RunningCall {
  readonly id: string;
  readonly key: Key;
  readonly most: number;
  readonly worker: Worker;
  readonly startedAt: number;
  /** True once its reservation ran out in the database, with its process stopped or cut off: others may have been given its room. */
  isLost: boolean;
  readonly rowId: string;
}

/** Whoever has budgets: a key, or an owner of several keys. */
interface Holder {
  readonly id: string;
  readonly amount: number;
  /** True for a holder who also has a budget in tokens, whose sums are not followed here. */
  readonly countsTokens: boolean;
  /** Charges that were handed to a bookkeeper, by the record's id. */
  readonly charges: Map<string, { readonly amount: number; readonly worker: Worker }>;
  /** Settlements that are not in the database yet. */
  readonly unsettled: Map<string, { readonly amount: number; readonly rowId: string; isLost: boolean }>;
  charged: number;
  /** Sum of the most that running calls may come to. */
  running: number;
  /** Sum of what calls that have just ended may still hold beyond their charges. */
  ending: number;
  /** Amount that waiting calls want to reserve. */
  waiting: number;
  /** Amount beyond the budget: calls whose reservations were lost, and costs beyond reservations. */
  late: number;
  /** Times and the largest sums of what was charged, running and waiting since then. */
  readonly exposures: { at: number; exposure: number }[];
}

interface Key {
  readonly id: string;
  /** Its own, and those of its owners. */
  readonly budgets: readonly HeldBudget[];
  /** The key itself, and its owners. */
  readonly holders: readonly [Holder, ...Holder[]];
  /** Number of the largest calls that fit into the smallest budget, without those that take all that is left. */
  readonly parts: number;
  /** Calls that were refused one after the other. */
  refusals: number;
}

/** Figures of one simulated world. */
export interface Outcome {
  readonly calls: number;
  readonly refused: number;
  /** Calls that were served without the database. */
  readonly fromMemory: number;
}

/** One world, from its seed. */
export class World {
  readonly #chance: Chance;
  readonly #time = new Timeline();
  readonly #database: MemoryDatabase;
  readonly #faults: Faults;
  readonly #isHealthy: boolean;
  /** Share of requests to the database, and of its answers, that are lost where any are. */
  readonly #lossRate: number;
  readonly #workers: Worker[] = [];
  readonly #keys: Key[] = [];
  /** All keys and their owners. */
  readonly #holders: Holder[] = [];
  readonly #calls = new Set<RunningCall>();
  readonly #lease: number;
  /** Time of the latest fault: refusals soon after it may be those of the fault. */
  #troubledUntil = 0;
  #ids = 0;
  #served = 0;
  #refused = 0;
  #reservations = 0;
  #isEnding = false;
  /** True when the database or the calls have changed since the rules were checked. */
  #isChanged = false;
  /** Error that a call has thrown; it ends the world. */
  #broken: unknown;

  constructor(seed: number) {
    const chance = (this.#chance = new Chance(seed));
    this.#database = new MemoryDatabase(() => startOfTime + this.#time.now);
    // Half of the worlds are healthy, so that fairness can be held in them.
    this.#isHealthy = chance.is(0.5);
    const may = (): boolean => !this.#isHealthy && chance.is(0.5);
    this.#lossRate = chance.of([0.02, 0.15]);
    this.#faults = {
      slow: chance.is(0.5),
      losses: may(),
      cuts: may(),
      stops: may(),
      kills: may(),
      clocks: may(),
    };
    this.#lease = chance.of([2_000, 5_000, 20_000]);
    const owners = chance.of([[], [], ['team'], ['team', 'organisation']]).map((id) => this.#newOwner(id));
    for (let number = chance.whole(1, 4); number > 0; number -= 1) this.#keys.push(this.#newKey(owners));
    for (let number = chance.whole(1, 4); number > 0; number -= 1) this.#startWorker();
  }

  /** Lives through it. Throws {@link BrokenRule}. */
  async run(): Promise<Outcome> {
    const end = this.#chance.of([3_000, 8_000, 25_000]);
    const check = (): void => this.#check();
    for (const key of this.#keys) this.#callAgain(key, end);
    if (Object.values({ ...this.#faults, slow: false }).some(Boolean)) this.#goWrong(end);
    await this.#time.runUntil(end, check);
    this.#isEnding = true;
    // Everything heals and ends: calls, settlements, leases.
    await this.#time.runUntil(end + 20_000 + 2 * this.#lease, check);
    this.#checkEnd();
    return { calls: this.#served, refused: this.#refused, fromMemory: this.#served - this.#reservations };
  }

  #newHolder(id: string, amount: number, countsTokens: boolean): Holder {
    const holder: Holder = {
      id,
      amount,
      countsTokens,
      charges: new Map(),
      unsettled: new Map(),
      charged: 0,
      running: 0,
      ending: 0,
      waiting: 0,
      late: 0,
      exposures: [],
    };
    this.#holders.push(holder);
    return holder;
  }

  #newOwner(id: string): Holder {
    return this.#newHolder(id, this.#chance.of([5_000, 50_000, 500_000, 10_000_000]), false);
  }

  /** Some keys belong to nobody. */
  #newKey(possibleOwners: readonly Holder[]): Key {
    const chance = this.#chance;
    const amount = chance.of([2_000, 20_000, 200_000, 5_000_000]);
    const own: Budget[] = [{ unit: 'micro-dollar', period: 'total', amount }];
    if (chance.is(0.5)) own.push({ unit: 'token', period: chance.of(['day', 'month']), amount });
    const owners = possibleOwners.length > 0 && chance.is(0.8) ? possibleOwners : [];
    const id = `key_${this.#keys.length}`;
    return {
      id,
      budgets: [
        ...own,
        ...owners.map((owner) => ({
          unit: 'micro-dollar' as const,
          period: 'total' as const,
          amount: owner.amount,
          owner: { id: owner.id, name: `the ${owner.id}` },
        })),
      ],
      holders: [this.#newHolder(id, amount, own.length > 1), ...owners],
      parts: chance.of([3, 20, 200, 2_000]),
      refusals: 0,
    };
  }

  #startWorker(): void {
    const chance = this.#chance;
    const { clocks } = this.#faults;
    const clock = new ProcessClock(
      this.#time,
      clocks ? 1 + (chance.next() - 0.5) * 0.02 : 1,
      clocks ? chance.whole(-2_000, 2_000) : 0,
    );
    const number = this.#workers.length;
    const worker: Worker = {
      number,
      clock,
      bookkeeper: startBookkeeper(
        this.#ledgerFor(clock, () => worker),
        (error) => {
          if (this.#isHealthy)
            this.#broken ??= new BrokenRule(
              `worker ${number} reported, and nothing was wrong: ${error.message}`,
            );
        },
        { clock },
      ),
      cutUntil: 0,
    };
    this.#workers.push(worker);
  }

  /** The way of a worker to the database. */
  #ledgerFor(clock: ProcessClock, worker: () => Worker): Ledger {
    const runOnDatabase = <T>(work: () => T): Promise<T> => this.#runOnDatabase(worker(), work);
    const database = this.#database;
    return {
      reserve: async (keyId, budgets, most, lease = 60_000, less = undefined, ahead = undefined) => {
        const amounts = {
          most,
          ...(less === undefined ? {} : { less }),
          ...(ahead === undefined ? {} : { ahead }),
        };
        const outcome = await runOnDatabase(() =>
          database.reserve(keyId, budgets, amounts, lease, clock.wall()),
        );
        if (outcome instanceof BudgetExhausted) throw outcome;
        this.#reservations += 1;
        return outcome;
      },
      settle: (settlements) => runOnDatabase(() => database.settle(settlements, clock.wall())),
      settleAfter: () => Promise.reject(new Error('Nothing is settled here together with something else.')),
      release: (ids) => runOnDatabase(() => database.release(ids)),
      giveBack: (returns) => runOnDatabase(() => database.giveBack(returns)),
      recalled: () => runOnDatabase(() => database.recalled()),
      renew: (reservations) => runOnDatabase(() => database.renew(reservations, clock.wall())),
      sweep: () => runOnDatabase(() => database.sweep()),
      states: (keyId, budgets) => runOnDatabase(() => database.states(keyId, budgets, clock.wall())),
    };
  }

  /** One request to the database: it may not arrive, or its answer may not. */
  #runOnDatabase<T>(worker: Worker, work: () => T): Promise<T> {
    const { clock } = worker;
    const chance = this.#chance;
    return new Promise((resolve, reject) => {
      const giveUp = clock.after(patience, () => reject(new Error('The database did not respond in time.')));
      const isLost = (): boolean => {
        if (worker.cutUntil > this.#time.now) return true;
        if (!this.#faults.losses || this.#isEnding || !chance.is(this.#lossRate)) return false;
        this.#trouble(0);
        return true;
      };
      if (isLost()) return;
      this.#time.after(this.#delay(), () => {
        let result: T;
        this.#isChanged = true;
        try {
          result = work();
        } catch (error) {
          reject(error as Error);
          return;
        }
        if (isLost()) return;
        this.#time.after(this.#delay(), () =>
          clock.run(() => {
            giveUp();
            resolve(result);
          }),
        );
      });
    });
  }

  #delay(): number {
    return this.#faults.slow && !this.#isEnding ? this.#chance.next() ** 3 * 60 : this.#chance.next() * 2;
  }

  /** The next call of a key: some come in bursts, some rarely. */
  #callAgain(key: Key, end: number): void {
    const chance = this.#chance;
    // Who is refused again and again comes less often.
    const isBurst = key.refusals < 5 && !chance.is(0.1);
    const pause = isBurst ? chance.next() * 60 : chance.whole(500, 3_000);
    if (this.#time.now + pause > end) return;
    this.#time.after(pause, () => {
      const alive = this.#workers.filter(({ clock }) => !clock.isGone && !clock.isStopped);
      if (alive.length > 0)
        void this.#call(key, chance.of(alive)).catch((error: unknown) => (this.#broken ??= error));
      this.#callAgain(key, end);
    });
  }

  async #call(key: Key, worker: Worker): Promise<void> {
    const chance = this.#chance;
    // Some calls take all that nobody uses: what is reserved ahead elsewhere has to be given back for them.
    const left = Math.min(
      ...key.holders.map(
        (holder) => holder.amount - this.#largestExposure(holder, this.#time.now - giveBackTime),
      ),
    );
    const smallest = Math.min(...key.holders.map(({ amount }) => amount));
    const most =
      left > 0 && chance.is(0.03) ? left : chance.whole(1, Math.max(1, Math.floor(smallest / key.parts)));
    const amounts = { microDollars: most, tokens: chance.whole(1, most) };
    const startedAt = this.#time.now;
    for (const holder of key.holders) holder.waiting += most;
    this.#isChanged = true;
    let reservation: Reservation;
    try {
      reservation = await worker.bookkeeper.reserve(
        key.id,
        key.budgets,
        amounts,
        this.#lease,
        undefined,
        chance.is(0.95),
      );
    } catch (error) {
      for (const holder of key.holders) holder.waiting -= most;
      if (error instanceof BudgetExhausted) this.#refuse(key, most, startedAt);
      return;
    }
    for (const holder of key.holders) holder.waiting -= most;
    key.refusals = 0;
    // A process that was killed while it asked serves nobody.
    if (worker.clock.isGone) return;
    this.#served += 1;
    const [rowId = ''] = reservation.id.split('/');
    const call: RunningCall = {
      id: `req_${(this.#ids += 1)}`,
      key,
      most,
      worker,
      startedAt: this.#time.now,
      isLost: false,
      rowId,
    };
    this.#checkServed(call);
    this.#calls.add(call);
    for (const holder of key.holders) holder.running += most;
    const unwatch = worker.bookkeeper.watch(reservation);
    const length = chance.is(0.02) ? chance.whole(3_000, 15_000) : chance.whole(1, 800);
    worker.clock.after(length, () => {
      unwatch();
      this.#endCall(call, reservation, amounts.tokens);
    });
  }

  #endCall(call: RunningCall, reservation: Reservation, tokens: number): void {
    const chance = this.#chance;
    const { key, worker, most } = call;
    this.#forget(call);
    const linger = (amount: number): void => {
      for (const holder of key.holders) holder.ending += amount;
      this.#time.after(settleTime, () => {
        for (const holder of key.holders) holder.ending -= amount;
      });
    };
    if (chance.is(0.1)) {
      linger(most);
      worker.bookkeeper.release(reservation.id);
      return;
    }
    // A call whose end nobody reports holds its reservation until the lease is over.
    if (!this.#isHealthy && chance.is(0.01)) {
      this.#trouble(this.#lease);
      return;
    }
    // Providers that ignore limits make calls cost more than was reserved for them.
    const share = chance.is(0.02) ? 3 : chance.of([0, 0.01, 0.3, 1]);
    const amount = Math.floor(share * most);
    linger(Math.max(0, most - amount));
    const owners = key.holders.slice(1).map(({ id }) => id);
    const settlement: Settlement = {
      keyId: key.id,
      ...(owners.length === 0 ? {} : { owners }),
      reservation: reservation.id,
      charged: { microDollars: amount, tokens: Math.floor(share * tokens) },
      record: {
        id: call.id,
        at: startOfTime + this.#time.now,
        keyId: key.id,
        ip: '192.0.2.7',
        operation: 'chat',
        format: 'plain',
        model: 'm',
        stream: false,
        status: 200,
        ended: 'complete',
        input: 1,
        output: 1,
        cacheRead: 0,
        cacheWrite: 0,
        reasoning: 0,
        microDollars: amount,
        ms: 1,
      },
    };
    for (const holder of key.holders) {
      holder.late += Math.max(0, amount - most);
      holder.charges.set(call.id, { amount, worker });
      holder.unsettled.set(call.id, { amount, rowId: call.rowId, isLost: call.isLost });
      holder.charged += amount;
    }
    worker.bookkeeper.enqueue(settlement);
  }

  #forget(call: RunningCall): void {
    this.#calls.delete(call);
    for (const holder of call.key.holders) holder.running -= call.most;
  }

  /** Faults come now and then. */
  #goWrong(end: number): void {
    const chance = this.#chance;
    const { cuts, stops, kills, clocks } = this.#faults;
    const pause = chance.whole(300, 6_000);
    if (this.#time.now + pause > end) return;
    this.#time.after(pause, () => {
      const worker = chance.of(this.#workers);
      const length = chance.of([100, 1_500, 6_000, 15_000]);
      const kinds = [cuts && 'cut', stops && 'stop', kills && 'kill', clocks && 'clock'].filter(Boolean);
      switch (kinds.length === 0 ? '' : chance.of(kinds)) {
        case 'cut':
          worker.cutUntil = this.#time.now + length;
          this.#trouble(length);
          break;
        case 'stop':
          worker.clock.stop(length, chance.is(0.5));
          this.#trouble(length);
          break;
        case 'kill':
          this.#kill(worker);
          break;
        case 'clock':
          worker.clock.skew += chance.whole(-1_500, 1_500);
          this.#trouble(0);
          break;
        default:
      }
      this.#goWrong(end);
    });
  }

  #kill(worker: Worker): void {
    if (worker.clock.isGone) return;
    worker.clock.end();
    for (const call of this.#calls) if (call.worker === worker) this.#forget(call);
    // What it had not told the database is charged to nobody.
    this.#time.after(2 * patience, () => {
      for (const holder of this.#holders)
        for (const [id, charge] of holder.charges)
          if (charge.worker === worker && !this.#database.records.has(id)) holder.charged -= charge.amount;
    });
    this.#trouble(0);
    this.#startWorker();
  }

  /** Reservations that nobody gives back hold room until their lease is over, and a little longer. */
  #trouble(length: number): void {
    this.#troubledUntil = Math.max(this.#troubledUntil, this.#time.now + length + this.#lease + 5_000);
  }

  /** Notes what was charged, runs and waits, where it has changed. */
  #noteExposure(holder: Holder): void {
    const { exposures } = holder;
    const exposure = this.#exposure(holder) + holder.late + holder.ending + holder.waiting;
    if (exposures.at(-1)?.exposure === exposure) return;
    exposures.push({ at: this.#time.now, exposure });
    while ((exposures[1]?.at ?? Infinity) < this.#time.now - 10_000) exposures.shift();
  }

  #exposure({ charged, running, late }: Holder): number {
    return charged + running - late;
  }

  /** The most that was charged, running or waiting at any time since then, without what the call itself has waited for. */
  #largestExposure(
    { exposures }: Holder,
    from: number,
    own: { readonly most: number; readonly since: number } = { most: 0, since: Infinity },
  ): number {
    let largest = 0;
    for (let at = exposures.length - 1; at >= 0; at -= 1) {
      const one = exposures[at];
      if (one === undefined) break;
      largest = Math.max(largest, one.exposure - (one.at >= own.since ? own.most : 0));
      if (one.at < from) break;
    }
    return largest;
  }

  /** No call is served that has no room. */
  #checkServed({ key, most, worker, rowId }: RunningCall): void {
    const row = this.#database.ofKey(rowId);
    if (row === undefined || row.expires <= startOfTime + this.#time.now)
      throw new BrokenRule(
        `worker ${worker.number} served a call of ${key.id} from a reservation that had run out`,
      );
    for (const holder of key.holders) {
      const exposure = this.#exposure(holder) + most;
      if (exposure > holder.amount)
        throw new BrokenRule(`calls of ${holder.id} may come to ${exposure} of ${holder.amount}`);
    }
  }

  #refuse(key: Key, most: number, since: number): void {
    this.#refused += 1;
    key.refusals += 1;
    if (this.#time.now < this.#troubledUntil) return;
    const from = Math.min(since, this.#time.now - giveBackTime);
    const hadRoom = key.holders.every((holder) => {
      const largest = Math.max(
        this.#largestExposure(holder, from, { most, since }),
        this.#exposure(holder) + holder.ending + holder.waiting,
      );
      return !holder.countsTokens && largest + most <= holder.amount;
    });
    if (hadRoom)
      throw new BrokenRule(
        `a call of ${key.id} for ${most} was refused, though all of ${key.holders.map(({ id }) => id).join(', ')} had room for it`,
      );
  }

  /** Checks the invariants that hold at any time. */
  #check(): void {
    if (this.#broken !== undefined) throw this.#broken;
    if (!this.#isChanged) return;
    this.#isChanged = false;
    const now = startOfTime + this.#time.now;
    const isLost = (rowId: string): boolean => (this.#database.ofKey(rowId)?.expires ?? 0) <= now;
    const needed = new Map<string, { amount: number; readonly holders: readonly Holder[] }>();
    for (const call of this.#calls) {
      // A reservation that was made anew has to hold all of its calls too, of the key and of its owners.
      if (!isLost(call.rowId)) {
        const amount = (needed.get(call.rowId)?.amount ?? 0) + call.most;
        needed.set(call.rowId, { amount, holders: call.key.holders });
        continue;
      }
      if (call.isLost) continue;
      if (this.#isHealthy)
        throw new BrokenRule(
          `the reservation of ${call.id} ran out while its call went on, and nothing was wrong`,
        );
      call.isLost = true;
      for (const holder of call.key.holders) holder.late += call.most;
    }
    for (const [id, { amount, holders }] of needed)
      for (const holder of holders) {
        const held = this.#database.of(id).find((row) => row.holder === holder.id)?.microDollars ?? 0;
        if (held < amount)
          throw new BrokenRule(`${id} holds ${held} of ${holder.id} for calls that may come to ${amount}`);
      }
    for (const holder of this.#holders) {
      for (const [id, charge] of holder.unsettled) {
        if (this.#database.records.has(id)) holder.unsettled.delete(id);
        else if (!charge.isLost && isLost(charge.rowId)) {
          charge.isLost = true;
          holder.late += charge.amount;
        }
      }
      const { spent, reserved, remade } = this.#database.totals(holder.id);
      const held = spent + reserved - remade;
      if (held > holder.amount + holder.late)
        throw new BrokenRule(`${held} of ${holder.amount} are spent and reserved for ${holder.id}`);
      if (spent > holder.charged)
        throw new BrokenRule(
          `${spent} were charged for ${holder.id}, and its calls came to ${holder.charged}`,
        );
      this.#noteExposure(holder);
    }
  }

  #standingOf({ id, amount }: Holder, now: number): BudgetState {
    const [state] = this.#database.states(id, [{ unit: 'micro-dollar', period: 'total', amount }], now);
    if (state === undefined) throw new Error(`${id} has no budget.`);
    return state;
  }

  /** Checks the invariants at the end of the world. */
  #checkEnd(): void {
    const now = startOfTime + this.#time.now;
    for (const holder of this.#holders) {
      const { spent, reserved, ahead } = this.#standingOf(holder, now);
      if (reserved !== 0 || ahead !== 0)
        throw new BrokenRule(
          `${reserved} and ${ahead} ahead are reserved for ${holder.id}, and nothing runs any more`,
        );
      let expected = 0;
      for (const [id, { amount, worker }] of holder.charges) {
        if (this.#database.records.has(id)) expected += amount;
        else if (!worker.clock.isGone)
          throw new BrokenRule(`the call ${id} of ${holder.id} was never charged`);
      }
      if (spent !== expected)
        throw new BrokenRule(`${spent} were charged for ${holder.id} in place of ${expected}`);
    }
    const left = this.#database.all().filter(({ expires }) => expires > now);
    if (left.length > 0) throw new BrokenRule(`${left.length} reservations are left`);
  }
}
