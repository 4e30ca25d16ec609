import { setTimeout as pass } from 'node:timers/promises';
import { GatewayError, type RateGrant } from 'sluice';
import type { Rates } from './core-types.ts';
import { countFailures, growingDelay, networkOf } from '../_failures.ts';

/** Wrong passwords of one address that cost no time, and how long all of them are remembered, in milliseconds. */
const free = 5;
const rememberedFor = 15 * 60_000;
/** First and maximum delay of a login after wrong passwords from the same address, in milliseconds. */
const delays = { first: 1_000, longest: 30_000 };
/** Passwords that are checked at once: each costs memory and a core for a while. */
const mostAtOnce = 2;
/** Logins that are held back or wait for their turn: of one address, and of all. */
const mostOfOne = 4;
const mostWaiting = 128;

/** A login that is held back or waits for its turn. */
interface Waiting {
  readonly network: string;
  /** Number of failures of its address when the login arrived. */
  readonly failures: number;
  /** Set once it waits for its turn. */
  begin: (() => void) | undefined;
  /** Ends its waiting with 429. */
  readonly refuse: () => void;
}

/** The turn of a login, whose password may be checked. */
interface Admission {
  readonly grant: RateGrant | undefined;
  readonly login: Waiting;
}

/**
 * Slows guessing down. An address whose passwords were wrong waits before the next is checked, longer each time; nobody else does. Where
 * many try at once, those come first whose address has failed least, and those are refused for whom there is no room to wait that have
 * failed most. So whoever guesses, and from wherever, cannot keep others from logging in.
 */
export class LoginThrottle {
  readonly #rates: Rates | undefined;
  readonly #pause: (milliseconds: number) => Promise<unknown>;
  readonly #failures = countFailures(rememberedFor);
  readonly #waiting = new Set<Waiting>();
  /** Logins whose password is being checked. */
  readonly #checking = new Set<Waiting>();

  /** With `rates`, all processes that share them count together. While they are unavailable, this process counts on its own. */
  constructor(
    rates?: Rates,
    pause = (milliseconds: number): Promise<unknown> => pass(milliseconds, undefined, { ref: false }),
  ) {
    this.#rates = rates;
    this.#pause = pause;
  }

  /**
   * Runs a check of a password and returns what it found. One that is `half` done was right so far: it costs nothing, and what failed before
   * is not forgotten. Rejects with 429, before any work, when there is no room to wait for it.
   */
  async check<Found extends boolean | 'half'>(address: string, verify: () => Promise<Found>): Promise<Found> {
    const network = networkOf(address);
    const waiting = countOf(network, this.#waiting);
    // Logins that wait or are being checked are likely to fail too: many at once must not slip through before the first was checked.
    const failures = this.#failures.of(address) + waiting + countOf(network, this.#checking);
    const delay = growingDelay(failures - free + 1, delays.first, delays.longest);
    if (waiting >= mostOfOne) throw tooMany(delay);
    const { grant, login } = await this.#admit(network, failures, delay);
    try {
      const found = await verify();
      if (found === false) this.#failures.count(address);
      else grant?.correct(subjectOf(network), -1);
      if (found === true) this.#failures.forget(address);
      return found;
    } finally {
      this.#checking.delete(login);
      this.#beginNext();
    }
  }

  /** Resolves when the password may be checked, with the login and with what was counted of it for all. */
  #admit(network: string, failures: number, delay: number): Promise<Admission> {
    return new Promise((resolve, reject) => {
      const refuse = (): void => {
        this.#waiting.delete(login);
        reject(tooMany(delay));
      };
      const login: Waiting = { network, failures, begin: undefined, refuse };
      this.#waiting.add(login);
      if (this.#waiting.size > mostWaiting) this.#hopeless().refuse();
      void this.#heldBack(network, delay).then((grant) => {
        login.begin = () => resolve({ grant, login });
        this.#beginNext();
      });
    });
  }

  async #heldBack(network: string, delay: number): Promise<RateGrant | undefined> {
    const verdict = await this.#rates?.take([{ subject: subjectOf(network), limit: free, cost: 1 }]);
    const elsewhere = verdict?.allowed === false && verdict.degraded !== true;
    const milliseconds = Math.max(delay, elsewhere ? delays.first : 0);
    if (milliseconds > 0) await this.#pause(milliseconds);
    return verdict?.grant;
  }

  /** Returns the latest login among those with the most failures. */
  #hopeless(): Waiting {
    return [...this.#waiting].reduce((most, other) => (other.failures >= most.failures ? other : most));
  }

  #beginNext(): void {
    while (this.#checking.size < mostAtOnce) {
      let next: Waiting | undefined;
      for (const login of this.#waiting)
        if (login.begin !== undefined && (next === undefined || login.failures < next.failures)) next = login;
      if (next === undefined) return;
      this.#waiting.delete(next);
      this.#checking.add(next);
      next.begin?.();
    }
  }
}

function countOf(network: string, logins: Iterable<Waiting>): number {
  let count = 0;
  for (const login of logins) if (login.network === network) count += 1;
  return count;
}

function subjectOf(network: string): string {
  return `login:${network}`;
}

function tooMany(wait: number): GatewayError {
  const seconds = Math.max(1, Math.ceil(wait / 1000));
  return new GatewayError(
    'rate_limit_exceeded',
    `Too many logins have failed. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
    { retryAfter: seconds },
  );
}
