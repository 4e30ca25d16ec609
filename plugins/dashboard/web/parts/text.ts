/** Numbers, amounts and times as the page shows them. */
const whole = new Intl.NumberFormat('en');
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
});
const hours = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hour12: false });
const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hour12: false });
const minute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short', hour12: false });

/** `12,345`. */
export const count = (value: number): string => whole.format(value);

/** `12.3K`, for tiles and axes. */
export const brief = (value: number): string =>
  Math.abs(value) < 10_000 ? count(value) : short.format(value);

/** Micro-dollars as dollars, with as many digits as tell something; a dash when there is no price. */
export function money(microDollars: number | undefined): string {
  if (microDollars === undefined) return '–';
  const dollars = microDollars / 1e6;
  if (dollars === 0) return '$0';
  const size = Math.abs(dollars);
  if (size >= 10_000) return `$${short.format(dollars)}`;
  if (size >= 1)
    return `$${dollars.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  if (size < 0.000_001) return '<$0.000001';
  return `$${dollars.toLocaleString('en', { maximumSignificantDigits: 3, maximumFractionDigits: 6 })}`;
}

/** Milliseconds: `840 ms`, `3.2 s`, `4 min 10 s`. */
export function duration(ms: number | undefined): string {
  if (ms === undefined) return '–';
  if (ms < 10) return `${ms.toFixed(ms === 0 ? 0 : 1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** A share as a percentage; a dash when there is nothing to share. */
export function percent(part: number, all: number): string {
  if (all === 0) return '–';
  const value = (part / all) * 100;
  return `${value !== 0 && value < 10 ? value.toFixed(1) : Math.round(value)}%`;
}

/** Returns a time in short: the time of day for today, with the day otherwise. */
export function when(at: number): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? clock.format(date) : `${day.format(date)} ${clock.format(date)}`;
}

/** Returns a time with everything. */
export const exactly = (at: number): string => full.format(new Date(at));

/** A date and time of day, to the minute. */
export const toTheMinute = (at: number): string => minute.format(new Date(at));

/** Returns a time as a field for date and time has it. */
export const localTime = (at: number): string =>
  new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

/** Seconds since 1970 below a chart whose marks are so many seconds apart: the time of day, and the day where one begins. */
export function axisTime(time: number, step: number): string {
  const date = new Date(time * 1000);
  const isMidnight = date.getHours() === 0 && date.getMinutes() === 0;
  return step >= 86_400 || isMidnight ? day.format(date) : hours.format(date);
}

/** `3 minutes ago`, `never` when there is no such time. */
export function ago(at: number | undefined): string {
  if (at === undefined) return 'never';
  const seconds = Math.round((Date.now() - at) / 1000);
  if (seconds < 60) return 'just now';
  const steps = [
    [60, 'minute'],
    [3_600, 'hour'],
    [86_400, 'day'],
  ] as const;
  const [size, unit] = steps.findLast(([length]) => seconds >= length) ?? steps[0];
  const number = Math.floor(seconds / size);
  return `${number} ${unit}${number === 1 ? '' : 's'} ago`;
}
