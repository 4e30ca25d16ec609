/** Days of a named time zone. */
import { GatewayError } from 'sluice';
import { beginningOf, offsetsOf, type OffsetAt } from './zone-clock.ts';

const day = 86_400_000;

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
  const offsetAt = clockOf(zone);
  const days: ZoneDay[] = [];
  // As if the zone's clock were one of UTC.
  let local = Math.floor((since + offsetAt(since)) / day) * day;
  let start = beginningOf(local, offsetAt);
  while (start < until) {
    local += day;
    const end = beginningOf(local, offsetAt);
    days.push({ date: new Date(local - day).toISOString().slice(0, 10), since: start, until: end });
    start = end;
  }
  return days;
}

function clockOf(zone: string): OffsetAt {
  try {
    return offsetsOf(zone);
  } catch {
    throw new GatewayError('invalid_value', `There is no time zone ${zone.slice(0, 100)}.`, {
      param: 'zone',
    });
  }
}
