/** Days of a named time zone. */

/** The time zone of the browser. */
export const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Names of the time zones that the browser knows. */
export const zones: readonly string[] = ['UTC', ...Intl.supportedValuesOf('timeZone')];

/** Returns true for a time zone that exists. */
export function isZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '' && name !== '';
  } catch {
    return false;
  }
}

/** Returns how far the clocks of a zone are ahead of UTC at a time, in milliseconds. */
function offsetAt(zone: string, at: number): number {
  const parts = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  }).formatToParts(at);
  const of = (type: string): number => Number(parts.find((part) => part.type === type)?.value ?? 0);
  const minute = 60_000;
  const local = Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'));
  return local - Math.floor(at / minute) * minute;
}

/** Returns the date in a zone at a time: `2026-03-29`. */
export function dateIn(zone: string, at: number): string {
  return new Date(at + offsetAt(zone, at)).toISOString().slice(0, 10);
}

/** Returns a time that reads in the browser's zone as another reads in a zone: for axes, which know the browser's alone. */
export function asWallClock(zone: string, at: number): number {
  return new Date(new Date(at + offsetAt(zone, at)).toISOString().slice(0, 19)).getTime();
}

/** Returns a time to the minute, as clocks of a zone show it. */
export function clockIn(zone: string, at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short', timeZone: zone });
}

/** Returns when a date begins in a zone, some days later if wanted; undefined for what is no date. */
export function startOf(zone: string, date: string, later = 0): number | undefined {
  const start = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(start)) return undefined;
  const local = start + later * 86_400_000;
  // The offset may be another at the beginning of the day than at the same time in UTC.
  return local - offsetAt(zone, local - offsetAt(zone, local));
}
