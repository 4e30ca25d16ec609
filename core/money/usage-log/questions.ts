/** WHERE conditions, cursors and time slices of queries on `usage_records`. */
import { GatewayError } from '../../sdk/errors.ts';
import type { Database } from '../../state/database/index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import type { UsageFilter } from './index.ts';
import { holds, ofClass, ownedNarrowing } from './narrowing.ts';

/** Number of records in a slice, for queries that read all records of a range. */
export const slice = 5_000;

/** Number of records, or index entries, in a slice of a list. */
export const listSlice = 1_250;

/** Maximum number of slices that one page of a list reads: 10,000 records and entries, which take a database some tens of milliseconds. */
export const maxSlices = 8;

/** Position in the order of time: that of a record, or, with an empty id, before all records of a millisecond. */
export interface Cursor {
  readonly at: number;
  readonly id: string;
}

/** Conditions for calls that failed or were refused, and for those that the gateway refused. */
const isNotOk = "(status >= 400 OR ended = 'interrupted')";
const isRefused = '(channel IS NULL AND status BETWEEN 400 AND 498)';

const outcomes = {
  ok: `NOT ${isNotOk}`,
  failed: `${isNotOk} AND NOT ${isRefused}`,
  refused: isRefused,
} as const;

/** Conditions of the members that are a lowest or a highest value. */
const bounds = {
  minMs: 'ms >= ?',
  maxMs: 'ms <= ?',
  minMicroDollars: 'micro_dollars >= ?',
  maxMicroDollars: 'micro_dollars <= ?',
} as const;

const equal = {
  id: 'id',
  keyId: 'key_id',
  model: 'model',
  channel: 'channel',
  format: 'format',
  operation: 'operation',
  status: 'status',
} as const;

/** Returns the WHERE clause of a filter whose times are integers, and the values of its placeholders. */
export function conditions(
  filter: UsageFilter,
  before?: Cursor,
  kind?: Database['kind'],
): { readonly where: string; readonly values: readonly (string | number)[] } {
  const parts: string[] = [];
  const values: (string | number)[] = [];
  const need = (part: string, ...given: readonly (string | number)[]): void => {
    parts.push(part);
    values.push(...given);
  };
  if (filter.since !== undefined) need('at >= ?', filter.since);
  if (filter.until !== undefined) need('at < ?', filter.until);
  for (const [member, column] of Object.entries(equal)) {
    const value = filter[member as keyof typeof equal];
    if (value !== undefined) need(`${column} = ?`, value);
  }
  // The index is on the hash, because whole ids would make the index three times as large.
  if (filter.keyId !== undefined && kind === 'postgres') need('hashtext(key_id) = hashtext(?)', filter.keyId);
  for (const [member, condition] of Object.entries(bounds)) {
    const value = filter[member as keyof typeof bounds];
    if (value !== undefined) need(condition, value);
  }
  if (filter.outcome !== undefined) need(outcomes[filter.outcome]);
  if (filter.modelPart !== undefined && filter.modelPart !== '')
    need(holds('lower(model)'), filter.modelPart.toLowerCase());
  if (filter.statusClass !== undefined) need(ofClass('status', filter.statusClass));
  const owned = ownedNarrowing(filter);
  if (owned.sql !== '') need(owned.sql.slice(' AND '.length), ...owned.values);
  if (before !== undefined) need('(at, id) < (?, ?)', before.at, before.id);
  return { where: parts.length === 0 ? '' : `WHERE ${parts.join(' AND ')}`, values };
}

/** Returns the range of a filter's times, in whole milliseconds; `end` is exclusive. */
export function rangeOf({ since = 0, until = Number.MAX_SAFE_INTEGER }: UsageFilter): {
  readonly start: number;
  readonly end: number;
} {
  return { start: Math.ceil(since), end: Math.ceil(until) };
}

/** Parses a cursor. Throws GatewayError `invalid_value` when it is malformed. */
export function cursorOf(cursor: string): Cursor {
  const [, at = '', id = ''] = /^(\d{1,15})\.([\w-]{0,100})$/.exec(cursor) ?? [];
  if (at === '')
    throw new GatewayError('invalid_value', 'Invalid cursor in "after". Use "next" from the previous page.', {
      param: 'after',
    });
  return { at: Number(at), id };
}

/** Returns the end of the time slice that begins at `since` and contains {@link slice} records. */
export async function sliceEnd(query: Query, since: number, end: number): Promise<number> {
  const [row] = await query(
    'SELECT at FROM usage_records WHERE at >= ? AND at < ? ORDER BY at LIMIT 1 OFFSET ?',
    [since, end, slice],
  );
  return row === undefined ? end : Math.max(Number(row['at']), since + 1);
}

/** Returns the start of the time slice that contains so many records and ends before `until`. */
export async function sliceStart(
  query: Query,
  until: number,
  start: number,
  records: number,
): Promise<number> {
  const [row] = await query(
    'SELECT at FROM usage_records WHERE at < ? AND at >= ? ORDER BY at DESC LIMIT 1 OFFSET ?',
    [until, start, records],
  );
  return row === undefined ? start : Number(row['at']);
}
