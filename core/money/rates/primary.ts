import { systemClock, type Clock } from '../ledger/clock.ts';
import { AheadRequests } from './ahead-requests.ts';
import { MemoryRates } from './memory.ts';
import { Shares } from './shares.ts';
import type {
  RateRule,
  Rates,
  RateTimes,
  RateVerdict,
  SharedSettings,
  SlotRule,
  RatesAnswer,
  RatesLine,
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
  timer: (() => void) | undefined;
  settle: ((answer: RatesAnswer | undefined) => void) | undefined;
}

/**
 * Counts in another process, for all workers of this gateway together; most calls of busy keys in this one, from what the other has counted
 * ahead. While it does not answer each counts for itself, or refuses.
 */
export class PrimaryRates implements Rates {
  readonly #line: RatesLine;
  readonly #whenDown: SharedSettings['whenDown'];
  readonly #report: ReportShared;
  readonly #local: MemoryRates;
  readonly #shares: Shares;
  readonly #aheadRequests: AheadRequests;
  readonly #clock: Clock;
  readonly #open = new Map<number, Open>();
  #ids = 0;
  #state: Rates['state'] = 'ok';

  constructor(
    line: RatesLine,
    whenDown: SharedSettings['whenDown'],
    report: ReportShared,
    times: RateTimes = {},
    clock: Clock = systemClock,
  ) {
    this.#line = line;
    this.#clock = clock;
    this.#shares = new Shares(line, clock);
    this.#aheadRequests = new AheadRequests(this.#shares, (rules, slots) => this.#alone(rules, slots));
    this.#whenDown = whenDown;
    this.#report = report;
    this.#local = new MemoryRates(times, clock);
    line.listen((news) => {
      if ('recall' in news) this.#shares.recall(news);
      else this.#answered(news);
    });
  }

  get state(): Rates['state'] {
    return this.#state;
  }

  async take(rules: readonly RateRule[], slots: readonly SlotRule[] = []): Promise<RateVerdict> {
    const served = this.#shares.take(rules, slots);
    if (served !== undefined) return served;
    const servedLater = this.#aheadRequests.has(rules, slots)
      ? await this.#aheadRequests.take(rules, slots)
      : undefined;
    if (servedLater !== undefined) return servedLater;
    const answer = await this.#request(rules, slots);
    if (answer === undefined) return this.#alone(rules, slots);
    const { verdict, slice } = answer;
    return {
      ...verdict,
      states: this.#shares.statesOf(answer),
      ...(verdict.allowed ? { grant: this.#shares.grant(slice, answer.slots) } : {}),
    };
  }

  close(): Promise<void> {
    this.#shares.close();
    for (const id of this.#open.keys()) this.#settle(id, undefined);
    return Promise.resolve();
  }

  /** Counts a call in the other process, and ahead for later calls where such calls are frequent. */
  #request(rules: readonly RateRule[], slots: readonly SlotRule[]): Promise<RatesAnswer | undefined> {
    const wanted = this.#shares.wanted(rules, slots);
    const sentAt = this.#clock.now();
    const request = this.#ask(wanted.rules, wanted.slots).then((answer) => {
      this.#shares.handleAnswer(wanted, answer, sentAt);
      return answer;
    });
    if (wanted.subject !== undefined) this.#aheadRequests.add(rules, slots, request);
    return request;
  }

  #ask(rules: readonly RateRule[], slots: readonly SlotRule[]): Promise<RatesAnswer | undefined> {
    return new Promise((settle) => {
      const id = (this.#ids += 1);
      if (this.#open.size >= mostOpen || !this.#line.send({ kind: 'take', id, rules, slots })) {
        settle(undefined);
        return;
      }
      this.#open.set(id, { timer: this.#clock.after(patience, () => this.#settle(id, undefined)), settle });
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
    timer?.();
    settle?.(answer);
    return true;
  }

  #answered(answer: RatesAnswer): void {
    if (this.#state === 'degraded') {
      this.#state = 'ok';
      this.#report();
    }
    if (this.#settle(answer.id, answer)) return;
    const { slots, slotsAhead = [], verdict, slice } = answer;
    const ahead = slots.flatMap((subject, index) =>
      Array.from({ length: slotsAhead[index] ?? 0 }, () => subject),
    );
    for (const { subject, ahead: counted = 0 } of verdict.states)
      if (counted > 0) this.#line.send({ kind: 'correct', subject, difference: -counted, slice });
    this.#shares.giveBackSlots([...slots, ...ahead]);
  }

  #alone(rules: readonly RateRule[], slots: readonly SlotRule[]): RateVerdict {
    if (this.#state === 'ok') {
      this.#state = 'degraded';
      this.#report(new Error('The primary process, which counts for all workers, does not respond.'));
    }
    if (this.#whenDown === 'refuse')
      return { allowed: false, states: [], retryMs: downRetry, degraded: true };
    return { ...this.#local.takeNow(rules, slots), degraded: true };
  }
}
