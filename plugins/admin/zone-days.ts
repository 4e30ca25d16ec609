/** Days of a named time zone. */
import { GatewayError } from 'sluice';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** A day of a zone. Times are in milliseconds since 1970; `until` is exclusive. */
export interface ZoneDay {
  /** Such as `2026-03-29`. */
  readonly date: string;
  readonly since: number;
  readonly until: number;
}

/** Maximum number of days in one answer. */
const mostDays = 400;

/**
 * Returns the days of a zone that a time touches, in order. Throws GatewayError `invalid_value` for a zone that does not exist, and for more than
 * 400 days.
 */
export function daysOf(zone: string, since: number, until: number): readonly ZoneDay[] {
  if ((until - since) / day > mostDays)
    throw new GatewayError('invalid_value', `since is too early: more than ${mostDays} days.`, {
      param: 'since',
    });
  const offsetAt = offsetsOf(zone);
  const days: ZoneDay[] = [];
  // As if the zone's clock were one of UTC.
  let local = Math.floor((since + offsetAt(since)) / day) * day;
  let start = midnight(local, offsetAt);
  while (start < until) {
    local += day;
    const end = midnight(local, offsetAt);
    days.push({ date: new Date(local - day).toISOString().slice(0, 10), since: start, until: end });
    start = end;
  }
  return days;
}

/** When a day begins. Where clocks go forward at midnight it begins an hour later on them. */
function midnight(local: number, offsetAt: (at: number) => number): number {
  const before = local - offsetAt(local - day / 2);
  const after = local - offsetAt(local + day / 2);
  const isReached = (at: number): boolean => at + offsetAt(at) >= local;
  const [earlier, later] = [Math.min(before, after), Math.max(before, after)];
  return isReached(earlier) ? earlier : later;
}

/** Returns how far the clocks of a zone are ahead of UTC at a time, in milliseconds. */
function offsetsOf(zone: string): (at: number) => number {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
    });
  } catch {
    throw new GatewayError('invalid_value', `There is no time zone ${zone.slice(0, 100)}.`, {
      param: 'zone',
    });
  }
  return (at) => {
    const whole = Math.floor(at / minute) * minute;
    const parts = new Map(format.formatToParts(whole).map(({ type, value }) => [type, Number(value)]));
    const of = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
    return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute')) - whole;
  };
}
