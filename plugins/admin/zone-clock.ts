/** Clocks of named time zones, for the admin API and for the page of the dashboard: this file imports nothing. */

const minute = 60_000;
const day = 86_400_000;

/** Returns how far the clocks of one zone are ahead of UTC at a time, in milliseconds. */
export type OffsetAt = (at: number) => number;

/** Returns a function that returns the offsets of a time zone. Throws for an unknown zone. */
export function offsetsOf(zone: string): OffsetAt {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  });
  return (at) => {
    const whole = Math.floor(at / minute) * minute;
    const parts = new Map(format.formatToParts(whole).map(({ type, value }) => [type, Number(value)]));
    const of = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
    return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute')) - whole;
  };
}

/**
 * Returns when a day begins, from its midnight as if the zone's clock were one of UTC. Where clocks go forward at midnight it begins an hour
 * later on them.
 */
export function beginningOf(local: number, offsetAt: OffsetAt): number {
  const before = local - offsetAt(local - day / 2);
  const after = local - offsetAt(local + day / 2);
  const isReached = (at: number): boolean => at + offsetAt(at) >= local;
  const [earlier, later] = [Math.min(before, after), Math.max(before, after)];
  return isReached(earlier) ? earlier : later;
}
