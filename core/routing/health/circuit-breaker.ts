/** State of one circuit breaker: when it is open, when it admits a probe, and how long the provider asked to be left alone. */
import type { PlaceName, Standing } from '../../sdk/health.ts';
import type { SharedPlace, Trouble } from './sharing.ts';

/** Longest time between two probes that come before their time, and the share of a rest that it may be. */
const earlyGap = 1_000;
const earlyShare = 0.1;

/** Limit and random part of the time for which a breaker is open, in milliseconds. */
export interface RestTimes {
  readonly mostRest: number;
  /** 0 to 1. */
  readonly random: () => number;
}

/**
 * Breaker of one key of one channel, or of one model behind it. All times are milliseconds of one monotonic clock. No library is used,
 * because those wrap a promise for each call and know no keys, models or other gateways.
 */
export class CircuitBreaker<Who> {
  readonly name: PlaceName;
  /** Until when the provider asked for patience. */
  coolUntil = 0;
  /** Until when the place rests; it goes on resting until a probe has shown that it answers. */
  restUntil = 0;
  /** The first rest of the present series; each that follows is twice as long. */
  base = 0;
  /** Rests in a row; 0 while the place may be asked. */
  rests = 0;
  /** Who finds out whether it answers again. */
  probe: Who | undefined;
  /** Until when another gateway finds it out. */
  elsewhereUntil = 0;
  /** Until when it is this gateway's turn to find it out. */
  claimedUntil = 0;
  isClaiming = false;
  /** When somebody last wanted to go there while it rested. */
  wantedAt = Number.NEGATIVE_INFINITY;
  last: Trouble | undefined;
  /** When it was last tried in vain. */
  #triedAt = 0;
  #rest = 0;

  constructor(name: PlaceName) {
    this.name = name;
  }

  standing(now: number): Standing {
    if (this.rests > 0) return this.probe !== undefined || this.elsewhereUntil > now ? 'probing' : 'resting';
    return this.coolUntil > now ? 'cooling' : 'up';
  }

  /** True when a probe may go to a place that rests without haste. */
  isDue(now: number): boolean {
    return (
      this.restUntil <= now && this.coolUntil <= now && this.probe === undefined && this.elsewhereUntil <= now
    );
  }

  /** When it is worth coming back. */
  until(now: number): number {
    // How a probe ends nobody knows: who asks again in a second learns of it.
    const probing = this.probe !== undefined || this.elsewhereUntil > now ? now + earlyGap : 0;
    return Math.max(this.coolUntil, this.restUntil, probing);
  }

  /** True when a call may go there: as one of many, as the probe, or as a probe before its time. */
  admits(now: number): boolean {
    if (this.coolUntil > now || this.probe !== undefined || this.elsewhereUntil > now) return false;
    return this.restUntil <= now || now - this.#triedAt >= Math.min(earlyGap, this.#rest * earlyShare);
  }

  cool(until: number): void {
    if (until > this.coolUntil) this.coolUntil = until;
  }

  /** It rests from now on: the first time for about `base`, then twice as long each time, with some chance in it so that gateways part. */
  open(now: number, base: number, { mostRest, random }: RestTimes): void {
    this.base = base;
    this.rests += 1;
    const most = Math.max(mostRest, base);
    this.#rest = Math.min(most, base * 2 ** Math.min(this.rests - 1, 30) * (0.8 + 0.4 * random()));
    this.restUntil = now + this.#rest;
    this.#triedAt = now;
    this.probe = undefined;
    this.claimedUntil = 0;
  }

  /** The probe found it still broken. One that came before its time lengthens nothing. */
  reopen(now: number, base: number, times: RestTimes): void {
    this.probe = undefined;
    this.#triedAt = now;
    if (this.restUntil <= now || base > this.base) this.open(now, Math.max(base, this.base), times);
  }

  close(): void {
    this.rests = 0;
    this.restUntil = 0;
    this.probe = undefined;
    this.claimedUntil = 0;
    this.elsewhereUntil = 0;
  }

  /** Nothing is known any more. */
  forget(): void {
    this.close();
    this.coolUntil = 0;
    this.last = undefined;
  }

  /** As another gateway found it. */
  hear(now: number, heard: SharedPlace): void {
    this.elsewhereUntil = 0;
    if (heard.cool > 0) this.cool(now + heard.cool);
    if (heard.last !== undefined) this.last = heard.last;
    if (heard.rests === 0) {
      this.close();
      return;
    }
    this.rests = heard.rests;
    this.base = heard.base;
    this.#rest = Math.max(0, heard.rest);
    this.restUntil = now + this.#rest;
    this.#triedAt = now;
  }
}
