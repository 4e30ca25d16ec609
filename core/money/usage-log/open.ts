import type { UsageRecord } from '../../model/usage-record.ts';
import type { Stores } from '../../state/stores.ts';
import { yieldTurn } from '../../state/database/yield-turn.ts';
import {
  conditions,
  cursorOf,
  maxSlices,
  questions,
  rangeOf,
  slice,
  sliceEnd,
  sliceStart,
  type Ask,
  type Cursor,
} from './questions.ts';
import { recordColumns, recordOf } from './rows.ts';
import { failedAttemptsIn } from './failed-attempts.ts';
import { createLargest } from './largest.ts';
import { createSums } from './sums.ts';
import type { UsageLog, UsageFilter } from './index.ts';

/** Records removed at once. */
const batch = 500;

/** Opens the log in the gateway's database. `slices`: maximum number of slices of records that one question reads. */
export function openUsageLog(
  { database }: Pick<Stores, 'database'>,
  { slices } = { slices: maxSlices },
): UsageLog {
  const ask = questions(database);

  /** Records of a slice of time, in order. */
  const select = async (filter: UsageFilter, order: 'ASC' | 'DESC', limit: number, before?: Cursor) => {
    const { where, values } = conditions(filter, before);
    // The limit comes before the join: details are fetched for what is shown alone.
    const sql = `SELECT ${recordColumns}, d.details FROM
      (SELECT * FROM usage_records ${where} ORDER BY at ${order}, id ${order} LIMIT ?) u
      LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id ORDER BY u.at ${order}, u.id ${order}`;
    return (await ask(sql, [...values, limit])).map(recordOf);
  };

  /**
   * Returns the newest records of a filter. Reads in slices, because the next record that fits may be far back. Stops after the maximum
   * number of slices: `unread` is then the time before which nothing was read.
   */
  const newest = async (
    filter: UsageFilter,
    limit: number,
    before: Cursor | undefined,
  ): Promise<{ readonly found: readonly UsageRecord[]; readonly unread?: number }> => {
    const { start, end } = rangeOf(filter);
    const isNarrow = Object.entries(filter).some(
      ([name, value]) => name !== 'since' && name !== 'until' && value !== undefined,
    );
    // The unique index of ids finds one record, however far back it is.
    if (filter.id !== undefined)
      return { found: await select({ ...filter, since: start, until: end }, 'DESC', limit, before) };
    const found: UsageRecord[] = [];
    let until = before === undefined ? end : Math.min(end, before.at + 1);
    for (let count = 0; until > start && found.length < limit; count += 1) {
      if (count === slices) return { found, unread: until };
      const since = isNarrow ? await sliceStart(ask, until, start) : start;
      found.push(...(await select({ ...filter, since, until }, 'DESC', limit - found.length, before)));
      until = since;
      if (isNarrow) await yieldTurn();
    }
    return { found };
  };

  return {
    largest: createLargest(ask, slices),
    async page(filter, limit, after) {
      const before = after === undefined ? undefined : cursorOf(after);
      const { found, unread } = await newest(filter, limit + 1, before);
      const records = found.slice(0, limit);
      const last = records.at(-1);
      if (found.length > limit && last !== undefined) return { records, next: `${last.at}.${last.id}` };
      return unread === undefined ? { records } : { records, next: `${unread}.` };
    },
    async find(id) {
      const [row] = await ask(
        `SELECT ${recordColumns}, d.details, d.request, d.response FROM usage_records u
         LEFT JOIN usage_details d ON d.at = u.at AND d.id = u.id WHERE u.id = ?`,
        [id],
      );
      return row === undefined ? undefined : recordOf(row);
    },
    sums: createSums(ask),
    failedAttempts: (since) => failedAttemptsIn(ask, since),
    async *each(filter) {
      const end = filter.until ?? Number.MAX_SAFE_INTEGER;
      for (let since = filter.since ?? 0; since < end;) {
        const until = await sliceEnd(ask, since, end);
        yield* await select({ ...filter, since, until }, 'ASC', Number.MAX_SAFE_INTEGER);
        since = until;
      }
    },
    async prune({ days, records }) {
      const byAge: Cursor = { at: Math.ceil(Date.now() - days * 86_400_000), id: '' };
      const byNumber = await nthNewest(ask, records);
      return removeUpTo(ask, byNumber !== undefined && byNumber.at > byAge.at ? byNumber : byAge);
    },
  };
}

/** The newest record that is one too many; undefined when there are no more than so many. */
async function nthNewest(ask: Ask, number: number): Promise<Cursor | undefined> {
  let place: Cursor = { at: Number.MAX_SAFE_INTEGER, id: '' };
  for (let left = Math.max(0, Math.trunc(number)); ; left -= slice) {
    const [row] = await ask(
      'SELECT at, id FROM usage_records WHERE (at, id) < (?, ?) ORDER BY at DESC, id DESC LIMIT 1 OFFSET ?',
      [place.at, place.id, Math.min(left, slice - 1)],
    );
    if (row === undefined) return undefined;
    place = { at: Number(row['at']), id: String(row['id']) };
    if (left < slice) return place;
    await yieldTurn();
  }
}

/** Removes the record at this place and all before it, a few at a time; returns how many there were. */
async function removeUpTo(ask: Ask, { at, id }: Cursor): Promise<number> {
  let removed = 0;
  for (;;) {
    const rows = await ask(
      'SELECT at, id FROM usage_records WHERE (at, id) <= (?, ?) ORDER BY at, id LIMIT ?',
      [at, id, batch],
    );
    const last = rows.at(-1);
    if (last === undefined) return removed;
    const place = [Number(last['at']), String(last['id'])];
    // Details first: what a crash leaves between the two is a record without details, and the next run finds it.
    await ask('DELETE FROM usage_details WHERE (at, id) <= (?, ?)', place);
    await ask('DELETE FROM usage_attempts WHERE (at, id) <= (?, ?)', place);
    await ask('DELETE FROM usage_records WHERE (at, id) <= (?, ?)', place);
    removed += rows.length;
    await yieldTurn();
  }
}
