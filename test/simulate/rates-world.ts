import { RatesDesk } from '../../core/money/rates/desk.ts';
import { PrimaryRates } from '../../core/money/rates/primary.ts';
import type {
  RateGrant,
  RateRule,
  RatesAnswer,
  RatesLine,
  RatesQuestion,
  RatesRecall,
  SlotRule,
} from '../../core/money/rates/index.ts';
import { BrokenRule, type Outcome } from './world.ts';
import { Chance, ProcessClock, Timeline } from './time.ts';

/*
 * Workers of one gateway with their real counters, before the real process that counts for all of them. Messages take time and stay in order;
 * processes stand still, and workers are killed. All of it follows from the seed.
 */

/** A twentieth of a real one, so that several pass. */
const minute = 3_000;
const slice = minute / 60;

/** Time in ms for which what a call has given back may not have arrived. */
const settleTime = 150;

interface Worker {
  readonly id: number;
  readonly clock: ProcessClock;
  readonly rates: PrimaryRates;
  asked: number;
  /** When the latest message arrives in each direction: none overtakes another. */
  readonly arrivals: { out: number; in: number };
}

/** What a call was counted. */
interface Counted {
  /** When it asked, and when it was let in. */
  readonly from: number;
  readonly until: number;
  amount: number;
  /** Before it was corrected, which others may not know yet. */
  before: number;
  correctedAt: number;
}

interface Key {
  readonly requests: { readonly subject: string; readonly limit: number; counted: Counted[] };
  readonly tokens: { readonly subject: string; readonly limit: number; counted: Counted[] };
  readonly calls: { readonly subject: string; readonly limit: number };
  /** Largest cost of a call in tokens. */
  readonly most: number;
  /** Calls that run, by worker. */
  readonly running: Map<number, number>;
  /** Calls that have just ended. */
  ending: number;
  waiting: number;
  waitingTokens: number;
  /** The largest sums of running, ending and waiting calls. */
  readonly peaks: { readonly at: number; readonly calls: number }[];
}

/** One world, from its seed. */
export class RatesWorld {
  readonly #chance: Chance;
  readonly #time = new Timeline();
  readonly #isHealthy: boolean;
  readonly #isSlow: boolean;
  readonly #primary: ProcessClock;
  readonly #desk: RatesDesk;
  readonly #workers = new Map<number, Worker>();
  readonly #keys: Key[] = [];
  #ids = 0;
  #troubledUntil = 0;
  #served = 0;
  #refused = 0;
  #fromMemory = 0;
  #broken: unknown;

  constructor(seed: number) {
    const chance = (this.#chance = new Chance(seed ^ 0x5bd1e995));
    this.#isHealthy = chance.is(0.6);
    this.#isSlow = chance.is(0.3);
    this.#primary = new ProcessClock(this.#time, 1, 0);
    this.#desk = new RatesDesk((id, news) => this.#tell(id, news), { minute }, this.#primary);
    for (let number = chance.whole(1, 3); number > 0; number -= 1) this.#keys.push(this.#newKey());
    for (let number = chance.whole(1, 4); number > 0; number -= 1) this.#startWorker();
  }

  /** Lives through it. Throws {@link BrokenRule}. */
  async run(): Promise<Outcome> {
    const end = this.#chance.of([1_500, 4_000, 15_000]);
    const check = (): void => {
      if (this.#broken !== undefined) throw this.#broken;
    };
    for (const key of this.#keys) this.#callAgain(key, end);
    if (!this.#isHealthy) this.#goWrong(end);
    await this.#time.runUntil(end + 6_000 + minute + 2 * slice, check);
    await this.#checkEnd(check);
    return { calls: this.#served, refused: this.#refused, fromMemory: this.#fromMemory };
  }

  #newKey(): Key {
    const chance = this.#chance;
    const number = this.#keys.length;
    const most = chance.of([10, 1_000]);
    return {
      requests: {
        subject: `key:${number}:requests`,
        limit: chance.of([5, 100, 1_000, 100_000]),
        counted: [],
      },
      tokens: { subject: `key:${number}:tokens`, limit: most * chance.of([5, 100, 10_000]), counted: [] },
      calls: { subject: `key:${number}:calls`, limit: chance.of([1, 3, 30, 1_000]) },
      most,
      running: new Map(),
      ending: 0,
      waiting: 0,
      waitingTokens: 0,
      peaks: [],
    };
  }

  #startWorker(): void {
    const clock = new ProcessClock(this.#time, 1, 0);
    const id = (this.#ids += 1);
    const arrivals = { out: 0, in: 0 };
    const line: RatesLine = {
      send: (question) => {
        this.#send(worker, question);
        return true;
      },
      listen: (listener) => void this.#listeners.set(id, listener),
    };
    const rates = new PrimaryRates(line, 'refuse', () => {}, { minute }, clock);
    const worker: Worker = { id, clock, rates, arrivals, asked: 0 };
    this.#workers.set(id, worker);
  }

  readonly #listeners = new Map<number, (news: RatesAnswer | RatesRecall) => void>();

  #send(worker: Worker, question: RatesQuestion): void {
    if (question.kind === 'take') worker.asked += 1;
    const at = (worker.arrivals.out = Math.max(worker.arrivals.out, this.#time.now + this.#delay()));
    this.#time.after(at - this.#time.now, () =>
      this.#primary.run(() => {
        if (!worker.clock.isGone) this.#desk.ask(worker.id, question);
      }),
    );
  }

  #tell(id: number, news: RatesAnswer | RatesRecall): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    const at = (worker.arrivals.in = Math.max(worker.arrivals.in, this.#time.now + this.#delay()));
    this.#time.after(at - this.#time.now, () => worker.clock.run(() => this.#listeners.get(id)?.(news)));
  }

  #delay(): number {
    return this.#chance.next() * (this.#isSlow ? 8 : 0.5);
  }

  #callAgain(key: Key, end: number): void {
    const chance = this.#chance;
    const pause = chance.is(0.02) ? chance.whole(300, 2_500) : chance.next() * 20;
    if (this.#time.now + pause > end) return;
    this.#time.after(pause, () => {
      const alive = [...this.#workers.values()].filter(({ clock }) => !clock.isStopped);
      if (alive.length > 0)
        void this.#call(key, chance.of(alive)).catch((error: unknown) => (this.#broken ??= error));
      this.#callAgain(key, end);
    });
  }

  async #call(key: Key, worker: Worker): Promise<void> {
    const chance = this.#chance;
    const cost = chance.whole(1, key.most);
    const rules: readonly RateRule[] = [
      { subject: key.requests.subject, limit: key.requests.limit, cost: 1 },
      { subject: key.tokens.subject, limit: key.tokens.limit, cost },
    ];
    const slots: readonly SlotRule[] = [{ subject: key.calls.subject, limit: key.calls.limit }];
    const from = this.#time.now;
    key.waiting += 1;
    key.waitingTokens += cost;
    this.#note(key);
    const { asked } = worker;
    const verdict = await worker.rates.take(rules, slots);
    key.waiting -= 1;
    key.waitingTokens -= cost;
    if (worker.clock.isGone) return;
    const { grant, exceeded } = verdict;
    if (grant === undefined) {
      this.#refused += 1;
      if (verdict.degraded !== true) this.#checkRefused(key, exceeded, cost, from);
      return;
    }
    this.#served += 1;
    if (asked === worker.asked) this.#fromMemory += 1;
    this.#checkServed(key, cost);
    const now = this.#time.now;
    const requests: Counted = { from, until: now, amount: 1, before: 1, correctedAt: 0 };
    const tokens: Counted = { from, until: now, amount: cost, before: cost, correctedAt: 0 };
    key.requests.counted.push(requests);
    key.tokens.counted.push(tokens);
    key.running.set(worker.id, (key.running.get(worker.id) ?? 0) + 1);
    this.#note(key);
    const length = chance.is(0.05) ? chance.whole(500, 4_000) : chance.whole(1, 200);
    worker.clock.after(length, () => this.#endCall(key, worker, grant, tokens));
  }

  #endCall(key: Key, worker: Worker, grant: RateGrant, tokens: Counted): void {
    const chance = this.#chance;
    key.running.set(worker.id, (key.running.get(worker.id) ?? 0) - 1);
    key.ending += 1;
    this.#time.after(settleTime, () => (key.ending -= 1));
    grant.release();
    const used = Math.ceil(tokens.amount * chance.of([0, 0.1, 1, 1, 1.2]));
    const difference = used - tokens.amount;
    if (difference === 0) return;
    const now = this.#time.now;
    if (difference < 0) {
      tokens.correctedAt = now;
      tokens.amount = used;
    } else
      key.tokens.counted.push({
        from: now,
        until: now,
        amount: difference,
        before: 0,
        correctedAt: Infinity,
      });
    grant.correct(key.tokens.subject, difference);
  }

  #note(key: Key): void {
    const now = this.#time.now;
    key.peaks.push({ at: now, calls: runningOf(key) + key.ending + key.waiting });
    while ((key.peaks[1]?.at ?? Infinity) < now - 2_000) key.peaks.shift();
  }

  /** No more is let in than the limits say, whatever the sixty slices that are looked at. */
  #checkServed(key: Key, cost: number): void {
    const now = this.#time.now;
    for (const { counted, limit, subject } of [key.requests, key.tokens]) {
      while ((counted[0]?.until ?? Infinity) < now - 2 * minute) counted.shift();
      let sum = subject === key.requests.subject ? 1 : Math.min(cost, limit);
      for (const one of counted) {
        // What was used beyond an estimate is told a little later.
        const isTold = one.correctedAt !== Infinity || (this.#isHealthy && one.until < now - settleTime);
        if (one.from > now - minute && isTold) sum += one.amount;
      }
      if (sum > limit) throw new BrokenRule(`${sum} of ${limit} were counted within a minute for ${subject}`);
    }
    const running = runningOf(key) + 1;
    if (running > key.calls.limit)
      throw new BrokenRule(`${running} of ${key.calls.limit} run at the same time for ${key.calls.subject}`);
  }

  /** Nobody is refused while there is room that no call uses. */
  #checkRefused(key: Key, exceeded: string | undefined, cost: number, from: number): void {
    const now = this.#time.now;
    if (now < this.#troubledUntil) return;
    if (exceeded === key.calls.subject) {
      const peak = Math.max(
        ...key.peaks.filter(({ at }) => at >= from - settleTime).map(({ calls }) => calls),
      );
      if (peak - 1 < key.calls.limit)
        throw new BrokenRule(
          `a call was refused for ${exceeded}, though no more than ${peak - 1} of ${key.calls.limit} ran or waited`,
        );
      return;
    }
    const minuteOf = exceeded === key.requests.subject ? key.requests : key.tokens;
    const isRequests = minuteOf === key.requests;
    const own = isRequests ? 1 : Math.min(cost, minuteOf.limit);
    let sum = own + (isRequests ? key.waiting : key.waitingTokens);
    for (const { until, amount, before, correctedAt } of minuteOf.counted)
      if (until > from - minute - 2 * slice)
        sum += correctedAt > from - settleTime ? Math.max(before, amount) : amount;
    if (sum <= minuteOf.limit)
      throw new BrokenRule(
        `a call was refused for ${exceeded}, though ${sum} of ${minuteOf.limit} suffice with it`,
      );
  }

  #goWrong(end: number): void {
    const chance = this.#chance;
    const pause = chance.whole(200, 3_000);
    if (this.#time.now + pause > end) return;
    this.#time.after(pause, () => {
      const worker = chance.of([...this.#workers.values()]);
      const length = chance.of([20, 150, 700, 2_500]);
      if (chance.is(0.3)) this.#kill(worker);
      else (chance.is(0.3) ? this.#primary : worker.clock).stop(length);
      // What was counted ahead for a worker that was killed counts for a minute.
      this.#troubledUntil = Math.max(this.#troubledUntil, this.#time.now + length + minute + 1_000);
      this.#goWrong(end);
    });
  }

  #kill(worker: Worker): void {
    worker.clock.end();
    this.#workers.delete(worker.id);
    // Its calls end with it.
    for (const { running } of this.#keys) running.delete(worker.id);
    this.#time.after(this.#delay(), () => this.#primary.run(() => this.#desk.forget(worker.id)));
    this.#startWorker();
  }

  /** All is free again in the end. */
  async #checkEnd(check: () => void): Promise<void> {
    const [worker] = this.#workers.values();
    if (worker === undefined) return;
    const slots = this.#keys.flatMap(({ calls }) =>
      calls.limit > 100 ? [] : Array.from({ length: calls.limit }, () => calls),
    );
    const rules = this.#keys.flatMap(({ requests, tokens }) =>
      [requests, tokens].map(({ subject, limit }) => ({ subject, limit, cost: limit })),
    );
    const ask = (): Promise<void> => this.#askAll(worker, slots, rules);
    void ask().catch((error: unknown) => (this.#broken ??= error));
    await this.#time.runUntil(this.#time.now + 5_000, check);
    check();
  }

  async #askAll(worker: Worker, slots: readonly SlotRule[], rules: readonly RateRule[]): Promise<void> {
    for (const { subject, limit } of slots) {
      // oxlint-disable-next-line no-await-in-loop -- each takes what the one before it has left
      const { allowed } = await worker.rates.take([], [{ subject, limit }]);
      if (!allowed) throw new BrokenRule(`a slot of ${subject} was never given back`);
    }
    for (const rule of rules) {
      // oxlint-disable-next-line no-await-in-loop -- as above
      const { allowed } = await worker.rates.take([rule]);
      if (!allowed) throw new BrokenRule(`something of ${rule.subject} is counted after its minute`);
    }
  }
}

function runningOf({ running }: Key): number {
  return [...running.values()].reduce((sum, calls) => sum + calls, 0);
}
