/** State of one circuit breaker: when it is open, when it admits a probe, and its cooldown after a rate limit. */
import type { KeyOrModel, Standing } from '../../sdk/health.ts';
import type { SharedBreaker, Trouble } from './sharing.ts';

/** Interval between two early probes: at most so many milliseconds, and at most this share of the time for which the breaker is open. */
const earlyGap = 1_000;
const earlyShare = 0.1;

/** Limit and random part of the time for which a breaker is open, in milliseconds. */
export interface RestTimes {
  readonly mostRest: number;
  /** Random part, from 0 to 1. */
  readonly random: () => number;
}

/**
 * Breaker of one key of one channel, or of one model behind it. All times are milliseconds of one monotonic clock. No library is used,
 * because libraries for policies wrap a promise around each call and know no keys, models or other gateways.
 */
export class CircuitBreaker<Who> {
  readonly name: KeyOrModel;
  /** End of the cooldown that the provider requested after a rate limit. */
  coolUntil = 0;
  /** Time until which no probe is due. The breaker stays open until a probe succeeds. */
  restUntil = 0;
  /** Duration of the first opening in the present series. Each further one is twice as long. */
  base = 0;
  /** Number of consecutive openings; 0 while the breaker is closed. */
  rests = 0;
  /** Running probe. */
  probe: Who | undefined;
  /** Time until which another gateway probes. */
  elsewhereUntil = 0;
  /** Time until which this gateway has the right to probe. */
  leasedUntil = 0;
  isAcquiring = false;
  /** Time of the last call that looked for a target here while the breaker was open. */
  wantedAt = Number.NEGATIVE_INFINITY;
  last: Trouble | undefined;
  /** Time of the last failure that opened the breaker or ended a probe, here or at another gateway. */
  #triedAt = 0;
  #rest = 0;

  constructor(name: KeyOrModel) {
    this.name = name;
  }

  standing(now: number): Standing {
    if (this.rests > 0) return this.probe !== undefined || this.elsewhereUntil > now ? 'probing' : 'resting';
    return this.coolUntil > now ? 'cooling' : 'up';
  }

  /** Returns true when a probe is due. */
  isDue(now: number): boolean {
    return (
      this.restUntil <= now && this.coolUntil <= now && this.probe === undefined && this.elsewhereUntil <= now
    );
  }

  /** Returns the time at which another look is worthwhile. */
  until(now: number): number {
    // The end of a running probe is unknown, so a call looks again after a second.
    const probing = this.probe !== undefined || this.elsewhereUntil > now ? now + earlyGap : 0;
    return Math.max(this.coolUntil, this.restUntil, probing);
  }

  /** Returns true when a call is admitted: because the breaker is closed, as the probe, or as an early probe. */
  admits(now: number): boolean {
    if (this.coolUntil > now || this.probe !== undefined || this.elsewhereUntil > now) return false;
    return this.restUntil <= now || now - this.#triedAt >= Math.min(earlyGap, this.#rest * earlyShare);
  }

  cool(until: number): void {
    if (until > this.coolUntil) this.coolUntil = until;
  }

  /**
   * Opens the breaker: the first time for about `base` milliseconds, then twice as long each time, with jitter so that gateways do not
   * probe together.
   */
  open(now: number, base: number, { mostRest, random }: RestTimes): void {
    this.base = base;
    this.rests += 1;
    const most = Math.max(mostRest, base);
    this.#rest = Math.min(most, base * 2 ** Math.min(this.rests - 1, 30) * (0.8 + 0.4 * random()));
    this.restUntil = now + this.#rest;
    this.#triedAt = now;
    this.probe = undefined;
    this.leasedUntil = 0;
  }

  /** Ends a probe that failed. Only one that was due opens the breaker for longer, or one that failed for a reason with a longer `base`. */
  reopen(now: number, base: number, times: RestTimes): void {
    this.probe = undefined;
    this.#triedAt = now;
    if (this.restUntil <= now || base > this.base) this.open(now, Math.max(base, this.base), times);
  }

  close(): void {
    this.rests = 0;
    this.restUntil = 0;
    this.probe = undefined;
    this.leasedUntil = 0;
    this.elsewhereUntil = 0;
  }

  /** Resets the breaker. */
  forget(): void {
    this.close();
    this.coolUntil = 0;
    this.last = undefined;
  }

  /** Takes over the state that another gateway reports. */
  adopt(now: number, shared: SharedBreaker): void {
    this.elsewhereUntil = 0;
    if (shared.cool > 0) this.cool(now + shared.cool);
    if (shared.last !== undefined) this.last = shared.last;
    if (shared.rests === 0) {
      this.close();
      return;
    }
    this.rests = shared.rests;
    this.base = shared.base;
    this.#rest = Math.max(0, shared.rest);
    this.restUntil = now + this.#rest;
    this.#triedAt = now;
  }
}
