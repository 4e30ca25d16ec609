/**
 * Shares of rate limits that the counting process or the shared store has counted ahead for this process, so that most calls of a busy key
 * need no request.
 */
import type { Clock } from '../ledger/clock.ts';
import { FrequentKeys } from '../ledger/frequent-keys.ts';
import { maxShare } from './memory.ts';
import { Returns } from './returns.ts';
import type {
  RateGrant,
  RateRule,
  RatesAnswer,
  RatesRecall,
  RateState,
  RateVerdict,
  ReturnsLine,
  SlotRule,
} from './index.ts';

/** Number of later calls that are counted ahead. */
const callsAhead = 15;

/** Time in ms without a call after which slots are given back and the state of a subject is removed. */
const idle = 1_000;

/** Interval in ms at which expired shares are given back. */
const lookEvery = 25;

/** Part of a minute's limit that was counted ahead for this process. It can be used only in the slice in which it was counted. */
interface MinuteShare {
  readonly slice: number;
  readonly limit: number;
  /** When the slice is over, by the clock of this process. */
  readonly until: number;
  free: number;
  /** Amount that calls have taken of it. */
  served: number;
  /** Rest of the limit, besides `free`. */
  readonly remaining: number;
  readonly resetAt: number;
}

/** Slots of a limit that this process holds. */
interface SlotShare {
  readonly limit: number;
  free: number;
  /** The most that are kept free. */
  most: number;
  usedAt: number;
}

/**
 * The shares of this process. A share counts as used for all processes until it is given back: at the end of its slice, when it is idle, and
 * when another worker has no room.
 */
export class Shares {
  readonly #clock: Clock;
  readonly #line: ReturnsLine;
  readonly #returns: Returns;
  readonly #busy: FrequentKeys;
  readonly #minutes = new Map<string, MinuteShare>();
  readonly #slots = new Map<string, SlotShare>();
  #stopLooking: (() => void) | undefined;
  #isClosed = false;

  constructor(line: ReturnsLine, clock: Clock) {
    this.#clock = clock;
    this.#line = line;
    this.#returns = new Returns(line, clock);
    this.#busy = new FrequentKeys(clock);
  }

  /** Counts a call in memory. Undefined when one of the shares has no room for it. */
  take(rules: readonly RateRule[], slots: readonly SlotRule[]): RateVerdict | undefined {
    const now = this.#clock.now();
    let slice = 0;
    // Found once: a call may have limits of several levels.
    const minutes: MinuteShare[] = [];
    const held: SlotShare[] = [];
    for (const { subject, limit, cost } of rules) {
      const share = this.#minutes.get(subject);
      if (share?.limit !== limit || now >= share.until || share.free < Math.min(cost, limit))
        return undefined;
      ({ slice } = share);
      minutes.push(share);
    }
    for (const { subject, limit } of slots) {
      const share = this.#slots.get(subject);
      if (share?.limit !== limit || share.free < 1) return undefined;
      held.push(share);
    }
    if (slots.length > 0 && now >= (this.#line.slotsUntil?.() ?? Infinity)) return undefined;
    const states: RateState[] = [];
    for (let index = 0; index < minutes.length; index += 1) {
      const share = minutes[index];
      const rule = rules[index];
      if (share === undefined || rule === undefined) continue;
      const { subject, limit, cost } = rule;
      share.free -= Math.min(cost, limit);
      share.served += Math.min(cost, limit);
      states.push({ subject, limit, remaining: share.remaining + share.free, resetMs: share.resetAt - now });
    }
    for (const share of held) {
      share.free -= 1;
      share.usedAt = now;
    }
    const subjects = slots.map(({ subject }) => subject);
    return { allowed: true, states, retryMs: 0, grant: this.grant(slice, subjects) };
  }

  /**
   * Returns the rules with the amounts to count ahead, where calls like this one are frequent. {@link handleAnswer} must be called with the result
   * once the answer is there.
   */
  wanted(rules: readonly RateRule[], slots: readonly SlotRule[]): Wanted {
    this.#returns.flush();
    const subject = rules[0]?.subject ?? slots[0]?.subject ?? '';
    const now = this.#clock.now();
    const isServed = now - (this.#minutes.get(subject)?.until ?? Number.NEGATIVE_INFINITY) < idle;
    if (this.#isClosed || !this.#busy.begin(subject, isServed)) return { rules, slots };
    return {
      subject,
      rules: rules.map((rule) => {
        const { free = 0, served = 0, until = 0 } = this.#minutes.get(rule.subject) ?? {};
        const wanted = Math.max(callsAhead * Math.min(rule.cost, rule.limit), served);
        return { ...rule, ahead: Math.max(0, wanted - (now < until ? free : 0)) };
      }),
      slots: slots.map((slot) => ({
        ...slot,
        ahead: Math.max(0, callsAhead - (this.#slots.get(slot.subject)?.free ?? 0)),
      })),
    };
  }

  /** Handles the answer to a request with the result of {@link wanted}; undefined where none will come. `sentAt`: time of the request. */
  handleAnswer({ subject, rules, slots }: Wanted, answer: RatesAnswer | undefined, sentAt: number): void {
    if (subject !== undefined) this.#busy.end(subject);
    if (answer === undefined) return;
    const { verdict, slice, sliceMs, slotsAhead = [] } = answer;
    if (sliceMs === undefined) return;
    this.#returns.areTakenTogether = true;
    const now = this.#clock.now();
    verdict.states.forEach(({ ahead = 0, remaining, resetMs }, index) => {
      const rule = rules[index];
      if (rule === undefined || ahead === 0) return;
      const before = this.#minutes.get(rule.subject);
      const isSame = before?.slice === slice && before.limit === rule.limit;
      if (before !== undefined && !isSame) this.#returns.lower(rule.subject, before.slice, before.free);
      this.#minutes.set(rule.subject, {
        slice,
        limit: rule.limit,
        // The slice is as old as the answer at least.
        until: Math.max(sentAt + sliceMs, isSame ? before.until : 0),
        free: ahead + (isSame ? before.free : 0),
        served: isSame ? before.served : 0,
        remaining,
        resetAt: now + resetMs,
      });
    });
    slotsAhead.forEach((ahead, index) => {
      const slot = slots[index];
      if (slot === undefined || ahead === 0) return;
      const before = this.#slots.get(slot.subject);
      const free = ahead + (before?.free ?? 0);
      // Slots of calls that have ended are kept for the next ones, because another worker that needs them recalls them.
      const most = Math.max(free, Math.floor(slot.limit * maxShare));
      this.#slots.set(slot.subject, { limit: slot.limit, free, most, usedAt: now });
    });
    if (this.#isClosed) this.close();
    else this.#look();
  }

  /** Returns the states of minutes for calls of this process, which may also use its free shares. */
  statesOf({ verdict, slice }: RatesAnswer): readonly RateState[] {
    return verdict.states.map(({ ahead: _ahead, ...state }) => {
      const share = this.#minutes.get(state.subject);
      const free = share?.slice === slice ? share.free : 0;
      return { ...state, remaining: state.remaining + free };
    });
  }

  /** Returns the grant of a call that was counted in this slice. */
  grant(slice: number, slots: readonly string[]): RateGrant {
    let held = slots;
    return {
      correct: (subject, difference) => this.#correct(subject, difference, slice),
      release: () => {
        for (const subject of held) this.#release(subject);
        held = [];
      },
    };
  }

  /** Gives back the free shares of these subjects, because another worker has no room. */
  recall({ recall, subjects }: RatesRecall): void {
    for (const subject of subjects) this.#giveUp(subject);
    this.#returns.flush(recall);
  }

  /** True when no share is held for later calls. */
  get isEmpty(): boolean {
    return this.#minutes.size + this.#slots.size === 0;
  }

  /** Subjects of which slots are held for later calls. */
  get slotSubjects(): readonly string[] {
    return [...this.#slots.keys()];
  }

  /** Gives back the free shares of these subjects; of all subjects by default. */
  giveUp(subjects: Iterable<string> = [...this.#minutes.keys(), ...this.#slots.keys()]): void {
    for (const subject of subjects) this.#giveUp(subject);
    this.#returns.flush();
  }

  /** Gives back one slot of each of these subjects, when the call that asked for them has ended. */
  giveBackSlots(slots: readonly string[]): void {
    for (const subject of slots) this.#returns.release(subject, 1);
    this.#returns.flush();
  }

  /** Gives everything back. Nothing is counted ahead from then on. */
  close(): void {
    this.#isClosed = true;
    this.#stopLooking?.();
    this.#stopLooking = undefined;
    this.giveUp();
  }

  #correct(subject: string, difference: number, slice: number): void {
    const share = this.#minutes.get(subject);
    const isCurrent = share !== undefined && this.#clock.now() < share.until;
    if (difference < 0) {
      if (isCurrent && share.slice === slice) share.free -= difference;
      else this.#returns.lower(subject, slice, -difference);
      return;
    }
    // Additional usage counts from now on.
    const own = isCurrent ? Math.min(share.free, difference) : 0;
    if (share !== undefined) share.free -= own;
    this.#returns.raise(subject, slice, difference - own);
  }

  #release(subject: string): void {
    const share = this.#slots.get(subject);
    if (share !== undefined && share.free < share.most) {
      share.free += 1;
      return;
    }
    this.#returns.release(subject, 1);
    // Another worker may wait for the slot.
    this.#returns.flush();
  }

  #giveUp(subject: string): void {
    const minute = this.#minutes.get(subject);
    if (minute !== undefined) this.#returns.lower(subject, minute.slice, minute.free);
    this.#minutes.delete(subject);
    const slots = this.#slots.get(subject);
    if (slots !== undefined) this.#returns.release(subject, slots.free);
    this.#slots.delete(subject);
  }

  /** Gives back expired and idle shares at an interval, as long as there are any. */
  #look(): void {
    this.#stopLooking ??= this.#clock.after(lookEvery, () => {
      this.#stopLooking = undefined;
      const now = this.#clock.now();
      for (const [subject, share] of this.#minutes) {
        if (now >= share.until && share.free > 0) {
          this.#returns.lower(subject, share.slice, share.free);
          share.free = 0;
        }
        if (now - share.until >= idle) this.#minutes.delete(subject);
      }
      for (const [subject, { usedAt }] of this.#slots) if (now - usedAt >= idle) this.#giveUp(subject);
      this.#returns.flush();
      if (this.#minutes.size + this.#slots.size > 0) this.#look();
    });
  }
}

/** Rules of a call, with the amounts to count ahead. */
export interface Wanted {
  /** Present where an amount is counted ahead. */
  readonly subject?: string;
  readonly rules: readonly RateRule[];
  readonly slots: readonly SlotRule[];
}
