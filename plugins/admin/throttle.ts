import { GatewayError, type RateGrant, type Rates } from '#sluice';

/** Wrong passwords that are allowed in a window of so many milliseconds: from one address, and from all. */
const window = 60_000;
const mostPerAddress = 5;
const mostInTotal = 50;
/** Passwords that are checked at once: each costs memory and a core for a while. */
const mostAtOnce = 2;
/** Logins that wait for their turn. */
const mostWaiting = 8;

interface Tries {
  count: number;
  readonly until: number;
}

/** What all processes and gateways count together. */
const totalSubject = 'login';

/** Slows guessing down. Whoever logs in with the right password never counts. */
export class LoginThrottle {
  readonly #rates: Rates | undefined;
  readonly #byAddress = new Map<string, Tries>();
  #total: Tries = { count: 0, until: 0 };
  #checking = 0;
  /** Logins that are counted, wait or are checked. */
  #pending = 0;
  readonly #waiting: (() => void)[] = [];

  /** With rates whoever shares them counts together; while they cannot be asked this process counts for itself. */
  constructor(rates?: Rates) {
    this.#rates = rates;
  }

  /** Runs a check of a password and returns what it found. Rejects with 429 when there were too many wrong ones, before any work. */
  async check(address: string, verify: () => Promise<boolean>): Promise<boolean> {
    const now = performance.now();
    const source = networkOf(address);
    const known = this.#byAddress.get(source);
    const tries = known !== undefined && known.until > now ? known : { count: 0, until: now + window };
    if (this.#total.until <= now) this.#total = { count: 0, until: now + window };
    const total = this.#total;
    if (tries.count >= mostPerAddress) throw tooMany(tries.until - now);
    if (total.count >= mostInTotal) throw tooMany(total.until - now);
    if (this.#pending >= mostAtOnce + mostWaiting) throw tooMany(1000);
    // Counted beforehand: many at once must not slip through while the first is being checked.
    tries.count += 1;
    total.count += 1;
    this.#remember(source, tries, now);
    const takeBack = (): void => {
      tries.count -= 1;
      total.count -= 1;
    };
    this.#pending += 1;
    try {
      const subject = `${totalSubject}:${source}`;
      const grant = await this.#countForAll(subject, takeBack);
      const right = await this.#inTurn(verify);
      if (right) {
        takeBack();
        for (const counted of [subject, totalSubject]) grant?.correct(counted, -1);
      }
      return right;
    } finally {
      this.#pending -= 1;
    }
  }

  async #inTurn(verify: () => Promise<boolean>): Promise<boolean> {
    await this.#turn();
    try {
      return await verify();
    } finally {
      this.#checking -= 1;
      this.#waiting.shift()?.();
    }
  }

  /** Rejects with 429 when there were too many elsewhere. */
  async #countForAll(subject: string, takeBack: () => void): Promise<RateGrant | undefined> {
    const verdict = await this.#rates?.take([
      { subject, limit: mostPerAddress, cost: 1 },
      { subject: totalSubject, limit: mostInTotal, cost: 1 },
    ]);
    if (verdict?.allowed === false && verdict.degraded !== true) {
      takeBack();
      throw tooMany(verdict.retryMs);
    }
    return verdict?.grant;
  }

  #turn(): Promise<void> | undefined {
    if (this.#checking < mostAtOnce) {
      this.#checking += 1;
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        this.#checking += 1;
        resolve();
      });
    });
  }

  #remember(source: string, tries: Tries, now: number): void {
    if (this.#byAddress.get(source) === tries) return;
    for (const [other, { until }] of this.#byAddress) if (until <= now) this.#byAddress.delete(other);
    this.#byAddress.set(source, tries);
  }
}

/** Whoever has one IPv6 address has 2^64 of them. */
function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [head = '', tail] = address.replace(/%.*$/, '').split('::');
  const front = head.split(':').filter((group) => group !== '');
  const back = tail?.split(':').filter((group) => group !== '') ?? [];
  const zeros = Array<string>(Math.max(0, 8 - front.length - back.length)).fill('0');
  return [...front, ...zeros, ...back].slice(0, 4).join(':');
}

function tooMany(wait: number): GatewayError {
  const seconds = Math.max(1, Math.ceil(wait / 1000));
  return new GatewayError(
    'rate_limit_exceeded',
    `Too many logins have failed. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
    { retryAfter: seconds },
  );
}
