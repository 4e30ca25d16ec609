import type { RateGrant, RateRule, Rates, RateVerdict, SlotRule } from '../../core/money/rates/index.ts';
import {
  PrimaryCounters,
  traces,
  type Counters,
  type CountersOptions,
  type CountingWorker,
  type Trace,
  type Trouble,
} from './counters.ts';
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

/** Time in ms in which a worker that stood still finds what has happened meanwhile. */
const lookTime = 600;

/** Maximum number of calls at once for all slots of a limit. */
const maxRush = 60;

/** Counters by kind of world. */
const counterKinds: Readonly<Record<string, (options: CountersOptions) => Counters>> = {
  rates: (options) => new PrimaryCounters(options),
  redis: (options) => new RedisCounters(options),
};

interface Worker extends CountingWorker {
  readonly rates: Rates;
  failsUntil: number;
  /** Until when it may serve calls from what the store has forgotten. */
  blindUntil: number;
}

/** Amount that a call was counted with. */
interface Counted {
  /** Time range between the request and its admission. */
  readonly from: number;
  readonly until: number;
  amount: number;
  /** Before it was corrected, which others may not know yet. */
  before: number;
  correctedAt: number;
  /** True when the counters may have lost it. */
  isLost: boolean;
}

interface Minute {
  readonly subject: string;
  readonly limit: number;
  /** Counts of the last two minutes. Empty without a limit. */
  counted: Counted[];
  /** The sum of that before corrections that lower it: where it is no more than the limit, no minute of it is. */
  most: number;
  /** The sum of what waiting calls cost. */
  waiting: number;
}

/** Limits that hold together: those of a key, or of a team of keys. One that is infinite does not exist. */
interface Level {
  readonly requests: Minute;
  readonly tokens: Minute;
  readonly calls: { readonly subject: string; readonly limit: number };
  readonly running: Set<RunningCall>;
  /** Calls that have just ended. */
  ending: number;
  /** Calls whose slots were lost once, which run or may hold them still. */
  readonly lost: Set<RunningCall>;
  waiting: number;
  /** The largest sums of running, ending and waiting calls. */
  readonly peaks: { readonly at: number; calls: number }[];
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
  endedAt: number;
}

/** Tokens and duration in milliseconds of a call that is not random. */
interface ExactCall {
  readonly cost: number;
  readonly length: number;
}

/** One call that was let in. */
interface Served {
  readonly levels: readonly Level[];
  readonly call: RunningCall;
  readonly grant: RateGrant;
  /** Counted tokens at each level. */
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
  /** Limits are seldom reached, so that most calls are served from memory. */
  readonly #isCalm: boolean;
  /** Which limits there are. */
  readonly #kinds: readonly string[];
  /** Probability that a call is followed by as many others as there are free slots. */
  readonly #rushRate: number;
  #favourite: Worker | undefined;
  #favouriteUntil = 0;
  readonly #counters: Counters;
  readonly #workers = new Map<number, Worker>();
  readonly #levels: Level[] = [];
  readonly #keys: Key[] = [];
  /** Time ranges whose counts the store has lost. */
  readonly #lost: NonNullable<Trouble['lost']>[] = [];
  #ids = 0;
  #troubledUntil = 0;
  #served = 0;
  #refused = 0;
  #fromMemory = 0;
  #broken: unknown;

  constructor(seed: number, kind = 'rates') {
    const chance = (this.#chance = new Chance(seed ^ 0x5bd1e995));
    this.#isHealthy = chance.is(0.5);
    this.#isSlow = chance.is(0.3);
    this.#isFocused = chance.is(0.5);
    this.#isCrowded = chance.is(0.4);
    this.#isCalm = chance.is(0.4);
    const allKinds = ['requests', 'tokens', 'calls'];
    this.#kinds = chance.of([
      allKinds,
      allKinds,
      allKinds,
      ['calls'],
      ['calls'],
      ['requests', 'tokens'],
      ['tokens', 'calls'],
    ]);
    this.#rushRate = chance.of([0.0005, 0.002, 0.01]);
    const counters = counterKinds[kind];
    if (counters === undefined) throw new Error(`Nothing counts as ${kind}.`);
    this.#counters = counters({
      time: this.#time,
      chance,
      times: { minute, lease },
      delay: () => chance.next() * (this.#isSlow ? 8 : 0.5),
    });
    const team = chance.is(0.3) ? this.#newLevel('team', 1_000) : undefined;
    for (let number = chance.of([1, 1, 2, 3]); number > 0; number -= 1) {
      const most = chance.of([10, 1_000]);
      const own = this.#newLevel(`key:${number}`, most);
      this.#keys.push({ levels: team === undefined ? [own] : [own, team], most });
    }
    for (let number = chance.whole(1, 4); number > 0; number -= 1) this.#startWorker();
  }

  /** Lives through it. Throws {@link BrokenRule}. */
  async run(): Promise<Outcome> {
    // Leases run out only in long worlds.
    const end = this.#chance.of(this.#kinds.length === 1 ? [4_000, 15_000] : [1_500, 4_000, 15_000]);
    const check = (): void => {
      if (this.#broken !== undefined) throw this.#broken;
    };
    for (const key of this.#keys) {
      this.#callAgain(key, end);
      this.#time.after(end - this.#chance.whole(0, 200), () => this.#takeAllSlots(key));
    }
    // In some worlds calls go on for long after the last fault.
    if (!this.#isHealthy) this.#goWrong(end * this.#chance.of([0.3, 1]));
    await this.#time.runUntil(end + 3_000, check);
    if (this.#chance.is(0.3)) await this.#holdForLong(check);
    const held = this.#chance.is(0.5) ? this.#holdOneOfEach() : new Set<string>();
    // Calls of a worker that stands still end after that, and count what they used beyond their estimates.
    const stops = [...this.#workers.values()].map(({ clock }) => clock.stoppedUntil);
    const allRun = Math.max(this.#time.now, ...stops);
    await this.#time.runUntil(allRun + 5_000 + lease + minute + 2 * slice, check);
    await this.#checkEnd(held, check);
    return { calls: this.#served, refused: this.#refused, fromMemory: this.#fromMemory };
  }

  #newLevel(name: string, most: number): Level {
    const chance = this.#chance;
    const limitOf = (what: string, limit: number): number => (this.#kinds.includes(what) ? limit : Infinity);
    const minuteOf = (what: string, limit: number): Minute => ({
      subject: `${name}:${what}`,
      limit: limitOf(what, limit),
      counted: [],
      most: 0,
      waiting: 0,
    });
    const level: Level = {
      requests: minuteOf('requests', chance.of(this.#isCalm ? [250, 1_000] : [5, 100, 250, 1_000, 100_000])),
      tokens: minuteOf('tokens', most * chance.of(this.#isCalm ? [200, 10_000] : [5, 100, 10_000])),
      calls: {
        subject: `${name}:calls`,
        limit: limitOf('calls', chance.of(this.#isCalm ? [20, 40, 60] : [1, 3, 20, 30, 1_000])),
      },
      running: new Set(),
      ending: 0,
      lost: new Set(),
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
    const worker: CountingWorker = { id: (this.#ids += 1), clock };
    const rates = this.#counters.open(worker);
    // What a server is about to lose a worker loses too that starts meanwhile.
    const blindUntil = Math.max(0, ...this.#lost.map(({ until, foundIn }) => until + foundIn));
    this.#workers.set(worker.id, Object.assign(worker, { rates, failsUntil: 0, blindUntil }));
  }

  #callAgain(key: Key, end: number): void {
    const chance = this.#chance;
    // A burst comes at once.
    const isBurst = this.#isFocused && chance.is(0.3);
    const pause = isBurst
      ? 0
      : chance.is(0.02)
        ? chance.whole(300, 2_500)
        : chance.next() * (this.#isCalm ? 60 : 20);
    if (this.#time.now + pause > end) return;
    this.#time.after(pause, () => {
      const worker = this.#choose();
      this.#send(key, worker);
      if (chance.is(this.#rushRate)) this.#takeAllSlots(key);
      if (chance.is(this.#rushRate)) this.#takeWhatIsCounted(key, worker);
      this.#callAgain(key, end);
    });
  }

  /** A client sends a call to a worker. It does not know when that stands still: what came meanwhile may be the first that the worker sees. */
  #send(key: Key, worker: Worker, exact?: Partial<ExactCall>): void {
    worker.clock.run(
      () => void this.#call(key, worker, exact).catch((error: unknown) => (this.#broken ??= error)),
    );
  }

  /** As many calls at once as there are slots that no call uses, through one worker: others have to give back what they hold. */
  #takeAllSlots(key: Key, worker = this.#chance.of([...this.#workers.values()])): void {
    const now = this.#time.now;
    const left = key.levels.map(({ calls, requests, peaks }) => {
      const peak = Math.max(0, ...peaks.filter(({ at }) => at >= now - settleTime).map((one) => one.calls));
      return Math.min(calls.limit - peak, this.#leftOf(requests));
    });
    const count = Math.min(...left);
    if (count > maxRush) return;
    for (let number = 0; number < count; number += 1) this.#send(key, worker, { cost: 1 });
  }

  /** Another worker needs all that is left while this one waits for the answer with what is counted ahead for it: the recall may overtake that. */
  #takeWhatIsCounted(key: Key, worker: Worker): void {
    const chance = this.#chance;
    const others = [...this.#workers.values()].filter((one) => one !== worker);
    if (others.length === 0) return;
    const other = chance.of(others);
    this.#time.after(chance.next() * (this.#isSlow ? 8 : 0.5), () => {
      const left = Math.min(...key.levels.map(({ tokens }) => this.#leftOf(tokens)));
      if (left > 0 && left < Infinity) this.#send(key, other, { cost: left });
      else this.#takeAllSlots(key, other);
    });
  }

  /** Calls for all slots through one worker, and then through another, which may take slots for its own that the first was given. */
  #takeAllBehind(other: Worker): void {
    const chance = this.#chance;
    const key = chance.of(this.#keys);
    const limit = Math.min(...key.levels.map(({ calls }) => calls.limit));
    const workers = [...this.#workers.values()].filter((one) => one !== other);
    if (limit > maxRush || workers.length === 0) return;
    const worker = chance.of(workers);
    // They last until the other worker has looked for its slots.
    for (let number = 0; number < limit; number += 1)
      this.#send(key, worker, { cost: 1, length: chance.whole(300, 2_500) });
    for (let number = chance.whole(1, 4); number > 0; number -= 1)
      this.#time.after(chance.whole(1, 1_500), () => this.#send(key, other, { cost: 1 }));
  }

  /** One worker serves few calls from the slots that it holds, for longer than their lease. Then another one needs all of them. */
  async #holdForLong(check: () => void): Promise<void> {
    const chance = this.#chance;
    const key = chance.of(this.#keys);
    const worker = chance.of([...this.#workers.values()]);
    const call = (): void => this.#send(key, worker, { cost: 1, length: chance.whole(1, 40) });
    for (let number = 5; number > 0; number -= 1) this.#time.after(chance.whole(0, 200), call);
    for (let at = 300; at < 2 * lease; at += chance.whole(200, 700)) this.#time.after(at, call);
    this.#time.after(2 * lease, () => this.#takeAllSlots(key));
    await this.#time.runUntil(this.#time.now + 3 * lease, check);
  }

  /** Returns the part of a minute's limit that no call has used or waits for, for any alignment of its slices. */
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

  async #call({ levels, most }: Key, worker: Worker, exact: Partial<ExactCall> = {}): Promise<void> {
    const chance = this.#chance;
    // Some calls take all tokens that no call uses: what was counted ahead elsewhere has to be given back for them.
    const left = chance.is(0.003) ? Math.min(...levels.map(({ tokens }) => this.#leftOf(tokens))) : 0;
    const cost = exact.cost ?? (left > 0 && left < Infinity ? left : chance.whole(1, most));
    const rules = levels
      .flatMap(({ requests, tokens }): readonly RateRule[] => [
        { subject: requests.subject, limit: requests.limit, cost: 1 },
        { subject: tokens.subject, limit: tokens.limit, cost },
      ])
      .filter(({ limit }) => limit < Infinity);
    const slots = levels.flatMap(({ calls }): readonly SlotRule[] =>
      calls.limit === Infinity ? [] : [{ subject: calls.subject, limit: calls.limit }],
    );
    const from = this.#time.now;
    for (const level of levels) this.#wait(level, cost, 1);
    const trace: Trace = { isRequested: false, countedAt: 0 };
    const verdict = await traces.run(trace, () => worker.rates.take(rules, slots));
    for (const level of levels) this.#wait(level, cost, -1);
    if (worker.clock.isGone) return;
    this.#checkSlots(levels);
    const { grant } = verdict;
    if (grant === undefined) {
      this.#refused += 1;
      this.#checkRefused(levels, verdict, cost, from);
      return;
    }
    this.#served += 1;
    if (!trace.isRequested) this.#fromMemory += 1;
    const now = this.#time.now;
    const isLost = this.#isForgotten(worker, trace);
    const lostUntil = isLost ? this.#recoveredAt(worker, worker.blindUntil) : 0;
    const call: RunningCall = { worker, at: now, lostUntil, endedAt: Infinity };
    if (!isLost) for (const level of levels) this.#checkServed(level, cost, worker);
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
      addTo(level.requests, counted(1));
      addTo(level.tokens, inLevel);
      level.running.add(call);
      if (isLost) level.lost.add(call);
      this.#note(level);
      return inLevel;
    });
    const usual = this.#isCrowded ? 900 : 200;
    const usualLength = chance.is(0.05) ? chance.whole(500, 4_000) : chance.whole(1, usual);
    worker.clock.after(exact.length ?? usualLength, () => this.#endCall({ levels, call, grant, tokens }));
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
    call.endedAt = now;
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
        addTo(minuteOf, {
          from: now,
          until: now,
          amount: difference,
          before: 0,
          correctedAt: Infinity,
          isLost: counted.isLost,
        });
      if (minuteOf.limit < Infinity) grant.correct(minuteOf.subject, difference);
    });
  }

  #note(level: Level): void {
    const now = this.#time.now;
    const calls = level.running.size + level.ending + level.waiting;
    const latest = level.peaks.at(-1);
    if (latest?.at === now) latest.calls = Math.max(latest.calls, calls);
    else level.peaks.push({ at: now, calls });
    while ((level.peaks[1]?.at ?? Infinity) < now - 2_000) level.peaks.shift();
  }

  /** No more is let in than the limits say, whatever the sixty slices that are looked at, besides what a server has lost. */
  #checkServed({ requests, tokens, calls, running }: Level, cost: number, worker: Worker): void {
    const now = this.#time.now;
    for (const minuteOf of [requests, tokens]) {
      const { counted, limit, subject } = minuteOf;
      for (let [first] = counted; first !== undefined && first.until < now - 2 * minute; [first] = counted) {
        counted.shift();
        minuteOf.most -= Math.max(first.amount, first.before);
      }
      let sum = minuteOf === requests ? 1 : Math.min(cost, limit);
      if (sum + minuteOf.most <= limit) continue;
      for (const one of counted) {
        // What was used beyond an estimate is told a little later.
        const isReported = one.correctedAt !== Infinity || (this.#isHealthy && one.until < now - settleTime);
        if (one.from > now - minute && isReported) sum += one.amount;
        if (one.isLost) sum -= Math.max(one.amount, one.before);
      }
      if (sum > limit) throw new BrokenRule(`${sum} of ${limit} were counted within a minute for ${subject}`);
    }
    if (calls.limit === Infinity) return;
    let [known, own] = [0, 1];
    for (const call of running) {
      if (call.lostUntil >= now) continue;
      known += 1;
      if (call.worker === worker) own += 1;
    }
    if (known >= calls.limit)
      throw new BrokenRule(`${known + 1} of ${calls.limit} run at the same time for ${calls.subject}`);
    const held = this.#counters.slotsOf?.(calls.subject, worker) ?? own;
    if (own > held)
      throw new BrokenRule(`a call was let in as one of ${own} with ${held} slots of ${calls.subject}`);
  }

  /** No more slots are taken than there are, besides those of calls whose slots were lost and given to others. */
  #checkSlots(levels: readonly Level[]): void {
    const now = this.#time.now;
    for (const { calls, lost } of levels) {
      for (const call of lost) {
        const { failsUntil } = call.worker;
        // A worker that fails gives slots back later, or not before their lease is over.
        const fails = failsUntil >= call.endedAt - settleTime;
        if (now > call.endedAt + settleTime && (!fails || now > failsUntil + lease + recoveryTime))
          lost.delete(call);
      }
      const taken = this.#counters.slotsOf?.(calls.subject) ?? 0;
      if (taken > calls.limit + lost.size)
        throw new BrokenRule(
          `${taken} of ${calls.limit} slots of ${calls.subject} are taken, no more than ${lost.size} of them twice`,
        );
    }
  }

  /** True for a call that was let in by what the store has forgotten, which its worker did not know. */
  #isForgotten(worker: Worker, { isRequested, countedAt }: Trace): boolean {
    const now = this.#time.now;
    if (!isRequested) return now < worker.blindUntil;
    return this.#lost.some(({ from, until }) => from <= now && countedAt < until);
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
        this.#prepare(worker);
        this.#time.after(chance.whole(0, 60), () => {
          if (!worker.clock.isGone) this.#fail(worker);
        });
      }
      this.#goWrong(end);
    });
  }

  /** Sends calls to a worker that is about to fail, so that slots and parts of minutes are held by it for calls that follow. */
  #prepare(worker: Worker): void {
    const chance = this.#chance;
    const key = chance.of(this.#keys);
    for (let number = chance.whole(0, 5); number > 0; number -= 1)
      this.#time.after(chance.whole(0, 40), () =>
        this.#send(key, worker, { cost: 1, length: chance.whole(1, 60) }),
      );
  }

  #fail(worker: Worker): void {
    // Answers to these may come while the worker stands still.
    for (let number = this.#chance.whole(0, 3); number > 0; number -= 1)
      this.#send(this.#chance.of(this.#keys), worker);
    const { length, concerns, unleases, lost } = this.#counters.fail(worker, this.#chance);
    const { now } = this.#time;
    this.#trouble(length);
    if (concerns !== undefined)
      for (const one of concerns === 'all' ? this.#workers.values() : [worker])
        one.failsUntil = Math.max(one.failsUntil, now + length);
    for (const one of this.#workers.values()) {
      const { stoppedUntil } = one.clock;
      const foundAt =
        lost === undefined ? one.blindUntil : Math.max(one.blindUntil, lost.until + lost.foundIn);
      // What it has not found it finds after it has stood still.
      if (foundAt > now) one.blindUntil = Math.max(foundAt, stoppedUntil > now ? stoppedUntil + lookTime : 0);
    }
    if (lost !== undefined) this.#lose(lost);
    if (unleases !== undefined) this.#loseCalls(unleases === 'worker' ? worker : undefined, length);
    // What others are given meanwhile must not be used when it is over.
    const over = Math.max(0, worker.clock.stoppedUntil - now - this.#chance.whole(1, 60));
    if (this.#chance.is(0.5))
      this.#time.after(over + this.#chance.of([0, 100, 900]), () => this.#takeAllBehind(worker));
  }

  #trouble(length: number): void {
    this.#troubledUntil = Math.max(this.#troubledUntil, this.#time.now + length + minute + 1_000);
  }

  /** Loses the counts between these times. */
  #lose(lost: NonNullable<Trouble['lost']>): void {
    this.#lost.push(lost);
    const foundAt = lost.until + lost.foundIn;
    for (const level of this.#levels) {
      for (const { counted } of [level.requests, level.tokens])
        for (const one of counted) if (one.until >= lost.from) one.isLost = true;
      for (const call of level.running)
        if (call.at >= lost.from) loseSlots(level, call, this.#recoveredAt(call.worker, foundAt));
    }
  }

  /** Returns the time at which a worker has reported the permits of its calls again after a loss; a failing worker reports later. */
  #recoveredAt(worker: Worker, until: number): number {
    return Math.max(until, worker.failsUntil) + recoveryTime;
  }

  /** Slots of calls of the worker, or of all, that run now or begin soon may be given to others. */
  #loseCalls(worker: Worker | undefined, length: number): void {
    const until = this.#time.now + length + recoveryTime;
    const look = (): void => {
      for (const level of this.#levels)
        for (const call of level.running)
          if (worker === undefined || call.worker === worker) loseSlots(level, call, until);
    };
    look();
    // Calls that were sent just before the failure are let in when this job is over.
    this.#time.after(0, look);
    this.#time.after(length, look);
  }

  #kill(worker: Worker): void {
    worker.clock.end();
    this.#workers.delete(worker.id);
    worker.failsUntil = Math.max(worker.failsUntil, this.#time.now);
    // Its calls end with it.
    for (const { running } of this.#levels)
      for (const call of running)
        if (call.worker === worker) {
          call.endedAt = this.#time.now;
          running.delete(call);
        }
    this.#counters.forget(worker);
    this.#startWorker();
  }

  /** Starts one call of each limit that goes on to the end, and keeps what else stands for slots in the store. Returns the subjects. */
  #holdOneOfEach(): ReadonlySet<string> {
    const held = new Set<string>();
    const [worker] = this.#workers.values();
    for (const { calls } of this.#levels)
      if (calls.limit < Infinity)
        void worker?.rates.take([], [calls]).then(({ allowed }) => {
          if (allowed) held.add(calls.subject);
        });
    return held;
  }

  /** All is free again in the end. */
  async #checkEnd(held: ReadonlySet<string>, check: () => void): Promise<void> {
    const [worker] = this.#workers.values();
    if (worker === undefined) return;
    const slots = this.#levels.flatMap(({ calls }) =>
      calls.limit > 100
        ? []
        : Array.from({ length: calls.limit - (held.has(calls.subject) ? 1 : 0) }, () => calls),
    );
    const rules = this.#levels
      .flatMap(({ requests, tokens }) => [requests, tokens])
      .filter(({ limit }) => limit < Infinity)
      .map(({ subject, limit }) => ({ subject, limit, cost: limit }));
    const requestAll = (): Promise<void> => this.#acquireAll(worker, slots, rules);
    void requestAll().catch((error: unknown) => (this.#broken ??= error));
    await this.#time.runUntil(this.#time.now + 5_000, check);
    check();
  }

  async #acquireAll(worker: Worker, slots: readonly SlotRule[], rules: readonly RateRule[]): Promise<void> {
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

/** Adds what was counted. It is not followed where there is no limit. */
function addTo(minuteOf: Minute, counted: Counted): void {
  if (minuteOf.limit === Infinity) return;
  minuteOf.counted.push(counted);
  minuteOf.most += Math.max(counted.amount, counted.before);
}

/** Notes that the slots of a call may be given to others until then. */
function loseSlots(level: Level, call: RunningCall, until: number): void {
  call.lostUntil = Math.max(call.lostUntil, until);
  level.lost.add(call);
}
