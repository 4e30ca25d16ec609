import type { RateGrant, RateRule, Rates, RateVerdict, SlotRule } from '../../core/money/rates/index.ts';
import { PrimaryCounters, type Counters, type CountersOptions, type CountingWorker } from './counters.ts';
import { RedisCounters } from './redis-counters.ts';
import { BrokenRule, type Outcome } from './world.ts';
import { Chance, ProcessClock, Timeline } from './time.ts';

/*
 * Workers with their real counters, before the real process that counts for all workers of a gateway, or before a store that several gateways
 * share. All of it follows from the seed.
 */

/** A twentieth of a real one, so that several pass. */
const minute = 3_000;
const slice = minute / 60;
const lease = 3_000;

/** Time in ms for which what a call has given back may not have arrived. */
const settleTime = 150;

/** Time in ms after a failure in which workers find it, connect again and tell what calls hold. */
const recoveryTime = 2_000;

/** What counts in a world. */
const counterKinds: Readonly<Record<string, (options: CountersOptions) => Counters>> = {
  rates: (options) => new PrimaryCounters(options),
  redis: (options) => new RedisCounters(options),
};

interface Worker extends CountingWorker {
  readonly rates: Rates;
  failsUntil: number;
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
  /** What counts may not know of it. */
  isLost: boolean;
}

interface Minute {
  readonly subject: string;
  readonly limit: number;
  counted: Counted[];
  /** The sum of what waiting calls cost. */
  waiting: number;
}

/** Limits that hold together: those of a key, or of a team of keys. */
interface Level {
  readonly requests: Minute;
  readonly tokens: Minute;
  readonly calls: { readonly subject: string; readonly limit: number };
  readonly running: Set<RunningCall>;
  /** Calls that have just ended. */
  ending: number;
  waiting: number;
  /** The largest sums of running, ending and waiting calls. */
  readonly peaks: { readonly at: number; readonly calls: number }[];
}

interface Key {
  readonly levels: readonly Level[];
  /** Largest cost of a call in tokens. */
  readonly most: number;
}

interface RunningCall {
  readonly worker: Worker;
  readonly at: number;
  /** Until when what counts may not know of it. */
  lostUntil: number;
}

/** One call that was let in. */
interface Served {
  readonly levels: readonly Level[];
  readonly call: RunningCall;
  readonly grant: RateGrant;
  /** What it was counted in tokens, in each level. */
  readonly tokens: readonly Counted[];
}

/** One world, from its seed. */
export class RatesWorld {
  readonly #chance: Chance;
  readonly #time = new Timeline();
  readonly #isHealthy: boolean;
  readonly #isSlow: boolean;
  /** One worker after the other gets most calls, so that another one holds what it needs. */
  readonly #isFocused: boolean;
  /** Calls last so long that they reach limits of calls at the same time. */
  readonly #isCrowded: boolean;
  #favourite: Worker | undefined;
  #favouriteUntil = 0;
  readonly #counters: Counters;
  readonly #workers = new Map<number, Worker>();
  readonly #levels: Level[] = [];
  readonly #keys: Key[] = [];
  /** When calls were let in that what counts may not know. */
  readonly #lost: { readonly from: number; readonly until: number }[] = [];
  #ids = 0;
  #troubledUntil = 0;
  #served = 0;
  #refused = 0;
  #fromMemory = 0;
  #broken: unknown;

  constructor(seed: number, kind = 'rates') {
    const chance = (this.#chance = new Chance(seed ^ 0x5bd1e995));
    this.#isHealthy = chance.is(0.6);
    this.#isSlow = chance.is(0.3);
    this.#isFocused = chance.is(0.5);
    this.#isCrowded = chance.is(0.4);
    const counters = counterKinds[kind];
    if (counters === undefined) throw new Error(`Nothing counts as ${kind}.`);
    this.#counters = counters({
      time: this.#time,
      chance,
      times: { minute, lease },
      delay: () => chance.next() * (this.#isSlow ? 8 : 0.5),
    });
    const team = chance.is(0.3) ? this.#newLevel('team', 1_000) : undefined;
    for (let number = chance.whole(1, 3); number > 0; number -= 1) {
      const most = chance.of([10, 1_000]);
      const own = this.#newLevel(`key:${number}`, most);
      this.#keys.push({ levels: team === undefined ? [own] : [own, team], most });
    }
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
    await this.#time.runUntil(end + 8_000 + lease + minute + 2 * slice, check);
    await this.#checkEnd(check);
    return { calls: this.#served, refused: this.#refused, fromMemory: this.#fromMemory };
  }

  #newLevel(name: string, most: number): Level {
    const chance = this.#chance;
    const minuteOf = (what: string, limit: number): Minute => ({
      subject: `${name}:${what}`,
      limit,
      counted: [],
      waiting: 0,
    });
    const level: Level = {
      requests: minuteOf('requests', chance.of([5, 100, 250, 1_000, 100_000])),
      tokens: minuteOf('tokens', most * chance.of([5, 100, 10_000])),
      calls: { subject: `${name}:calls`, limit: chance.of([1, 3, 20, 30, 1_000]) },
      running: new Set(),
      ending: 0,
      waiting: 0,
      peaks: [],
    };
    this.#levels.push(level);
    return level;
  }

  #startWorker(): void {
    const { drift } = this.#counters;
    const clock = new ProcessClock(
      this.#time,
      1 + (drift === 0 ? 0 : (2 * this.#chance.next() - 1) * drift),
      drift === 0 ? 0 : this.#chance.whole(-60_000, 60_000),
    );
    const worker: CountingWorker = { id: (this.#ids += 1), clock, asked: 0 };
    const rates = this.#counters.open(worker);
    this.#workers.set(worker.id, Object.assign(worker, { rates, failsUntil: 0 }));
  }

  #callAgain(key: Key, end: number): void {
    const chance = this.#chance;
    // A burst comes at once.
    const isBurst = this.#isFocused && chance.is(0.3);
    const pause = isBurst ? 0 : chance.is(0.02) ? chance.whole(300, 2_500) : chance.next() * 20;
    if (this.#time.now + pause > end) return;
    this.#time.after(pause, () => {
      const worker = this.#choose();
      // Clients do not know that a process stands still: what came meanwhile is the first that it sees.
      worker.clock.run(
        () => void this.#call(key, worker).catch((error: unknown) => (this.#broken ??= error)),
      );
      if (chance.is(0.01)) this.#takeAllSlots(key);
      this.#callAgain(key, end);
    });
  }

  /** As many calls at once as there are slots that no call uses, through one worker: others have to give back what they hold. */
  #takeAllSlots(key: Key): void {
    const now = this.#time.now;
    const left = key.levels.map(({ calls, requests, peaks }) => {
      const peak = Math.max(0, ...peaks.filter(({ at }) => at >= now - settleTime).map((one) => one.calls));
      return Math.min(calls.limit - peak, this.#leftOf(requests));
    });
    const count = Math.min(...left);
    if (count > 40) return;
    const worker = this.#chance.of([...this.#workers.values()]);
    for (let number = 0; number < count; number += 1)
      worker.clock.run(
        () => void this.#call(key, worker, 1).catch((error: unknown) => (this.#broken ??= error)),
      );
  }

  /** What no call has used of a minute, however its slices are looked at, and none waits for. */
  #leftOf({ limit, waiting, counted }: Minute): number {
    const since = this.#time.now - minute - 2 * slice;
    return counted.reduce(
      (left, { until, amount, before, correctedAt }) =>
        until <= since
          ? left
          : left - (correctedAt > this.#time.now - settleTime ? Math.max(before, amount) : amount),
      limit - waiting,
    );
  }

  /** The worker of the next call. */
  #choose(): Worker {
    const chance = this.#chance;
    const all = [...this.#workers.values()];
    if (!this.#isFocused || chance.is(0.02)) return chance.of(all);
    const isOver = this.#time.now >= this.#favouriteUntil || this.#favourite?.clock.isGone === true;
    if (this.#favourite === undefined || isOver) {
      this.#favourite = chance.of(all);
      this.#favouriteUntil = this.#time.now + chance.whole(100, 900);
    }
    return this.#favourite;
  }

  async #call({ levels, most }: Key, worker: Worker, exact?: number): Promise<void> {
    const chance = this.#chance;
    // Some calls take all tokens that no call uses: what was counted ahead elsewhere has to be given back for them.
    const left = chance.is(0.003) ? Math.min(...levels.map(({ tokens }) => this.#leftOf(tokens))) : 0;
    const cost = exact ?? (left > 0 ? left : chance.whole(1, most));
    const rules = levels.flatMap(({ requests, tokens }): readonly RateRule[] => [
      { subject: requests.subject, limit: requests.limit, cost: 1 },
      { subject: tokens.subject, limit: tokens.limit, cost },
    ]);
    const slots = levels.map(({ calls }): SlotRule => ({ subject: calls.subject, limit: calls.limit }));
    const from = this.#time.now;
    for (const level of levels) this.#wait(level, cost, 1);
    const { asked } = worker;
    const verdict = await worker.rates.take(rules, slots);
    for (const level of levels) this.#wait(level, cost, -1);
    if (worker.clock.isGone) return;
    const { grant } = verdict;
    if (grant === undefined) {
      this.#refused += 1;
      this.#checkRefused(levels, verdict, cost, from);
      return;
    }
    this.#served += 1;
    if (asked === worker.asked) this.#fromMemory += 1;
    const now = this.#time.now;
    const lostUntil = Math.max(
      0,
      ...this.#lost
        .filter(({ from: since, until }) => since <= now && now <= until)
        .map(({ until }) => until),
    );
    const isLost = lostUntil > 0;
    const call: RunningCall = { worker, at: now, lostUntil: isLost ? lostUntil + recoveryTime : 0 };
    if (!isLost) for (const level of levels) this.#checkServed(level, cost);
    const counted = (amount: number): Counted => ({
      from,
      until: now,
      amount,
      before: amount,
      correctedAt: 0,
      isLost,
    });
    const tokens = levels.map((level) => {
      const inLevel = counted(Math.min(cost, level.tokens.limit));
      level.requests.counted.push(counted(1));
      level.tokens.counted.push(inLevel);
      level.running.add(call);
      this.#note(level);
      return inLevel;
    });
    const usual = this.#isCrowded ? 900 : 200;
    const length = chance.is(0.05) ? chance.whole(500, 4_000) : chance.whole(1, usual);
    worker.clock.after(length, () => this.#endCall({ levels, call, grant, tokens }));
  }

  #wait(level: Level, cost: number, calls: 1 | -1): void {
    level.waiting += calls;
    level.requests.waiting += calls;
    level.tokens.waiting += calls * cost;
    this.#note(level);
  }

  #endCall({ levels, call, grant, tokens }: Served): void {
    const share = this.#chance.of([0, 0.1, 1, 1, 1.2]);
    const now = this.#time.now;
    for (const level of levels) {
      level.running.delete(call);
      level.ending += 1;
      this.#time.after(settleTime, () => (level.ending -= 1));
    }
    grant.release();
    levels.forEach(({ tokens: minuteOf }, index) => {
      const counted = tokens[index];
      if (counted === undefined) return;
      const used = Math.ceil(counted.amount * share);
      const difference = used - counted.amount;
      if (difference === 0) return;
      if (difference < 0) {
        counted.correctedAt = now;
        counted.amount = used;
      } else
        minuteOf.counted.push({
          from: now,
          until: now,
          amount: difference,
          before: 0,
          correctedAt: Infinity,
          isLost: counted.isLost,
        });
      grant.correct(minuteOf.subject, difference);
    });
  }

  #note(level: Level): void {
    const now = this.#time.now;
    level.peaks.push({ at: now, calls: level.running.size + level.ending + level.waiting });
    while ((level.peaks[1]?.at ?? Infinity) < now - 2_000) level.peaks.shift();
  }

  /** No more is let in than the limits say, whatever the sixty slices that are looked at, besides what a server has lost. */
  #checkServed({ requests, tokens, calls, running }: Level, cost: number): void {
    const now = this.#time.now;
    for (const minuteOf of [requests, tokens]) {
      const { counted, limit, subject } = minuteOf;
      while ((counted[0]?.until ?? Infinity) < now - 2 * minute) counted.shift();
      let sum = minuteOf === requests ? 1 : Math.min(cost, limit);
      for (const one of counted) {
        // What was used beyond an estimate is told a little later.
        const isTold = one.correctedAt !== Infinity || (this.#isHealthy && one.until < now - settleTime);
        if (one.from > now - minute && isTold) sum += one.amount;
        if (one.isLost) sum -= Math.max(one.amount, one.before);
      }
      if (sum > limit) throw new BrokenRule(`${sum} of ${limit} were counted within a minute for ${subject}`);
    }
    const known = 1 + [...running].filter(({ lostUntil }) => lostUntil < now).length;
    if (known > calls.limit)
      throw new BrokenRule(`${known} of ${calls.limit} run at the same time for ${calls.subject}`);
  }

  /** Nobody is refused while there is room that no call uses. */
  #checkRefused(
    levels: readonly Level[],
    { exceeded, degraded }: RateVerdict,
    cost: number,
    from: number,
  ): void {
    const now = this.#time.now;
    if (degraded === true) {
      if (this.#isHealthy) throw new BrokenRule('A call could not be counted, and nothing was wrong');
      return;
    }
    if (now < this.#troubledUntil) return;
    for (const { requests, tokens, calls, peaks } of levels) {
      if (exceeded === calls.subject) {
        const peak = Math.max(...peaks.filter(({ at }) => at >= from - settleTime).map((one) => one.calls));
        if (peak - 1 < calls.limit)
          throw new BrokenRule(
            `a call was refused for ${exceeded}, though no more than ${peak - 1} of ${calls.limit} ran or waited`,
          );
      }
      for (const minuteOf of [requests, tokens]) {
        if (exceeded !== minuteOf.subject) continue;
        const own = minuteOf === requests ? 1 : Math.min(cost, minuteOf.limit);
        let sum = own + minuteOf.waiting;
        for (const { until, amount, before, correctedAt } of minuteOf.counted)
          if (until > from - minute - 2 * slice)
            sum += correctedAt > from - settleTime ? Math.max(before, amount) : amount;
        if (sum <= minuteOf.limit)
          throw new BrokenRule(
            `a call was refused for ${exceeded}, though ${sum} of ${minuteOf.limit} suffice with it`,
          );
      }
    }
  }

  #goWrong(end: number): void {
    const chance = this.#chance;
    const pause = chance.whole(200, 3_000);
    if (this.#time.now + pause > end) return;
    this.#time.after(pause, () => {
      const worker = chance.of([...this.#workers.values()]);
      if (chance.is(0.3)) {
        this.#kill(worker);
        // What was counted ahead for a worker that was killed counts for a minute, and its slots for a lease.
        this.#trouble(lease);
      } else {
        const { length, unleases, lost } = this.#counters.fail(worker, chance);
        this.#trouble(length);
        worker.failsUntil = Math.max(worker.failsUntil, this.#time.now + length);
        if (lost !== undefined) this.#lose(lost);
        if (unleases !== undefined) this.#loseCalls(unleases === 'worker' ? worker : undefined, length);
      }
      this.#goWrong(end);
    });
  }

  #trouble(length: number): void {
    this.#troubledUntil = Math.max(this.#troubledUntil, this.#time.now + length + minute + 1_000);
  }

  /** What counts may not know calls that are let in between these times. */
  #lose(lost: { readonly from: number; readonly until: number }): void {
    this.#lost.push(lost);
    for (const { requests, tokens, running } of this.#levels) {
      for (const { counted } of [requests, tokens])
        for (const one of counted) if (one.until >= lost.from) one.isLost = true;
      for (const call of running)
        if (call.at >= lost.from)
          call.lostUntil = Math.max(call.lostUntil, this.#recoveredAt(call, lost.until));
    }
  }

  /** When a worker has told what its call holds that was lost until then; one that fails itself does so later. */
  #recoveredAt({ worker }: RunningCall, until: number): number {
    return Math.max(until, worker.failsUntil) + recoveryTime;
  }

  /** Slots of calls of the worker, or of all, that run now or begin soon may be given to others. */
  #loseCalls(worker: Worker | undefined, length: number): void {
    const until = this.#time.now + length + recoveryTime;
    const look = (): void => {
      for (const { running } of this.#levels)
        for (const call of running)
          if (worker === undefined || call.worker === worker)
            call.lostUntil = Math.max(call.lostUntil, until);
    };
    look();
    this.#time.after(length, look);
  }

  #kill(worker: Worker): void {
    worker.clock.end();
    this.#workers.delete(worker.id);
    // Its calls end with it.
    for (const { running } of this.#levels)
      for (const call of running) if (call.worker === worker) running.delete(call);
    this.#counters.forget(worker);
    this.#startWorker();
  }

  /** All is free again in the end. */
  async #checkEnd(check: () => void): Promise<void> {
    const [worker] = this.#workers.values();
    if (worker === undefined) return;
    const slots = this.#levels.flatMap(({ calls }) =>
      calls.limit > 100 ? [] : Array.from({ length: calls.limit }, () => calls),
    );
    const rules = this.#levels.flatMap(({ requests, tokens }) =>
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
