import type { Breaker } from './breakers.ts';
import type { HealthSharing } from './sharing.ts';

/** How long a gateway may take to begin a probe that it has claimed, and how long the probe itself is protected, in milliseconds. */
const claimTime = 5_000;
const probeTime = 60_000;
/** How long it takes to learn whose turn it is. */
const claimWait = 50;
/** A place that nobody has wanted for so long is not claimed ahead of time. */
const wantedFor = 10_000;

/** Whose turn it is to find out whether a place answers again, where several gateways know each other. */
export class Claims {
  readonly #share: HealthSharing | undefined;
  readonly #now: () => number;

  constructor(share: HealthSharing | undefined, now: () => number) {
    this.#share = share;
    this.#now = now;
  }

  /** How long a call must wait, in milliseconds, for a place that a probe may go to now. */
  waitFor(place: Breaker, now: number): number {
    if (this.#share?.isUp !== true || place.claimedUntil > now) return 0;
    this.#claim(place, claimTime);
    return claimWait;
  }

  /** A probe goes there. */
  probed(place: Breaker): void {
    this.#claim(place, probeTime);
  }

  /** Others may have the turn. */
  release({ name }: Breaker): void {
    this.#share?.release(name);
  }

  /** Asks for a turn a little ahead of time, so that the first call behind a rest finds it settled. */
  claimAhead(resting: Iterable<Breaker>): void {
    const now = this.#now();
    for (const place of resting) {
      const isSoon = place.restUntil - now < 1_000 && place.coolUntil <= now;
      const isWanted = now - place.wantedAt < wantedFor && place.claimedUntil <= now;
      if (isSoon && isWanted && place.probe === undefined && place.elsewhereUntil <= now)
        this.#claim(place, claimTime);
    }
  }

  #claim(place: Breaker, lease: number): void {
    if (this.#share === undefined || place.isClaiming) return;
    place.isClaiming = true;
    void this.#share.claim(place.name, lease).then((wait) => {
      place.isClaiming = false;
      const now = this.#now();
      if (wait === 0) place.claimedUntil = now + lease;
      // A place that has answered meanwhile, or is probed here, is nobody else's.
      else if (wait !== undefined && place.rests > 0 && place.probe === undefined)
        place.elsewhereUntil = now + wait;
      // The probe began while its turn was asked for: it needs longer than that.
      if (wait === 0 && lease < probeTime && place.probe !== undefined) this.#claim(place, probeTime);
    });
  }
}
