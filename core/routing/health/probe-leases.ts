import type { Breaker } from './breakers.ts';
import type { HealthSharing } from './sharing.ts';

/** Lease in milliseconds within which a gateway must begin its probe, and lease of the probe itself. */
const leaseTime = 5_000;
const probeTime = 60_000;
/** Time in milliseconds that a call waits for the response to a request for a lease. */
const leaseWait = 50;
/** Time in milliseconds since the last call for a breaker after which no lease is acquired ahead. */
const wantedFor = 10_000;

/** Leases that give one of several gateways the right to send a probe through an open breaker. */
export class ProbeLeases {
  readonly #share: HealthSharing | undefined;
  readonly #now: () => number;

  constructor(share: HealthSharing | undefined, now: () => number) {
    this.#share = share;
    this.#now = now;
  }

  /** Returns the milliseconds that a call must wait before it may probe the breaker. Requests the lease where this gateway does not hold it. */
  waitFor(breaker: Breaker, now: number): number {
    if (this.#share?.isUp !== true || breaker.leasedUntil > now) return 0;
    this.#acquire(breaker, leaseTime);
    return leaseWait;
  }

  /** Extends the lease for a probe that has begun. */
  extend(breaker: Breaker): void {
    this.#acquire(breaker, probeTime);
  }

  /** Releases the lease. */
  release({ name }: Breaker): void {
    this.#share?.release(name);
  }

  /** Requests leases shortly before cooldowns end, so that the first call after a cooldown need not wait. */
  acquireAhead(resting: Iterable<Breaker>): void {
    const now = this.#now();
    for (const breaker of resting) {
      const isSoon = breaker.restUntil - now < 1_000 && breaker.coolUntil <= now;
      const isWanted = now - breaker.wantedAt < wantedFor && breaker.leasedUntil <= now;
      if (isSoon && isWanted && breaker.probe === undefined && breaker.elsewhereUntil <= now)
        this.#acquire(breaker, leaseTime);
    }
  }

  #acquire(breaker: Breaker, lease: number): void {
    if (this.#share === undefined || breaker.isAcquiring) return;
    breaker.isAcquiring = true;
    void this.#share.acquire(breaker.name, lease).then((wait) => {
      breaker.isAcquiring = false;
      const now = this.#now();
      if (wait === 0) breaker.leasedUntil = now + lease;
      // A breaker that has closed meanwhile, or is probed by this gateway, does not wait for another gateway.
      else if (wait !== undefined && breaker.rests > 0 && breaker.probe === undefined)
        breaker.elsewhereUntil = now + wait;
      // The probe began while its lease was requested: it needs the longer lease.
      if (wait === 0 && lease < probeTime && breaker.probe !== undefined) this.#acquire(breaker, probeTime);
    });
  }
}
