/**
 * Slows down the guessing of credentials: counts failed authentications by client address, computes growing delays, and delays the responses to
 * refused requests.
 */
import type { Call } from 'sluice';

/** Addresses that are remembered; the one that failed first goes first. */
const mostAddresses = 10_000;

/** Counts of recent failures by client address. */
export interface Failures {
  /** Failures that are remembered of the address. */
  of(address: string): number;
  /** Counts one more failure, and returns the number of failures of the address. */
  count(address: string): number;
  /** Removes the failures of an address that has authenticated. */
  forget(address: string): void;
}

interface Counted {
  failures: number;
  readonly since: number;
}

/** Counts failures by address, in this process only. The count of an address starts again at 0 `milliseconds` after its first failure. */
export function countFailures(milliseconds: number, clock: () => number = () => performance.now()): Failures {
  const counted = new Map<string, Counted>();
  const current = (name: string): Counted | undefined => {
    const one = counted.get(name);
    return one !== undefined && clock() - one.since < milliseconds ? one : undefined;
  };
  return {
    of: (address) => current(networkOf(address))?.failures ?? 0,
    count(address) {
      const name = networkOf(address);
      const one = current(name);
      if (one !== undefined) return (one.failures += 1);
      // Deleted first, so that the map stays in the order of first failures also where a known address starts again.
      counted.delete(name);
      const [oldest] = counted.keys();
      if (counted.size >= mostAddresses && oldest !== undefined) counted.delete(oldest);
      counted.set(name, { failures: 1, since: clock() });
      return 1;
    },
    forget: (address) => void counted.delete(networkOf(address)),
  };
}

/** Returns the network by which an address is counted: the address itself, or its /64 for IPv6, because one client usually has a whole /64. */
export function networkOf(address: string): string {
  if (!address.includes(':') || address.includes('.')) return address;
  const [front = '', back] = address.replace(/%.*$/, '').split('::');
  const groups = front === '' ? [] : front.split(':');
  if (back !== undefined) {
    const rest = back === '' ? [] : back.split(':');
    while (groups.length + rest.length < 8) groups.push('0');
    for (const group of rest) groups.push(group);
  }
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/** Returns a delay in milliseconds that doubles with each failure, from `first` up to `longest`. 0 without failures. */
export function growingDelay(failures: number, first: number, longest: number): number {
  return failures <= 0 ? 0 : Math.min(longest, first * 2 ** Math.min(failures - 1, 30));
}

/** Maximum numbers of responses that are delayed at the same time: for one network, and for all. Further ones are sent without delay. */
const mostHeldOfOne = 8;
const mostHeld = 64;
/** Milliseconds between two checks of which delayed responses are due. */
const lookEvery = 25;

/** Load of the process. */
interface Load {
  /** Number of calls that wait for room. */
  readonly waiting: number;
}

interface Held {
  readonly network: string;
  readonly due: number;
  readonly answer: () => void;
}

/**
 * Delays responses to refused calls. Few at a time, and none while other calls wait for capacity, because refused calls must not slow down others.
 */
export class HeldAnswers {
  readonly #load: Load;
  readonly #held = new Set<Held>();
  #timer: NodeJS.Timeout | undefined;

  constructor(load: Load) {
    this.#load = load;
  }

  /** Resolves after `milliseconds`, when the call has ended, or at once where too many responses are delayed already. */
  hold(call: Call, milliseconds: number): Promise<void> {
    const network = networkOf(call.wire.ip);
    if (milliseconds <= 0 || !this.#hasRoomFor(network)) return Promise.resolve();
    return new Promise((resolve) => {
      const answer = (): void => {
        this.#held.delete(held);
        resolve();
      };
      const held: Held = { network, due: performance.now() + milliseconds, answer };
      this.#held.add(held);
      call.onEnd(answer);
      this.#timer ??= setInterval(() => this.#look(), lookEvery).unref();
    });
  }

  /** Ends all delays. */
  close(): void {
    for (const { answer } of this.#held) answer();
    this.#look();
  }

  #hasRoomFor(network: string): boolean {
    if (this.#held.size >= mostHeld || this.#load.waiting > 0) return false;
    let same = 0;
    for (const held of this.#held) if (held.network === network) same += 1;
    return same < mostHeldOfOne;
  }

  #look(): void {
    const now = performance.now();
    const crowded = this.#load.waiting > 0;
    for (const { due, answer } of this.#held) if (crowded || due <= now) answer();
    if (this.#held.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
