/** Schemas of values that many admin endpoints share: counts, times, numbers and texts in queries, empty bodies. */
import { z } from 'zod';

/** A non-negative integer. */
export const count = z.int().min(0);

/** Time of an event. */
export const time = z.int().min(0).describe('milliseconds since 1970');

/** Durations of calls. */
export const percentiles = z
  .tuple([z.number(), z.number(), z.number()])
  .describe('milliseconds at the 50th, 95th and 99th percentile');

/** An object with any members. */
export const jsonObject = z.record(z.string(), z.unknown());

/** A non-negative integer in a query. */
export const number = z.coerce
  .number<string>('must be a number')
  .int('must be a whole number')
  .min(0, 'must not be negative');

/** End of the year 9999 in milliseconds since 1970. Below the limit of JavaScript dates, because the days around it must be valid too. */
const lastMoment = 253_402_300_799_999;

/** A time in a query, in milliseconds since 1970. */
export const moment = number.max(lastMoment, `must be at most ${lastMoment}`);

/** A name or an id in a query. */
export const text = z.string().min(1, 'must not be empty').max(200, 'must be at most 200 characters');

/** An empty query. */
export const noQuery = z.strictObject({});

/** Body of a request that only triggers an action: absent or an empty object. */
export const noBody = z.strictObject({});

/** Response of a change that returns no data. */
export const done = z.object({ ok: z.literal(true) });

/** Text of a search. */
export const searched = z
  .string()
  .trim()
  .min(1, 'must not be empty')
  .max(200, 'must be at most 200 characters')
  .exactOptional();

/** Page of a list. */
export const page = {
  limit: number.min(1, 'must be at least 1').max(500, 'must be at most 500').default(100),
  after: z.string().max(100).exactOptional().describe('cursor from the previous page'),
};
