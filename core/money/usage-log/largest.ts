/** Lists the longest and the most expensive calls. */
import { GatewayError } from '../../sdk/errors.ts';
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Candidates } from './candidate-entries.ts';
import { fewest, offerFor, ofTime } from './candidates.ts';
import { hasMany } from './matching-hours.ts';
import { subjectHasMany } from './subject-hours.ts';
import { readEntries, type Entries, type EntriesQuery } from './entries.ts';
import type { LargestUsage, UsageFilter, UsageLog, UsageMeasure } from './index.ts';
import type { Source } from './narrowing.ts';
import type { FindNewest } from './newest.ts';
import type { Reading } from './reading.ts';
import { listSlice, rangeOf, sliceStart } from './questions.ts';
import { indexed } from './record-indexes.ts';
import { measureColumns } from './selecting.ts';

const day = 86_400_000;

/**
 * Position in the order of a measure: before it are all records with larger values, and of those with its value the ones that are newer.
 * With an empty id all records of the value follow, or, at 0, none.
 */
interface Position {
  readonly value: number;
  readonly at: number;
  readonly id: string;
}

const first: Position = { value: Number.MAX_SAFE_INTEGER, at: Number.MAX_SAFE_INTEGER, id: '' };

/** One question for the largest records. */
interface LargestQuery {
  readonly filter: UsageFilter;
  readonly by: UsageMeasure;
  readonly limit: number;
  readonly position: Position;
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the method that lists the largest records. Where few records are in question it compares all of them. Otherwise it walks along the
 * index of the measure, so many entries at most, and goes on there with the next page.
 */
export function createLargest(reading: Reading, findNewest: FindNewest): UsageLog['largest'] {
  const { query, indexes, slices } = reading;
  const most = slices * listSlice;
  return async (filter, by, limit, after) => {
    const { start, end } = rangeOf(filter);
    if (start >= end) return { records: [] };
    const position = after === undefined ? first : positionOf(after);
    const wanted: LargestQuery = { filter, by, limit, position, start, end };
    const hasIndex = (await indexes.areMade()) && position.value >= indexes.floor(by);
    const isOfAll = hasIndex && indexes.floor(by) === Number.NEGATIVE_INFINITY;
    if (hasIndex) {
      // Most filters have enough records among the largest.
      const looks = Math.max(isNarrow(filter) ? narrowLooks : 0, 2 * limit);
      const { records, count, least } = await entriesOf(reading, wanted, looks);
      const page = pageOf(records, wanted);
      if (page.next !== undefined || (isOfAll && count <= looks)) return page;
      if (count > looks && records.length === limit) return { ...page, ...restOf(least) };
    }
    const few = await fewOf(reading, wanted);
    if (few !== undefined) return few;
    const since = isOfAll ? end : await sliceStart(query, end, start, most);
    if (since > start && hasIndex) {
      const page = await walk(reading, findNewest, wanted, most);
      if (page.next !== undefined) return page;
      const floor = indexes.floor(by);
      if (floor === Number.NEGATIVE_INFINITY) return page;
      // What is smaller than all entries of the index.
      const left = limit - page.records.length;
      const below = { ...wanted, limit: left, position: { value: floor, at: 0, id: '' } };
      const rest = left === 0 ? nextOf(below.position) : await compare(reading, below, since);
      return 'records' in rest
        ? { ...rest, records: [...page.records, ...rest.records] }
        : { ...page, ...rest };
    }
    return compare(reading, wanted, since);
  };
}

/** Compares the records of an index that has few entries for the filter, if any has. */
async function fewOf(reading: Reading, wanted: LargestQuery): Promise<LargestUsage | undefined> {
  const { query, kind, indexes } = reading;
  const { filter, start, end } = wanted;
  const offered = await offerFor(query, kind, indexes, filter);
  // What is frequent has many entries: the sums say so at less cost.
  const has = (one: Candidates['by']): boolean => offered.some(({ by }) => by === one);
  const areNamesFrequent = filter.keyId === undefined && has('names') && (await hasMany(query, filter, end));
  const offer: Candidates[] = [];
  for (const one of offered) {
    const isFrequent =
      one.subject === undefined
        ? one.by === 'names' && areNamesFrequent
        : await subjectHasMany(query, filter, one.subject, start, end);
    if (!isFrequent) offer.push(one);
  }
  const few = offer.length === 1 ? offer[0] : (await fewest(query, offer, start, end)).few;
  if (few === undefined) return undefined;
  const entries = few.select('*', start, end, listSlice + 1);
  const { records, count } = await readFew(reading, wanted, entries, listSlice);
  return count > listSlice ? undefined : pageOf(records, wanted);
}

/** As many entries as there are. */
const all = Number.MAX_SAFE_INTEGER - 1;

/** Compares all records since a time. */
async function compare(reading: Reading, wanted: LargestQuery, since: number): Promise<LargestUsage> {
  const { filter, by, limit, end } = wanted;
  const behind = behindOf(wanted);
  // SQLite has records in the order of time, and reads no others.
  const found =
    reading.kind === 'sqlite'
      ? await reading.select({
          filter: { ...filter, since, until: end },
          limit: limit + 1,
          order: by,
          ...(behind && { only: behind }),
        })
      : (await readFew(reading, { ...wanted, start: since }, ofTime.select('*', since, end, all), all))
          .records;
  const page = pageOf(found, wanted);
  return since > wanted.start ? { ...page, comparedSince: since } : page;
}

/** Returns the cursor of the records from a value on that no entry before it has. */
function restOf(value: number): { readonly next: string } {
  return nextOf({ value, at: Number.MAX_SAFE_INTEGER, id: '' });
}

/** Number of entries of the index of a measure that are looked up at first for a filter. */
const narrowLooks = 1_000;

/** True for a filter by more than time. */
function isNarrow({ since: _since, until: _until, ...others }: UsageFilter): boolean {
  return Object.values(others).some((value) => value !== undefined);
}

/** Maximum number of entries of the index of a measure that are looked up: records that are far apart cost more than those of one time. */
const looksOf = (most: number): number => Math.ceil(most / 4);

/** Reads the next entries of the index of a measure, and those of their records that fit the filter. */
async function walk(
  reading: Reading,
  findNewest: FindNewest,
  wanted: LargestQuery,
  most: number,
): Promise<LargestUsage> {
  const looks = looksOf(most);
  const { records, count, least, greatest } = await entriesOf(reading, wanted, looks);
  const isAll = count <= looks;
  if (!isAll && least === greatest) return equals(findNewest, wanted, least);
  const page = pageOf(records, wanted);
  return page.next !== undefined || isAll ? page : { ...page, ...restOf(least) };
}

/** Reads so many entries of the index of a measure, and one more. */
function entriesOf({ query, kind }: Reading, wanted: LargestQuery, looks: number): Promise<Entries> {
  const { filter, by, position, start, end } = wanted;
  const column = measureColumns[by];
  const [least, greatest] =
    by === 'ms' ? [filter.minMs, filter.maxMs] : [filter.minMicroDollars, filter.maxMicroDollars];
  const isBelow = greatest === undefined || position.value <= greatest;
  // Whole partitions, so that the index alone says what comes next.
  const days = kind === 'sqlite' ? [] : [Math.floor(start / day) * day, Math.ceil(end / day) * day];
  const hint = kind === 'sqlite' ? ` INDEXED BY usage_records_${column}` : '';
  const entries = {
    // SQLite searches by the first of two lower bounds.
    sql: `SELECT * FROM usage_records${hint} WHERE ${least === undefined ? '' : `${column} >= ? AND `}${indexed(kind, by)}
      AND ${column} ${isBelow && position.at === 0 ? '<' : '<='} ? ${days.length === 0 ? '' : 'AND at >= ? AND at < ?'} ORDER BY ${column} DESC LIMIT ?`,
    values: [
      ...(least === undefined ? [] : [least]),
      isBelow ? position.value : greatest,
      ...days,
      looks + 1,
    ],
  };
  return read({ query, kind }, wanted, { entries, looks, edge: column });
}

/** Reads entries of another index, which has few of them. */
function readFew(reading: Reading, wanted: LargestQuery, entries: Source, looks: number): Promise<Entries> {
  return read(reading, wanted, { entries, looks, edge: undefined });
}

function read(
  { query, kind }: Pick<Reading, 'query' | 'kind'>,
  wanted: LargestQuery,
  entries: Pick<EntriesQuery, 'entries' | 'looks' | 'edge'>,
): Promise<Entries> {
  const { filter, by, limit, start, end } = wanted;
  const column = measureColumns[by];
  const behind = behindOf(wanted);
  return readEntries(query, kind, {
    ...entries,
    filter: { ...filter, since: start, until: end },
    only: {
      sql: `${column} IS NOT NULL${behind === undefined ? '' : ` AND ${behind.sql}`}`,
      values: behind?.values ?? [],
    },
    order: [column, 'at'],
    limit: limit + 1,
  });
}

/** Lists the records of a value that very many have, by time. */
async function equals(
  findNewest: FindNewest,
  { filter, by, limit, position }: LargestQuery,
  value: number,
): Promise<LargestUsage> {
  const bounds =
    by === 'ms' ? { minMs: value, maxMs: value } : { minMicroDollars: value, maxMicroDollars: value };
  const before = position.value === value && position.at < Number.MAX_SAFE_INTEGER ? position : undefined;
  const { found, unread } = await findNewest({ ...filter, ...bounds }, limit + 1, before);
  const records = found.slice(0, limit);
  const last = records.at(-1);
  if (found.length > limit && last !== undefined)
    return { records, ...nextOf({ value, at: last.at, id: last.id }) };
  return { records, ...nextOf({ value, at: unread ?? 0, id: '' }) };
}

/** The condition for records behind the position of the query. */
function behindOf({ by, position }: LargestQuery): Source | undefined {
  if (position === first) return undefined;
  const column = measureColumns[by];
  return {
    sql: `${column} <= ? AND (${column} < ? OR (at, id) < (?, ?))`,
    values: [position.value, position.value, position.at, position.id],
  };
}

function pageOf(found: readonly UsageRecord[], { by, limit }: LargestQuery): LargestUsage {
  const records = found.slice(0, limit);
  const last = records.at(-1);
  if (found.length <= limit || last === undefined) return { records };
  return { records, ...nextOf({ value: last[by] ?? 0, at: last.at, id: last.id }) };
}

function nextOf({ value, at, id }: Position): { readonly next: string } {
  return { next: `${value}_${at}_${id}` };
}

/** Parses a cursor. Throws GatewayError `invalid_value` when it is malformed. */
function positionOf(cursor: string): Position {
  const [, value = '', at = '', id = ''] =
    /^(-?\d{1,16}(?:\.\d{1,20})?(?:e-\d{1,3})?)_(\d{1,16})_([\w-]{0,100})$/.exec(cursor) ?? [];
  if (value === '')
    throw new GatewayError('invalid_value', 'Invalid cursor in "after". Use "next" from the previous page.', {
      param: 'after',
    });
  return { value: Number(value), at: Number(at), id };
}
