/** Lists records by time, the newest first. */
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Database } from '../../state/database/index.ts';
import type { Ask } from '../../state/database/long-reads.ts';
import { yieldTurn } from '../../state/database/yield-turn.ts';
import { offerFor, ofKey, type Offer } from './candidates.ts';
import type { UsageFilter } from './index.ts';
import { isOwned, joinedHours, knowsHours, matchingHours } from './matching-hours.ts';
import { rangeOf, slice, type Cursor } from './questions.ts';
import type { RecordIndexes } from './record-indexes.ts';
import type { Select } from './selecting.ts';

const hour = 3_600_000;

/** The newest records of a filter; `unread`: the time before which nothing was read, where the page has read as much as it may. */
export interface Newest {
  readonly found: readonly UsageRecord[];
  readonly unread?: number;
}

/** Minimum number of records that one read counts for. */
const costOfRead = 100;

/** What lists are read with. `slices`: maximum number of slices of records that one page reads. */
export interface Reading {
  readonly ask: Ask;
  readonly kind: Database['kind'];
  readonly indexes: RecordIndexes;
  readonly select: Select;
  readonly slices: number;
}

/** A page that is being read. */
interface Page {
  readonly filter: UsageFilter;
  readonly limit: number;
  readonly before: Cursor | undefined;
  readonly found: UsageRecord[];
  /** Number of records that may still be read. */
  left: number;
}

/** Finds the newest records of a filter before a place, up to a limit. */
export type FindNewest = (filter: UsageFilter, limit: number, before: Cursor | undefined) => Promise<Newest>;

/** Returns the function that finds the newest records. */
export function createNewest(reading: Reading): FindNewest {
  const { ask, kind, indexes, select } = reading;
  return async (filter, limit, before) => {
    const { start, end } = rangeOf(filter);
    const page: Page = { filter, limit, before, found: [], left: reading.slices * slice };
    const until = before === undefined ? end : Math.min(end, before.at + 1);
    const { id, since: _since, until: _until, ...narrow } = filter;
    // The unique index of ids finds one record, however far back it is.
    if (id !== undefined) return { found: await read(select, page, start, until) };
    const { keyId, ...others } = narrow;
    if (Object.values(narrow).every((value) => value === undefined))
      return all(select, kind, page, start, until);
    // An index has those of a key in the order of time.
    if (
      kind === 'postgres' &&
      keyId !== undefined &&
      Object.values(others).every((value) => value === undefined)
    )
      return { found: await read(select, page, start, until, ofKey(keyId)(start, until)) };
    const offer = await offerFor(ask, kind, indexes, filter);
    // The sums know in which hours a key has such calls, and whether there are any.
    const few = keyId === undefined ? await offer?.few(start, until) : undefined;
    if (few !== undefined) return { found: await read(select, page, start, until, few) };
    if (!(await knowsHours(ask, filter))) return walk(reading, page, start, until, offer);
    const hours = matchingHours(ask, filter, start, until);
    const isOfIndex = offer !== undefined && !isOwned(filter);
    for await (const stretch of joinedHours(hours, isOfIndex ? limit : undefined)) {
      const [from, to] = [Math.max(start, stretch.since), Math.min(until, stretch.until)];
      const { unread } = await walk(reading, page, from, to, offer);
      if (unread !== undefined) return { found: page.found, unread };
      if (page.found.length >= limit) break;
    }
    return { found: page.found };
  };
}

/** Reads what a page still needs of a stretch of time; returns all that the page has. */
async function read(
  select: Select,
  { filter, limit, before, found }: Page,
  since: number,
  until: number,
  among?: Parameters<Select>[0]['among'],
): Promise<readonly UsageRecord[]> {
  if (since >= until) return found;
  const only = before && { sql: '(at, id) < (?, ?)', values: [before.at, before.id] };
  const records = await select({
    filter: { ...filter, since, until },
    limit: limit - found.length,
    among,
    ...(only && { only }),
  });
  found.push(...records);
  return found;
}

/** Reads the newest records of all. */
async function all(
  select: Select,
  kind: Database['kind'],
  page: Page,
  start: number,
  end: number,
): Promise<Newest> {
  // To plan for the partitions of an hour or a day takes a server less than for all of them.
  const latest = Math.min(end, Date.now());
  const steps = kind === 'postgres' ? [latest - hour, latest - 24 * hour, start] : [start];
  let until = end;
  for (const step of steps) {
    const since = Math.max(start, Math.min(step, until));
    await read(select, page, since, until);
    if (page.found.length >= page.limit) break;
    until = since;
  }
  return { found: page.found };
}

/** Reads a stretch of time from its end to its beginning: by an index that has few entries for it, or in slices of all records. */
async function walk(
  { ask, select }: Reading,
  page: Page,
  since: number,
  until: number,
  offer: Offer | undefined,
): Promise<Newest> {
  for (let end = until; end > since && page.found.length < page.limit;) {
    if (page.left <= 0) return { found: page.found, unread: end };
    const few = await offer?.few(since, end);
    const { from, records } =
      few === undefined ? await nextSlice(ask, since, end) : { from: since, records: few.count };
    await read(select, page, from, end, few);
    page.left -= Math.max(records, costOfRead);
    end = from;
    await yieldTurn();
  }
  return { found: page.found };
}

/** Where the last slice of a stretch of time begins, and how many records it has. */
async function nextSlice(
  ask: Ask,
  since: number,
  until: number,
): Promise<{ readonly from: number; readonly records: number }> {
  const [row] = await ask(
    `SELECT COUNT(*) AS count, MIN(at) AS start FROM
       (SELECT at FROM usage_records WHERE at < ? AND at >= ? ORDER BY at DESC LIMIT ?) AS newest`,
    [until, since, slice + 1],
  );
  const records = Number(row?.['count']);
  return { from: records > slice ? Number(row?.['start']) : since, records };
}
