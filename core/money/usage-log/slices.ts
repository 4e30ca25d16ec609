/** Reads records in the order of time, so many together, until a page is full or has read as much as it may. */
import type { UsageRecord } from '../../model/usage-record.ts';
import { yieldToEventLoop } from '../../state/database/yield-to-event-loop.ts';
import type { Candidates } from './candidate-entries.ts';
import { ofTime } from './candidates.ts';
import { readEntries } from './entries.ts';
import type { UsageFilter } from './index.ts';
import type { Stretch } from './matching-hours.ts';
import type { Reading } from './reading.ts';
import { listSlice, type Cursor } from './questions.ts';

const day = 86_400_000;

/** Numbers of entries that the first statement of a page reads, and the largest: a filter that many records fit needs few. */
const [fewestLooks, mostLooks] = [300, 5_000];

/** Maximum number of days without enough entries that are read one by one. Older days are read together. */
const mostDays = 32;

/** Number of entries that one statement counts for, because each is planned, with PostgreSQL for many partitions. */
const costOfStatement = { postgres: 300, sqlite: 50 } as const;

/** A page that is being read. */
export interface Page extends Reading {
  readonly filter: UsageFilter;
  readonly limit: number;
  readonly before: Cursor | undefined;
  readonly found: UsageRecord[];
  /** Number of entries of indexes that may still be read. */
  left: number;
  /** Length of the shortest stretch of time for which no index had few entries, in milliseconds. Longer ones are not tried. */
  many: number;
  /** True when a stretch of time has been read, so that the next page begins at another place. */
  hasRead: boolean;
}

/** Begins a page. Each of its statements counts for some entries. */
export function pageFor(
  reading: Reading,
  filter: UsageFilter,
  limit: number,
  before: Cursor | undefined,
): Page {
  const page: Page = {
    ...reading,
    query(sql, values) {
      page.left -= costOfStatement[reading.kind];
      return reading.query(sql, values);
    },
    filter,
    limit,
    before,
    found: [],
    left: reading.slices * listSlice,
    many: Number.MAX_SAFE_INTEGER,
    hasRead: false,
  };
  return page;
}

/** True when a page has read as much as it may. */
export function isOver({ left, hasRead }: Page): boolean {
  return left <= 0 && hasRead;
}

/** Reads a stretch of time by an index that has few entries for it. Returns false where it has many after all. */
export async function readFew(page: Page, few: Candidates, { since, until }: Stretch): Promise<boolean> {
  const { count } = await readPart(page, few, since, until, listSlice, false);
  if (count <= listSlice) page.hasRead = true;
  return count <= listSlice;
}

/**
 * Reads a stretch of time in slices of an index, or of all records. Returns the time before which nothing was read where the page has read as
 * much as it may.
 */
export async function readSlices(
  page: Page,
  candidates: Candidates | undefined,
  { since, until }: Stretch,
): Promise<number | undefined> {
  const source = candidates ?? ofTime;
  let looks = Math.max(fewestLooks, 2 * page.limit);
  let days = 1;
  for (let end = until; end > since && page.found.length < page.limit;) {
    if (isOver(page)) return end;
    const latest = Math.floor(Math.min(end - 1, Date.now()) / day) * day;
    // PostgreSQL plans only for the partitions of the time in the statement.
    const isAll = page.kind === 'sqlite' || days > mostDays;
    const from = isAll ? since : Math.max(since, latest + day - days * day);
    const most = Math.max(fewestLooks, Math.min(looks, page.left));
    const { count, least, greatest } = await readPart(page, source, from, end, most, true);
    if (count <= most) {
      end = from;
      days *= 4;
    } else if (least === greatest) {
      // As many in one millisecond: all of them at once.
      end = least;
      await readPart(page, ofTime, least, least + 1, Number.MAX_SAFE_INTEGER - 1, true);
    } else end = least + 1;
    page.hasRead = true;
    if (count > most / 2) looks = Math.min(mostLooks, 4 * looks);
    await yieldToEventLoop();
  }
  return undefined;
}

/** Reads what a page still needs of so many entries. */
async function readPart(
  page: Page,
  source: Candidates,
  since: number,
  until: number,
  looks: number,
  isInOrder: boolean,
) {
  const { query, kind, filter, limit, before, found } = page;
  const entries = await readEntries(query, kind, {
    entries: source.select('*', since, until, looks + 1),
    looks,
    edge: isInOrder ? 'at' : undefined,
    filter: { ...filter, since, until },
    only: before && { sql: '(at, id) < (?, ?)', values: [before.at, before.id] },
    order: ['at'],
    limit: limit - found.length,
  });
  found.push(...entries.records);
  page.left -= entries.count;
  return entries;
}
