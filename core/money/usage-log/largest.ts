/** Lists the longest and the most expensive calls. */
import { GatewayError } from '../../sdk/errors.ts';
import { offerFor } from './candidates.ts';
import type { LargestUsage, UsageFilter, UsageLog, UsageMeasure } from './index.ts';
import type { Source } from './narrowing.ts';
import type { FindNewest, Reading } from './newest.ts';
import { rangeOf, slice, sliceStart } from './questions.ts';
import { indexed } from './record-indexes.ts';
import { measureColumns } from './selecting.ts';

const day = 86_400_000;

/**
 * Position in the order of a measure: before it are all records with larger values, and of those with its value the ones that are newer.
 * With an empty id all records of the value follow, or, at 0, none.
 */
interface Place {
  readonly value: number;
  readonly at: number;
  readonly id: string;
}

const first: Place = { value: Number.MAX_SAFE_INTEGER, at: Number.MAX_SAFE_INTEGER, id: '' };

/** One question for the largest records. */
interface Asked {
  readonly filter: UsageFilter;
  readonly by: UsageMeasure;
  readonly limit: number;
  readonly place: Place;
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the method that lists the largest records. Where few records are in question it compares all of them. Otherwise it walks along the
 * index of the measure, so many entries at most, and goes on there with the next page.
 */
export function createLargest(reading: Reading, findNewest: FindNewest): UsageLog['largest'] {
  const { ask, kind, indexes, slices } = reading;
  const most = slices * slice;
  return async (filter, by, limit, after) => {
    const { start, end } = rangeOf(filter);
    if (start >= end) return { records: [] };
    const place = after === undefined ? first : placeOf(after);
    const asked: Asked = { filter, by, limit, place, start, end };
    const few = await (await offerFor(ask, kind, indexes, filter))?.few(start, end);
    if (few !== undefined) return pageOf(await selectOf(reading, asked, { among: few }), asked);
    const since = await sliceStart(ask, end, start, most);
    if (since > start && (await indexes.areMade()) && place.value >= indexes.floor(by)) {
      const page = await walk(reading, findNewest, asked, most);
      if (page.next !== undefined) return page;
      const floor = indexes.floor(by);
      if (floor === Number.NEGATIVE_INFINITY) return page;
      // What is smaller than all entries of the index.
      const left = limit - page.records.length;
      const below = { ...asked, limit: left, place: { value: floor, at: 0, id: '' } };
      const rest = left === 0 ? nextOf(below.place) : await compare(reading, below, since);
      return 'records' in rest
        ? { ...rest, records: [...page.records, ...rest.records] }
        : { ...page, ...rest };
    }
    return compare(reading, asked, since);
  };
}

/** Compares all records since a time. */
async function compare(reading: Reading, asked: Asked, since: number): Promise<LargestUsage> {
  const page = pageOf(await selectOf(reading, { ...asked, start: since }), asked);
  return since > asked.start ? { ...page, comparedSince: since } : page;
}

/** Reads the next entries of the index of a measure, and those of their records that fit the filter. */
async function walk(
  reading: Reading,
  findNewest: FindNewest,
  asked: Asked,
  most: number,
): Promise<LargestUsage> {
  const { ask, kind } = reading;
  const { by, limit, place, start, end } = asked;
  const column = measureColumns[by];
  // Whole partitions, so that the index alone says what comes next.
  const days = kind === 'sqlite' ? [] : [Math.floor(start / day) * day, Math.ceil(end / day) * day];
  const hint = kind === 'sqlite' ? ` INDEXED BY usage_records_${column}` : '';
  const { since: _since, until: _until, ...narrow } = asked.filter;
  const isNarrow = Object.values(narrow).some((value) => value !== undefined);
  // To look up the records of entries costs more than to read records in their order.
  for (const looks of isNarrow ? [slice] : [Math.min(most, 4 * limit), most]) {
    const [row] = await ask(
      `SELECT COUNT(*) AS looks, MIN(value) AS least, MAX(value) AS greatest FROM (
         SELECT ${column} AS value FROM usage_records${hint}
         WHERE ${indexed(kind, by)} AND ${column} ${place.at === 0 ? '<' : '<='} ?${days.length === 0 ? '' : ' AND at >= ? AND at < ?'}
         ORDER BY ${column} DESC LIMIT ?) AS entries`,
      [place.value, ...days, looks + 1],
    );
    const [count, least, greatest] = ['looks', 'least', 'greatest'].map((name) => Number(row?.[name] ?? 0));
    if (count === undefined || least === undefined) break;
    const isAll = count <= looks;
    if (!isAll && least === greatest) {
      if (looks < most && !isNarrow) continue;
      return equals(findNewest, asked, least);
    }
    const lowest = { sql: `${indexed(kind, by)} AND ${column} ${isAll ? '>=' : '>'} ?`, values: [least] };
    const records = count === 0 ? [] : await selectOf(reading, asked, { only: lowest });
    const page = pageOf(records, asked);
    if (page.next !== undefined || isAll) return page;
    if (looks < most && !isNarrow && records.length < limit) continue;
    return { ...page, ...nextOf({ value: least, at: Number.MAX_SAFE_INTEGER, id: '' }) };
  }
  return { records: [] };
}

/** Lists the records of a value that very many have, by time. */
async function equals(
  findNewest: FindNewest,
  { filter, by, limit, place }: Asked,
  value: number,
): Promise<LargestUsage> {
  const bounds =
    by === 'ms' ? { minMs: value, maxMs: value } : { minMicroDollars: value, maxMicroDollars: value };
  const before = place.value === value && place.at < Number.MAX_SAFE_INTEGER ? place : undefined;
  const { found, unread } = await findNewest({ ...filter, ...bounds }, limit + 1, before);
  const records = found.slice(0, limit);
  const last = records.at(-1);
  if (found.length > limit && last !== undefined)
    return { records, ...nextOf({ value, at: last.at, id: last.id }) };
  return { records, ...nextOf({ value, at: unread ?? 0, id: '' }) };
}

/** Selects the records behind the place that was asked for, one more than the page has. */
function selectOf(
  { select }: Reading,
  { filter, by, limit, place, start, end }: Asked,
  more: { readonly only?: Source; readonly among?: Parameters<Reading['select']>[0]['among'] } = {},
) {
  const column = measureColumns[by];
  const behind =
    place === first
      ? undefined
      : {
          sql: `${column} <= ? AND (${column} < ? OR (at, id) < (?, ?))`,
          values: [place.value, place.value, place.at, place.id],
        };
  const parts = [behind, more.only].filter((part) => part !== undefined);
  const only = {
    sql: parts.map(({ sql }) => sql).join(' AND '),
    values: parts.flatMap(({ values }) => values),
  };
  return select({
    filter: { ...filter, since: start, until: end },
    limit: limit + 1,
    order: by,
    among: more.among,
    ...(parts.length > 0 && { only }),
  });
}

function pageOf(found: Awaited<ReturnType<Reading['select']>>, { by, limit }: Asked): LargestUsage {
  const records = found.slice(0, limit);
  const last = records.at(-1);
  if (found.length <= limit || last === undefined) return { records };
  return { records, ...nextOf({ value: last[by] ?? 0, at: last.at, id: last.id }) };
}

function nextOf({ value, at, id }: Place): { readonly next: string } {
  return { next: `${value}_${at}_${id}` };
}

/** Parses a cursor. Throws GatewayError `invalid_value` when it is malformed. */
function placeOf(cursor: string): Place {
  const [, value = '', at = '', id = ''] =
    /^(-?\d{1,16}(?:\.\d{1,20})?(?:e-\d{1,3})?)_(\d{1,16})_([\w-]{0,100})$/.exec(cursor) ?? [];
  if (value === '')
    throw new GatewayError('invalid_value', 'Invalid cursor in "after". Use "next" from the previous page.', {
      param: 'after',
    });
  return { value: Number(value), at: Number(at), id };
}
