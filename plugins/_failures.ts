import type { Call } from 'sluice';

/** Addresses that are remembered; the one that failed first goes first. */
const mostAddresses = 10_000;

/** How often callers from one address failed lately. */
export interface Failures {
  /** Failures that are remembered of the address. */
  of(address: string): number;
  /** Counts one more, and gives how many there are now. */
  count(address: string): number;
  /** The address did well: what it did before is forgotten. */
  forget(address: string): void;
}

interface Counted {
  failures: number;
  readonly since: number;
}

/** Counts failures by address in this process alone; an address begins anew so many milliseconds after its first. */
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
      // Taken out first: the oldest stands first, also where a known address begins anew.
      counted.delete(name);
      const [oldest] = counted.keys();
      if (counted.size >= mostAddresses && oldest !== undefined) counted.delete(oldest);
      counted.set(name, { failures: 1, since: clock() });
      return 1;
    },
    forget: (address) => void counted.delete(networkOf(address)),
  };
}

/** What an address counts as: itself, or its /64 for one of IPv6, as whoever has one address there has all of them. */
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

/** A delay that doubles with each failure beyond those that are free, up to the longest; in milliseconds. */
export function growingDelay(failures: number, first: number, longest: number): number {
  return failures <= 0 ? 0 : Math.min(longest, first * 2 ** Math.min(failures - 1, 30));
}

/** Refusals that are held back at once: of one address, and of all. Beyond, they are answered without delay. */
const mostHeldOfOne = 8;
const mostHeld = 64;
/** How often is looked which of them are due, in milliseconds. */
const lookEvery = 25;

/** How much the process has to do. */
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
 * Holds the answers to refused calls back for a while. Few at a time, and none while other calls wait for room: what is refused must not
 * cost those anything who are let in.
 */
export class HeldAnswers {
  readonly #load: Load;
  readonly #held = new Set<Held>();
  #timer: NodeJS.Timeout | undefined;

  constructor(load: Load) {
    this.#load = load;
  }

  /** Resolves after so many milliseconds, when the call has ended, or at once where there is no room to wait. */
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

  /** All that are held back are answered. */
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
