/** Finds the hours in which a filter has records, by the sums. */
import type { UsageFilter } from './index.ts';
import type { Ask } from '../../state/database/long-reads.ts';
import { namedMembers, narrowing, ownedMembers } from './narrowing.ts';
import type { MatchingHour } from './matching-hour.ts';
import { subjectHours } from './subject-hours.ts';
import { totalsIn } from './totals.ts';

const hour = 3_600_000;
const day = 24 * hour;

/** Members of a filter by which the sums tell records apart. */
const told = ['keyId', 'outcome', ...namedMembers, ...ownedMembers] as const;

/** True when the sums know in which hours there are records of a filter. */
export async function knowsHours(ask: Ask, filter: UsageFilter): Promise<boolean> {
  if (told.every((name) => filter[name] === undefined)) return false;
  return (await ask('SELECT 1 FROM usage_summing', [])).length === 0;
}

/**
 * Gives the hours from the newest to the oldest in which there are records of a filter, as far as the sums tell them apart. What is rare, or
 * never occurs, is found without a look at the records in between.
 */
export async function* matchingHours(
  ask: Ask,
  filter: UsageFilter,
  since: number,
  until: number,
): AsyncGenerator<MatchingHour> {
  const { sql, values } = narrowing(filter);
  const from = Math.floor(since / hour) * hour;
  if (ownedMembers.some((name) => filter[name] !== undefined)) {
    yield* subjectHours(ask, filter, from, until);
    return;
  }
  // First what is in no sums yet: what is added to them meanwhile is found in the sums.
  const unsummed = await ask(
    `SELECT DISTINCT at - at % ${hour} AS start FROM usage_unsummed WHERE at >= ? AND at < ?${sql} ORDER BY start DESC`,
    [since, until, ...values],
  );
  const waiting = unsummed.map(({ start }) => Number(start));
  const startsOf = async (level: number, first: number, end: number): Promise<number[]> => {
    const sums = totalsIn({ level, since: first, until: end }, filter, ['start']);
    const rows = await ask(
      `SELECT DISTINCT start FROM (${sums.sql}) AS sums ORDER BY start DESC`,
      sums.values,
    );
    return rows.map(({ start }) => Number(start));
  };
  const isOfKey = filter.keyId !== undefined;
  // Days first, of which there are fewer sums than of hours.
  const stretches = isOfKey ? [undefined] : await startsOf(4, Math.floor(since / day) * day, until);
  for (const stretch of stretches) {
    const hours =
      stretch === undefined
        ? await startsOf(5, from, until)
        : await startsOf(3, Math.max(from, stretch), Math.min(until, stretch + day));
    // The index by keys reads the records of the key alone.
    const totals = stretch === undefined ? new Map<number, number>() : await totalsOf(ask, stretch);
    for (const start of hours) {
      while (waiting[0] !== undefined && waiting[0] >= start) {
        const next = waiting.shift() ?? start;
        if (next > start) yield { start: next, records: 0 };
      }
      yield { start, records: totals.get(start) ?? 0 };
    }
  }
  for (const start of waiting) yield { start, records: 0 };
}

/** Number of all records in the hours of a day. */
async function totalsOf(ask: Ask, start: number): Promise<ReadonlyMap<number, number>> {
  const sums = totalsIn({ level: 1, since: start, until: start + day }, {}, ['start', 'calls']);
  const rows = await ask(
    `SELECT start, SUM(calls) AS calls FROM (${sums.sql}) AS sums GROUP BY start`,
    sums.values,
  );
  return new Map(rows.map((row) => [Number(row['start']), Number(row['calls'])]));
}

/** A stretch of time in which there are records of a filter in every hour, and how many records a look into it reads. */
export interface Stretch {
  readonly since: number;
  readonly until: number;
  readonly records: number;
}

/** Joins hours that follow each other, until they have a slice of records: one look at them costs less than one at each. */
export async function* joinedHours(
  hours: AsyncIterable<MatchingHour>,
  slice: number,
): AsyncGenerator<Stretch> {
  let current: Stretch | undefined;
  for await (const { start, records } of hours) {
    if (current !== undefined && current.since === start + hour && current.records + records <= slice) {
      current = { since: start, until: current.until, records: current.records + records };
      continue;
    }
    if (current !== undefined) yield current;
    current = { since: start, until: start + hour, records };
  }
  if (current !== undefined) yield current;
}
