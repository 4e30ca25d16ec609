/** Days of a named time zone. */
import { beginningOf, offsetsOf } from '../../../admin/zone-clock.ts';

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

/** Returns the date in a zone at a time: `2026-03-29`. */
export function dateIn(zone: string, at: number): string {
  return new Date(at + offsetsOf(zone)(at)).toISOString().slice(0, 10);
}

/** Returns a time that reads in the browser's zone as another reads in a zone: for axes, which know the browser's alone. */
export function asWallClock(zone: string, at: number): number {
  return new Date(new Date(at + offsetsOf(zone)(at)).toISOString().slice(0, 19)).getTime();
}

/** Returns a time to the minute, as clocks of a zone show it. */
export function clockIn(zone: string, at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short', timeZone: zone });
}

/** Returns when a date begins in a zone, some days later if wanted; undefined for what is no date. */
export function startOf(zone: string, date: string, later = 0): number | undefined {
  const start = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(start)) return undefined;
  return beginningOf(start + later * 86_400_000, offsetsOf(zone));
}
