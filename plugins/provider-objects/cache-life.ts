/** Reads until when a cached content is kept. */
import { GatewayError, wrongValue, type JsonObject, type JsonValue } from 'sluice';

/** Returns the expiry of a content in Unix milliseconds; undefined if the request has none. Throws 400 for an invalid time. */
export function endIn(
  { ttl, expireTime, expire_time: snake = expireTime }: JsonObject,
  now: number,
): number | undefined {
  const seconds = typeof ttl === 'string' ? /^(\d{1,12}(?:\.\d{1,9})?)s$/.exec(ttl)?.[1] : undefined;
  if (isGiven(ttl) && seconds === undefined) throw wrongValue('ttl', 'a number of seconds, such as 3600s');
  const end = timeOf(snake);
  if (isGiven(snake) && end === undefined)
    throw wrongValue('expireTime', 'a time, such as 2026-01-01T00:00:00Z');
  if (isGiven(ttl) && isGiven(snake))
    throw new GatewayError('invalid_value', 'Give either ttl or expireTime.', { param: 'ttl' });
  if (seconds !== undefined) return now + Math.ceil(Number(seconds) * 1000);
  return end;
}

/** Returns a time of the provider in Unix milliseconds; undefined for what is no time. */
export function timeOf(text: JsonValue | undefined): number | undefined {
  const time = typeof text === 'string' ? Date.parse(text) : Number.NaN;
  return Number.isFinite(time) ? time : undefined;
}

function isGiven(value: JsonValue | undefined): boolean {
  return value !== undefined && value !== null;
}
