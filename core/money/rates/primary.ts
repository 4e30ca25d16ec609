import { MemoryRates } from './memory.ts';
import type {
  RateGrant,
  RateRule,
  Rates,
  RateTimes,
  RateVerdict,
  SharedSettings,
  SlotRule,
  RatesAnswer,
  RatesLine,
  RatesQuestion,
} from './index.ts';
import type { ReportShared } from '../../state/links/shared-link.ts';

/** Longest wait for an answer, in milliseconds: the other process does nothing else. */
const patience = 1_000;

/** Questions that may be open at a time; beyond, whoever should answer is taken for gone. */
const mostOpen = 10_000;

/** Milliseconds after which a call that could not be counted may try again. */
const downRetry = 1_000;

/** A question on its way. Emptied when it is answered, as an old table of the map may live on for a while, with all that was in it. */
interface Open {
  timer: NodeJS.Timeout | undefined;
  settle: ((answer: RatesAnswer | undefined) => void) | undefined;
}

/** Counts in another process, for all workers of this gateway together. While it does not answer each counts for itself, or refuses. */
export class PrimaryRates implements Rates {
  readonly #line: RatesLine;
  readonly #whenDown: SharedSettings['whenDown'];
  readonly #report: ReportShared;
  readonly #local: MemoryRates;
  readonly #open = new Map<number, Open>();
  #ids = 0;
  #state: Rates['state'] = 'ok';

  constructor(
    line: RatesLine,
    whenDown: SharedSettings['whenDown'],
    report: ReportShared,
    times: RateTimes = {},
  ) {
    this.#line = line;
    this.#whenDown = whenDown;
    this.#report = report;
    this.#local = new MemoryRates(times);
    line.listen((answer) => this.#answered(answer));
  }

  get state(): Rates['state'] {
    return this.#state;
  }

  async take(rules: readonly RateRule[], slots: readonly SlotRule[] = []): Promise<RateVerdict> {
    const answer = await this.#ask(rules, slots);
    if (answer === undefined) return this.#alone(rules, slots);
    const { verdict, slice } = answer;
    return verdict.allowed ? { ...verdict, grant: this.#grant(slice, answer.slots) } : verdict;
  }

  close(): Promise<void> {
    for (const id of this.#open.keys()) this.#settle(id, undefined);
    return Promise.resolve();
  }

  #ask(rules: readonly RateRule[], slots: readonly SlotRule[]): Promise<RatesAnswer | undefined> {
    return new Promise((settle) => {
      const id = (this.#ids += 1);
      if (this.#open.size >= mostOpen || !this.#line.send({ kind: 'take', id, rules, slots })) {
        settle(undefined);
        return;
      }
      this.#open.set(id, { timer: setTimeout(() => this.#settle(id, undefined), patience), settle });
    });
  }

  /** False when nobody waits for it any more. */
  #settle(id: number, answer: RatesAnswer | undefined): boolean {
    const open = this.#open.get(id);
    if (open === undefined) return false;
    this.#open.delete(id);
    const { timer, settle } = open;
    open.timer = undefined;
    open.settle = undefined;
    clearTimeout(timer);
    settle?.(answer);
    return true;
  }

  #answered(answer: RatesAnswer): void {
    if (this.#state === 'degraded') {
      this.#state = 'ok';
      this.#report();
    }
    if (!this.#settle(answer.id, answer) && answer.slots.length > 0)
      this.#line.send({ kind: 'release', slots: answer.slots });
  }

  #alone(rules: readonly RateRule[], slots: readonly SlotRule[]): RateVerdict {
    if (this.#state === 'ok') {
      this.#state = 'degraded';
      this.#report(new Error('The process that counts for all workers does not answer.'));
    }
    if (this.#whenDown === 'refuse')
      return { allowed: false, states: [], retryMs: downRetry, degraded: true };
    return { ...this.#local.takeNow(rules, slots), degraded: true };
  }

  #grant(slice: number, slots: readonly string[]): RateGrant {
    let held = slots;
    return {
      correct: (subject, difference) => {
        if (difference !== 0) this.#line.send({ kind: 'correct', subject, difference, slice });
      },
      release: () => {
        if (held.length > 0) this.#line.send({ kind: 'release', slots: held });
        held = [];
      },
    };
  }
}

/** Counts for several processes, each known by a number. */
export class RatesDesk {
  readonly #rates: MemoryRates;
  /** What each process holds: slots by subject. */
  readonly #held = new Map<number, Map<string, number>>();

  constructor(times: RateTimes = {}) {
    this.#rates = new MemoryRates(times);
  }

  /** Does what a process asks; an answer where it waits for one. */
  ask(asker: number, question: RatesQuestion): RatesAnswer | undefined {
    switch (question.kind) {
      case 'correct':
        this.#rates.correct(question.subject, question.difference, question.slice);
        return undefined;
      case 'release':
        for (const subject of question.slots) this.#release(asker, subject);
        return undefined;
      case 'take':
        return this.#take(asker, question);
    }
  }

  /** Gives back all slots of a process that has ended. */
  forget(asker: number): void {
    for (const [subject, count] of this.#held.get(asker) ?? [])
      for (let left = count; left > 0; left -= 1) this.#rates.release(subject);
    this.#held.delete(asker);
  }

  #take(asker: number, { id, rules, slots }: Extract<RatesQuestion, { kind: 'take' }>): RatesAnswer {
    const now = performance.now();
    const slice = this.#rates.sliceAt(now);
    const { grant, ...verdict } = this.#rates.takeNow(rules, slots, now, slice);
    const taken = grant === undefined ? [] : slots.map(({ subject }) => subject);
    if (taken.length > 0) {
      const held = this.#held.get(asker) ?? new Map<string, number>();
      this.#held.set(asker, held);
      for (const subject of taken) held.set(subject, (held.get(subject) ?? 0) + 1);
    }
    return { id, verdict, slice, slots: taken };
  }

  #release(asker: number, subject: string): void {
    const held = this.#held.get(asker);
    const count = held?.get(subject);
    // What it does not hold was given back when it was taken for gone.
    if (held === undefined || count === undefined) return;
    if (count > 1) held.set(subject, count - 1);
    else held.delete(subject);
    this.#rates.release(subject);
  }
}
