/** Rate windows and concurrency limits counted in Redis for all gateways together, with shares counted ahead for each process. */
import { randomUUID } from 'node:crypto';
import type { ReportShared } from '../../state/links/shared-link.ts';
import { systemClock, type Clock } from '../ledger/clock.ts';
import { AheadRequests } from './ahead-requests.ts';
import { clockMargin, type StoreAnswer } from './answers.ts';
import { giveBackCalls, type GivenBack } from './give-backs.ts';
import { bySubject, HeldSlots, type HeldSlot } from './held-slots.ts';
import { MemoryRates, slices } from './memory.ts';
import { Recalls } from './recalls.ts';
import { renewSlots } from './renewals.ts';
import { giveBackScript, scripts } from './scripts.ts';
import { Shares } from './shares.ts';
import { StoreCounts } from './store-counts.ts';
import { connectRatesStore, holdersOf, type RatesStore, type StoreWatcher } from './store.ts';
import type {
  RateRule,
  Rates,
  RatesQuestion,
  RateTimes,
  RateVerdict,
  SharedSettings,
  SlotRule,
} from './index.ts';

/** Retry delay in milliseconds for a call that could not be counted. */
const downRetry = 1_000;

/** Maximum number of slots that are given back later because the store could not be asked. The others are free when their leases are over. */
const maxAbandoned = 10_000;

/** Maximum number of recalls of other processes' shares for one call. */
const recallsPerCall = 2;

/** Options of {@link RedisRates}: tests and simulations replace the store and the clock. */
export interface RedisRatesOptions {
  readonly whenDown: SharedSettings['whenDown'];
  readonly times?: RateTimes;
  readonly clock?: Clock;
  /** Name of the process, unlike that of any other. */
  readonly process?: string;
  readonly connect: (watcher: StoreWatcher) => RatesStore;
}

/** Opens rates that the shared store counts. */
export function openRedisRates(shared: SharedSettings, report: ReportShared, times: RateTimes): RedisRates {
  const connect = (watcher: StoreWatcher) => connectRatesStore(shared, scripts, report, watcher);
  return new RedisRates({ whenDown: shared.whenDown, times, connect });
}

/**
 * The same sliding minute as in memory, by the store's clock. One script checks all rules of a call. Calls of busy keys are served from shares
 * that the store has counted ahead for this process. Slots are leases, renewed while they are held: those of a killed process expire. While
 * the store is unavailable each process counts for itself, or calls with limits are refused; shares are given up when the connection is lost.
 */
export class RedisRates implements Rates {
  readonly #store: RatesStore;
  readonly #whenDown: SharedSettings['whenDown'];
  readonly #clock: Clock;
  readonly #local: MemoryRates;
  readonly #shares: Shares;
  readonly #recalls: Recalls;
  readonly #counts: StoreCounts;
  readonly #slice: string;
  readonly #lease: number;
  readonly #process: string;
  readonly #held = new HeldSlots();
  /** Slots that the store may hold for this process, and that this process does not use. */
  #abandoned: HeldSlot[] = [];
  readonly #aheadRequests: AheadRequests;
  readonly #recalled = new Map<number, readonly string[]>();
  #ids = 0;
  #renewedAt: number;
  #isRenewing = false;
  #stopRenewing: () => void;

  constructor({ whenDown, times = {}, clock = systemClock, process, connect }: RedisRatesOptions) {
    const { minute = 60_000, lease = 15_000 } = times;
    this.#whenDown = whenDown;
    this.#clock = clock;
    this.#process = process ?? randomUUID();
    this.#local = new MemoryRates(times, clock);
    this.#slice = String(minute / slices);
    this.#lease = lease;
    this.#renewedAt = clock.now();
    this.#shares = new Shares(
      {
        send: (question) => this.#giveBack(question),
        slotsUntil: () => this.#renewedAt + clockMargin * lease,
      },
      clock,
    );
    this.#aheadRequests = new AheadRequests(this.#shares, (rules, slots) => this.#withoutStore(rules, slots));
    this.#store = connect({
      up: () => void this.#renew(),
      down: () => this.#shares.giveUp(),
    });
    this.#counts = new StoreCounts({
      store: this.#store,
      process: this.#process,
      clock,
      slice: this.#slice,
      lease,
      giveBack: (given) => this.#send(given),
      abandon: (slots) => this.#abandon(slots),
    });
    this.#recalls = new Recalls({
      store: this.#store,
      process: this.#process,
      clock,
      giveBack: (subjects) => void this.#recall(subjects),
      holdsAnything: () => !this.#shares.isEmpty,
    });
    this.#stopRenewing = this.#renewLater();
  }

  get state(): 'ok' | 'degraded' {
    return this.#store.isUp ? 'ok' : 'degraded';
  }

  async take(rules: readonly RateRule[], slots: readonly SlotRule[] = []): Promise<RateVerdict> {
    const served = this.#shares.take(rules, slots) ?? (await this.#aheadRequests.take(rules, slots));
    if (served !== undefined) return served;
    let answer = await this.#request(rules, slots);
    for (let tries = 0; tries < recallsPerCall; tries += 1) {
      if (answer === undefined || answer.holders.length === 0) break;
      const subjects = [...rules, ...slots].map(({ subject }) => subject);
      // oxlint-disable no-await-in-loop -- again only where another call was faster
      await this.#recalls.recall(subjects, answer.holders);
      answer = await this.#count(rules, slots);
      // oxlint-enable no-await-in-loop
    }
    if (answer === undefined) return this.#withoutStore(rules, slots);
    const { verdict, slice } = answer;
    return {
      ...verdict,
      states: this.#shares.statesOf(answer),
      ...(verdict.allowed ? { grant: this.#shares.grant(slice, answer.slots) } : {}),
    };
  }

  async close(): Promise<void> {
    this.#stopRenewing();
    this.#recalls.close();
    this.#shares.close();
    this.#release(this.#held.all());
    await this.#store.close();
  }

  /** Counts a call in the store, and ahead for later calls where such calls are frequent. */
  #request(rules: readonly RateRule[], slots: readonly SlotRule[]): Promise<StoreAnswer | undefined> {
    const wanted = this.#shares.wanted(rules, slots);
    const sentAt = this.#clock.now();
    const mayTakeAhead = wanted.subject !== undefined && this.#recalls.listen();
    const asking = this.#count(mayTakeAhead ? wanted.rules : rules, mayTakeAhead ? wanted.slots : slots).then(
      (answer) => {
        this.#shares.handleAnswer(wanted, answer, sentAt);
        return answer;
      },
    );
    if (mayTakeAhead) this.#aheadRequests.add(rules, slots, asking);
    return asking;
  }

  async #count(rules: readonly RateRule[], slots: readonly SlotRule[]): Promise<StoreAnswer | undefined> {
    const counted = await this.#counts.count(rules, slots);
    for (const [subject, ids] of counted?.taken ?? []) this.#held.add(subject, ids);
    return counted?.answer;
  }

  #withoutStore(rules: readonly RateRule[], slots: readonly SlotRule[]): RateVerdict {
    if (this.#whenDown === 'refuse')
      return { allowed: false, states: [], retryMs: downRetry, degraded: true };
    return { ...this.#local.takeNow(rules, slots), degraded: true };
  }

  /** Gives back the free shares of these subjects, or of all, because another process has no room. */
  async #recall(subjects?: readonly string[]): Promise<void> {
    // Pending requests may add shares.
    await this.#aheadRequests.settled();
    if (subjects === undefined) {
      this.#shares.giveUp();
      return;
    }
    const recall = (this.#ids += 1);
    this.#recalled.set(recall, subjects);
    this.#shares.recall({ recall, subjects });
    this.#recalled.delete(recall);
  }

  #giveBack(question: RatesQuestion): boolean {
    switch (question.kind) {
      case 'correct':
        this.#send({ corrections: [question], slots: new Map(), left: [] });
        break;
      case 'release':
        this.#release(question.slots.flatMap((subject) => this.#takeHeld(subject, 1)));
        break;
      case 'give-back': {
        const slots = question.slots.flatMap(([subject, count]) => this.#takeHeld(subject, count));
        const left = question.recalled === undefined ? [] : (this.#recalled.get(question.recalled) ?? []);
        this.#send({ corrections: question.corrections, slots: bySubject(slots), left });
        break;
      }
      case 'take':
    }
    return true;
  }

  #takeHeld(subject: string, count: number): readonly HeldSlot[] {
    return this.#held.take(subject, count).map((id) => ({ subject, id }));
  }

  #release(slots: readonly HeldSlot[]): void {
    this.#send({ corrections: [], slots: bySubject(slots), left: [] });
  }

  /** The link tells when the store is gone; a correction that does not reach it is forgotten within a minute anyway. */
  #send(given: GivenBack): void {
    for (const { keys, values } of giveBackCalls(given, this.#slice, this.#process))
      this.#store.run(giveBackScript, keys, values).catch(() => {
        for (const [subject, ids] of given.slots) this.#abandon(ids.map((id) => ({ subject, id })));
      });
  }

  #abandon(slots: readonly HeldSlot[]): void {
    if (this.#abandoned.length + slots.length <= maxAbandoned) this.#abandoned.push(...slots);
  }

  #renewLater(): () => void {
    return this.#clock.after(this.#lease / 3, () => {
      this.#stopRenewing = this.#renewLater();
      void this.#renew();
    });
  }

  /** Renews the leases of all slots. Slots that the store has lost are restored for running calls, and given up for later calls. */
  async #renew(): Promise<void> {
    if (this.#isRenewing || !this.#store.isUp) return;
    this.#isRenewing = true;
    const began = this.#clock.now();
    try {
      const lost = await this.#renewAll(this.#held.all(), false);
      const forgotten = bySubject(lost);
      for (const [subject, ids] of forgotten) this.#held.putFirst(subject, ids);
      if (lost.length > 0) this.#shares.giveUp(forgotten.keys());
      await this.#renewAll(lost, true);
      this.#renewedAt = began;
      // Only when the lost slots are restored: otherwise other processes could take slots that running calls still use.
      this.#release(this.#abandoned.splice(0));
    } catch {
      // Slots that are not renewed are not used for calls that follow.
    } finally {
      this.#isRenewing = false;
    }
    // This process was suspended: the next renewal is due, and its timer may have fired.
    if (this.#clock.now() - began >= this.#lease / 3) void this.#renew();
  }

  #renewAll(held: readonly HeldSlot[], anyway: boolean): Promise<readonly HeldSlot[]> {
    const holders = anyway ? [] : this.#shares.slotSubjects.map(holdersOf);
    const isHeld = (one: HeldSlot): boolean => this.#held.has(one);
    return renewSlots(this.#store, held, {
      lease: this.#lease,
      process: this.#process,
      holders,
      isHeld,
      anyway,
    });
  }
}
