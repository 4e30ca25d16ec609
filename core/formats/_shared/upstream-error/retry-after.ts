/** Reads from a provider's headers and error body how many seconds to wait before a retry. */
import type { ErrorShape } from './shape.ts';

/** Headers of an upstream's answer. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Seconds, also parts of one, from `retry-after-ms`, `retry-after` (seconds or an HTTP date), the body's `RetryInfo`, or the headers that
 * state when an exhausted limit resets.
 */
export function retryAfterOf(headers: Headers, shape: ErrorShape): number | undefined {
  const milliseconds = Number(header(headers, 'retry-after-ms') ?? Number.NaN);
  if (Number.isFinite(milliseconds) && milliseconds >= 0) return bounded(milliseconds / 1000);
  const after = header(headers, 'retry-after');
  if (after !== undefined) {
    const count = Number(after);
    if (Number.isFinite(count) && count >= 0) return bounded(count);
    const date = Date.parse(after);
    // A date is no finer than a second, and the clocks need not agree.
    if (!Number.isNaN(date)) return bounded(Math.max(1, (date - Date.now()) / 1000));
  }
  const delay = shape.retryDelay ?? resetOf(headers);
  return delay === undefined ? undefined : bounded(delay);
}

/** Seconds until all limits are free that have nothing remaining: `…ratelimit…remaining…` with its `…reset…`. */
function resetOf(headers: Headers): number | undefined {
  const waits = Object.keys(headers)
    .filter((name) => /ratelimit.*remaining/.test(name) && header(headers, name) === '0')
    .map((name) => secondsUntil(header(headers, name.replace('remaining', 'reset')) ?? ''))
    .filter((wait) => wait !== undefined);
  return waits.length === 0 ? undefined : waits.reduce((most, wait) => Math.max(most, wait));
}

const units: Readonly<Record<string, number>> = { d: 86_400, h: 3600, m: 60, s: 1, ms: 0.001 };

/** Parses a time in the forms that providers send: `6m0s`, `20ms`, seconds, seconds or milliseconds since 1970, or an RFC 3339 date. */
function secondsUntil(value: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(value)) {
    const count = Number(value);
    if (count < 1e9) return count;
    return (count < 1e11 ? count * 1000 : count) / 1000 - Date.now() / 1000;
  }
  if (/^(\d+(\.\d+)?(d|h|ms|m|s))+$/.test(value)) {
    const parts = value.matchAll(/([\d.]+)(d|h|ms|m|s)/g);
    return [...parts].reduce((sum, [, count, unit = '']) => sum + Number(count) * (units[unit] ?? 0), 0);
  }
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : (date - Date.now()) / 1000;
}

/** Limits a delay to 0.02 seconds to one day. */
function bounded(seconds: number): number {
  return Math.min(Math.max(0.02, seconds), 86_400);
}

/** Returns the value of a header; undefined for one that is not there, or empty. */
export function header(headers: Headers, name: string): string | undefined {
  const value = headers[name];
  const text = typeof value === 'string' ? value : value?.[0];
  return text === undefined || text.trim() === '' ? undefined : text.trim();
}
