/** Days, weeks and months of time zones, with their changes of daylight-saving time. */

/** Milliseconds of a day of UTC. */
const dayLength = 86_400_000;

/** Maximum number of time zones that are held; there are about 600 names. */
const maxZones = 1_000;

/** A span of time: milliseconds since 1970, the end excluded. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Returns the local day of a moment: the number of days from 1970-01-01 to its date. */
type DayNumber = (at: number) => number;

interface Zone {
  readonly dayNumber: DayNumber;
  /** Last requested day. */
  day: Span & { readonly number: number };
}

const zones = new Map<string, Zone>();

/** Names that were found to be time zones. Each key and owner that is read with one is checked. */
const knownNames = new Set<string>();

/** Returns true for the name of an IANA time zone, not for offsets such as `+02:00`. */
export function isTimeZone(name: string): boolean {
  if (knownNames.has(name)) return true;
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/.test(name)) return false;
  try {
    if (new Intl.DateTimeFormat('en', { timeZone: name }).format(0) === '') return false;
  } catch {
    return false;
  }
  if (knownNames.size >= maxZones) knownNames.clear();
  knownNames.add(name);
  return true;
}

/** Returns the local day of a moment, which has 23 to 25 hours. Caches the last requested day of each zone. */
export function dayOf(timeZone: string, at: number): Span {
  const zone = zoneOf(timeZone);
  if (at < zone.day.start || at >= zone.day.end) {
    const number = zone.dayNumber(at);
    zone.day = { number, start: startOf(zone.dayNumber, number), end: startOf(zone.dayNumber, number + 1) };
  }
  return zone.day;
}

const weeks = new Map<string, Span>();
const months = new Map<string, Span>();

/** Returns the local week, from Monday to Sunday, that holds a moment. */
export function weekOf(timeZone: string, at: number): Span {
  return remembered(weeks, timeZone, at, (number) => {
    // 1970-01-01 was a Thursday.
    const monday = number - ((((number + 3) % 7) + 7) % 7);
    return [monday, monday + 7];
  });
}

/** Returns the local month that holds a moment. */
export function monthOf(timeZone: string, at: number): Span {
  return remembered(months, timeZone, at, (number) => {
    const date = new Date(number * dayLength);
    const firstOf = (month: number): number => Date.UTC(date.getUTCFullYear(), month) / dayLength;
    return [firstOf(date.getUTCMonth()), firstOf(date.getUTCMonth() + 1)];
  });
}

function remembered(
  known: Map<string, Span>,
  timeZone: string,
  at: number,
  daysOf: (dayNumber: number) => readonly [number, number],
): Span {
  const span = known.get(timeZone);
  if (span !== undefined && at >= span.start && at < span.end) return span;
  const { dayNumber } = zoneOf(timeZone);
  const [first, next] = daysOf(dayNumber(at));
  const found = { start: startOf(dayNumber, first), end: startOf(dayNumber, next) };
  if (known.size >= maxZones) known.clear();
  known.set(timeZone, found);
  return found;
}

function zoneOf(timeZone: string): Zone {
  const known = zones.get(timeZone);
  if (known !== undefined) return known;
  if (zones.size >= maxZones) zones.clear();
  const zone: Zone = { dayNumber: dayNumbers(timeZone), day: { number: 0, start: 0, end: 0 } };
  zones.set(timeZone, zone);
  return zone;
}

function dayNumbers(timeZone: string): DayNumber {
  if (timeZone === 'UTC') return (at) => Math.floor(at / dayLength);
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
  });
  return (at) => {
    const parts: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(at)) parts[type] = Number(value);
    const { year = 1970, month = 1, day = 1 } = parts;
    return Date.UTC(year, month - 1, day) / dayLength;
  };
}

/** Returns the first moment of a local day, to the second: a search between the earliest and the latest that any zone may have. */
function startOf(dayNumber: DayNumber, number: number): number {
  const second = 1_000;
  let before = (number * dayLength - 16 * 3_600_000) / second;
  let found = (number * dayLength + 16 * 3_600_000) / second;
  while (found - before > 1) {
    const middle = Math.floor((before + found) / 2);
    if (dayNumber(middle * second) >= number) found = middle;
    else before = middle;
  }
  return found * second;
}
