/** Folds sums of times that have passed into coarser ones, those of some keys or owners at a time. */
import type { Database } from '../../state/database/index.ts';
import { row, rows, type Row, type Work } from '../../state/database/sql.ts';
import { foldedOf, foldsQuestion, isWhole, largestId } from './folded.ts';
import { foldGrace, folds, foldsOfKind, latestStart, longestFold, type Fold } from './folds.ts';
import {
  amounts,
  day,
  fourHours,
  halfDay,
  hour,
  largestSum,
  minute,
  segmentsOf,
  type Folded,
} from './levels.ts';
import { isRefused } from './narrowing.ts';

/** How long after there was nothing left to fold it looks again, in milliseconds. */
const pause = 600_000;

/** Fewest calls in the longest time that is summed together for which sums are folded: few are read soon enough. */
export const fewestFolded = 50_000;

/** The shortest time that is folded, in minutes. */
const shortestMinutes = fourHours / minute;

/** A time to be folded. */
interface Tile {
  readonly fold: Fold;
  /** In milliseconds. */
  readonly start: number;
}

/**
 * Folds sums, a bounded number of them in a step. What was done is in the database: another process goes on from there, and a record that is
 * added to the time of a fold meanwhile lets it begin anew.
 */
export class Folding {
  readonly #kind: Database['kind'];
  readonly #fewest: number;
  #tiles: Tile[] = [];
  #restsUntil = 0;

  constructor(kind: Database['kind'], fewest: number) {
    this.#kind = kind;
    this.#fewest = fewest;
  }

  /** False while there is nothing to fold. */
  get isDue(): boolean {
    return this.#tiles.length > 0 || Date.now() >= this.#restsUntil;
  }

  /**
   * Folds some; belongs inside a transaction that has the lock of sums. `most`: number of sums, or more where one key or owner has more. Returns
   * true when there may be more.
   */
  *step(most: number): Work<boolean> {
    if (!this.isDue) return false;
    if (this.#tiles.length === 0) {
      this.#tiles = yield* this.#find();
      if (this.#tiles.length === 0) this.#restsUntil = Date.now() + pause;
      return this.#tiles.length > 0;
    }
    const tile = this.#tiles.at(-1);
    if (tile !== undefined && (yield* this.#fold(tile, most))) this.#tiles.pop();
    return true;
  }

  /** The times that are to be folded, in the order from the end: what others are made of, and what is newer, comes first. */
  *#find(): Work<Tile[]> {
    const [cursor] = yield* rows('SELECT at FROM usage_summing');
    const found = yield* rows(
      `SELECT start / ${shortestMinutes} AS time, SUM(calls) AS calls FROM usage_totals WHERE level = 1 AND start >= ? GROUP BY start / ${shortestMinutes}`,
      cursor === undefined ? 0 : Math.ceil(Number(cursor['at']) / minute),
    );
    const times = found.map((one) => ({
      start: Number(one['time']) * fourHours,
      calls: Number(one['calls']),
    }));
    const calls = new Map<number, number>();
    for (const one of times) {
      const block = Math.floor(one.start / longestFold);
      calls.set(block, (calls.get(block) ?? 0) + one.calls);
    }
    const starts = times
      .map(({ start }) => start)
      .filter((start) => (calls.get(Math.floor(start / longestFold)) ?? 0) >= this.#fewest);
    const made = new Map<number, Set<number>>();
    for (const { level, start } of yield* rows(`SELECT level, start FROM usage_folds WHERE ${isWhole}`)) {
      const those = made.get(Number(level)) ?? new Set();
      made.set(Number(level), those.add(Number(start) * minute));
    }
    const now = Date.now();
    const end = now - foldGrace;
    return folds.toReversed().flatMap((fold) => {
      const { level, size, keptFor = Infinity } = fold;
      if (fold.isOfLatest) {
        const start = latestStart(fold, now);
        const within = times.filter((one) => one.start >= start && one.start < start + size);
        const isWorthIt = within.reduce((sum, one) => sum + one.calls, 0) >= this.#fewest;
        return isWorthIt && made.get(level)?.has(start) !== true ? [{ fold, start }] : [];
      }
      const wanted = new Set(starts.map((start) => start - (start % size)));
      return [...wanted]
        .filter(
          (start) => start + size <= end && start >= now - keptFor && made.get(level)?.has(start) !== true,
        )
        .toSorted((one, other) => one - other)
        .map((start) => ({ fold, start }));
    });
  }

  /** Folds some of a time; returns true when all of it is done, or cannot be done now. */
  *#fold({ fold, start }: Tile, most: number): Work<boolean> {
    const { level, size, table } = fold;
    const column = columnOf(fold);
    const foldKey = [level, start / minute];
    const known = yield* row(
      'SELECT after, charged FROM usage_folds WHERE level = ? AND start = ?',
      ...foldKey,
    );
    // An older gateway that went on with it has left out what was charged: it begins anew.
    const isOurs =
      known !== undefined && Number(known['charged'] ?? -1) === Number(known['after'] ?? largestId);
    if (!isOurs && !(yield* this.#isReady(fold, start))) return true;
    if (isOurs && known['after'] === null) return true;
    const after = isOurs ? Number(known['after']) : -1;
    const parts = yield* partsOf(fold, start);
    const next = yield* nextIds(fold, parts, after, most);
    const last = next ?? largestId;
    yield* rows(
      `DELETE FROM ${table} WHERE level = ? AND start = ? AND ${column} > ? AND ${column} <= ?`,
      ...foldKey,
      after,
      last,
    );
    yield* rows(this.#folding(fold, start, parts), ...parts.flatMap(() => [after, last]));
    yield* keepNames(fold, start, after, last);
    yield* rows(
      `INSERT INTO usage_folds (level, start, until, after, charged) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (level, start) DO UPDATE SET after = excluded.after, charged = excluded.charged`,
      ...foldKey,
      (start + size) / minute,
      next ?? null,
      last,
    );
    return next === undefined;
  }

  /** True when all is there that a fold is made of. */
  *#isReady({ from, fromSize, size, table }: Fold, start: number): Work<boolean> {
    const range = [start / minute, (start + size) / minute];
    const made = folds.find(({ level }) => level === from);
    if (made !== undefined) {
      const has = yield* row(
        `SELECT COUNT(*) AS count FROM usage_folds WHERE level = ? AND start >= ? AND start < ? AND ${isWhole}`,
        from,
        ...range,
      );
      const hours = yield* rows(
        'SELECT DISTINCT start FROM usage_totals WHERE level = 1 AND start >= ? AND start < ?',
        ...range,
      );
      const wanted = new Set(hours.map((one) => Math.floor((Number(one['start']) * minute) / fromSize)));
      return Number(has?.['count']) >= wanted.size;
    }
    if (table !== 'usage_totals') return true;
    // What older gateways have summed is moved first.
    const left = yield* row(
      'SELECT 1 FROM usage_sums WHERE level = ? AND start >= ? AND start < ? LIMIT 1',
      from,
      start,
      start + size,
    );
    return left === undefined;
  }

  #folding(fold: Fold, start: number, parts: readonly Part[]): string {
    const { level, fromSize, hasNames, table } = fold;
    const column = columnOf(fold);
    const sum = (value: string): string =>
      this.#kind === 'sqlite'
        ? `CAST(MAX(MIN(TOTAL(${value}), ${largestSum}), -${largestSum}) AS INTEGER)`
        : // Of nothing but NULL it is NULL, and of that and a number the least is the number.
          `GREATEST(LEAST(COALESCE(SUM(${value}), 0), ${largestSum}), -${largestSum})::bigint`;
    const folded = [...amounts, 'charged_more'];
    // Hours of keys have names, and half days have none: of calls that went well, failed, or were refused.
    const names = hasNames || fromSize !== hour || table !== 'usage_totals' ? 'names' : unnamed;
    const each = parts.map(
      (part) => `SELECT ${column}, names, calls, ${folded.join(', ')} FROM ${table}
        WHERE level = ${part.level} AND start = ${part.start} AND ${column} > ? AND ${column} <= ?`,
    );
    return `INSERT INTO ${table} (level, start, ${column}, names, calls, ${folded.join(', ')})
      SELECT ${level}, ${start / minute}, t.${column}, t.names, ${sum('t.calls')}, ${folded.map((name) => `NULLIF(${sum(`t.${name}`)}, 0)`).join(', ')}
      FROM (SELECT ${column}, ${names} AS names, calls, ${folded.join(', ')} FROM (${each.join(' UNION ALL ')}) AS parts) AS t
      GROUP BY t.${column}, t.names ORDER BY t.${column}, t.names`;
  }
}

/**
 * Expression of SQL for the number of the names that are empty, from that of others. A join with the names would read the sums once for each of them.
 * Where an older gateway has summed all refused calls, there are no empty names of these: it counted them as failed.
 */
const unnamed = ((): string => {
  const isOf = (condition: string): string => `names IN (SELECT n.id FROM usage_names n WHERE ${condition})`;
  const empty = (failed: 0 | 1, status: 0 | 400): string =>
    `(SELECT n.id FROM usage_names n WHERE n.model = '' AND n.channel = '' AND n.format = '' AND n.operation = '' AND n.failed = ${failed} AND n.status = ${status})`;
  const refused = `COALESCE(${empty(1, 400)}, ${empty(1, 0)})`;
  return `CASE WHEN ${isOf(isRefused('n.'))} THEN ${refused} WHEN ${isOf('n.failed = 1')} THEN ${empty(1, 0)} ELSE ${empty(0, 0)} END`;
})();

function columnOf({ table }: Fold): 'key' | 'subject' {
  return table === 'usage_totals' ? 'key' : 'subject';
}

/** Sums of one time that a fold is made of; `start` in minutes. */
interface Part {
  readonly level: number;
  readonly start: number;
}

/** Returns the sums that a fold is made of. The latest days and half days are made of folds, too, where there are some: fewer sums are read. */
function* partsOf(fold: Fold, start: number): Work<readonly Part[]> {
  const { from, fromSize, size } = fold;
  const end = start + size;
  const finest: Folded = { level: from, size: fromSize, starts: startsIn(start, end, fromSize) };
  const all = [finest, ...(yield* coarserThan(fold, start, end))];
  const sizes = new Map(all.map((one) => [one.level, one.size]));
  return segmentsOf(() => undefined, undefined, start, end, end, all).flatMap(({ level, since, until }) =>
    level === 'records'
      ? []
      : startsIn(since, until, sizes.get(level) ?? fromSize).map((at) => ({ level, start: at / minute })),
  );
}

/** Returns the folds within a time that the latest days and half days can be made of, besides the sums that all folds of their kind are made of. */
function* coarserThan(
  { isOfLatest, kind, hasNames, fromSize, size }: Fold,
  start: number,
  end: number,
): Work<readonly Folded[]> {
  if (!isOfLatest && size !== halfDay) return [];
  const coarser = foldsOfKind(kind, hasNames).filter(
    (one) => !one.isOfLatest && one.size > fromSize && one.size < size,
  );
  const { sql, values } = foldsQuestion(coarser, start, end);
  return foldedOf(coarser, yield* rows(sql, ...values));
}

/** Returns when the stretches of a size begin that divide a time. `end` is exclusive. */
function startsIn(start: number, end: number, size: number): readonly number[] {
  return Array.from({ length: Math.ceil((end - start) / size) }, (_, index) => start + index * size);
}

/** Returns the last key or owner of those behind `after` that are folded together; undefined when these are all that are left. */
function* nextIds(fold: Fold, parts: readonly Part[], after: number, most: number): Work<number | undefined> {
  const { table } = fold;
  const column = columnOf(fold);
  // Both databases merge what their index has in this order, so that they read no more than is skipped.
  const ids = parts
    .map(
      ({ level, start }) =>
        `SELECT ${column} AS id FROM ${table} WHERE level = ${level} AND start = ${start} AND ${column} > ?`,
    )
    .join(' UNION ALL ');
  const at = (offset: number): Work<Row | undefined> =>
    row(`${ids} ORDER BY id LIMIT 1 OFFSET ?`, ...parts.map(() => after), offset);
  const beyond = yield* at(most);
  if (beyond === undefined) return undefined;
  const first = yield* at(0);
  // All sums of a key or owner together.
  return Math.max(Number(first?.['id']), Number(beyond['id']) - 1);
}

/** Keeps names, keys and owners until the fold goes: it is removed as a whole, when the last of its days is too old. */
function* keepNames({ level, size, table }: Fold, start: number, after: number, last: number): Work<void> {
  const [column, ids] = table === 'usage_totals' ? ['key', 'usage_keys'] : ['subject', 'usage_subjects'];
  const lastDay = Math.floor((start + size - 1) / day);
  for (const [names, of] of [
    ['usage_names', 'names'],
    [ids, column],
  ] as const)
    yield* rows(
      `UPDATE ${names} SET last_day = ? WHERE last_day < ? AND id IN (
         SELECT ${of} FROM ${table} WHERE level = ? AND start = ? AND ${column} > ? AND ${column} <= ?)`,
      lastDay,
      lastDay,
      level,
      start / minute,
      after,
      last,
    );
}
