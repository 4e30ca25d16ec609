/** Addresses that are remembered; the one that failed first goes first. */
const mostAddresses = 10_000;

/** How often callers from one address failed within a minute. */
export interface Failures {
  /** Milliseconds until the address may fail again; 0 when it may now. */
  wait(address: string): number;
  /** Counts a failure. */
  count(address: string): void;
}

interface Counted {
  failures: number;
  readonly since: number;
}

/** Counts failures by address, `most` of them a minute, in this process alone. */
export function countFailures(most: number, clock: () => number = () => performance.now()): Failures {
  const counted = new Map<string, Counted>();
  const current = (address: string): Counted | undefined => {
    const one = counted.get(address);
    return one !== undefined && clock() - one.since < 60_000 ? one : undefined;
  };
  return {
    wait(address) {
      const one = current(networkOf(address));
      return one === undefined || one.failures < most ? 0 : one.since + 60_000 - clock();
    },
    count(address) {
      const name = networkOf(address);
      const one = current(name);
      if (one !== undefined) {
        one.failures += 1;
        return;
      }
      // Taken out first: the oldest stands first, also where a known address begins anew.
      counted.delete(name);
      const [oldest] = counted.keys();
      if (counted.size >= mostAddresses && oldest !== undefined) counted.delete(oldest);
      counted.set(name, { failures: 1, since: clock() });
    },
  };
}

/** What an address counts as: itself, or its /64 for one of IPv6, as whoever has one address there has all of them. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const [front = '', back] = address.split('::');
  const groups = front === '' ? [] : front.split(':');
  if (back !== undefined) {
    const rest = back === '' ? 0 : back.split(':').length;
    while (groups.length + rest < 8) groups.push('0');
  }
  return `${groups.slice(0, 4).join(':')}::/64`;
}
