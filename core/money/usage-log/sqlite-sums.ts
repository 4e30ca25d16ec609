/** Adds records to the sums in SQLite. It is done here, because SQLite would sort each record for every level. */
import { parseObject } from '../../json/parse.ts';
import { row, rows, type Row, type SqlValue, type Work } from '../../state/database/sql.ts';
import { amounts, dimensions, largestSum, levels, minute, startOf } from './levels.ts';
import { SumNames } from './sum-names.ts';

const isKey = 'level = ? AND start = ? AND key = ? AND names = ?';
const binsThere = `SELECT bins FROM usage_totals WHERE ${isKey}`;
const addition = `INSERT INTO usage_totals (level, start, key, names, calls, ${amounts.join(', ')}, bins)
  VALUES (?, ?, ?, ?, ?, ${[...amounts, 'bins'].map(() => '?').join(', ')})
  ON CONFLICT (level, start, key, names) DO UPDATE SET
    calls = CAST(MIN(calls + excluded.calls, ${largestSum}) AS INTEGER),
    ${amounts.map((name) => `${name} = NULLIF(CAST(MIN(COALESCE(${name}, 0) + COALESCE(excluded.${name}, 0), ${largestSum}) AS INTEGER), 0)`).join(', ')},
    bins = excluded.bins`;

/** In the place of all dimensions but the key and failure. Calls that were refused have a status all the same. */
const noNames: readonly SqlValue[] = ['', '', '', '', 0];
const refusedNames: readonly SqlValue[] = ['', '', '', '', 400];

/** Calls that are added up. */
interface Sum {
  calls: number;
  readonly amounts: number[];
  /** Calls by bins of their times. */
  readonly bins: Map<string, number>;
}

/** Calls of one minute that are alike. */
interface Alike extends Sum {
  readonly start: number;
  readonly keyId: SqlValue;
  readonly names: readonly SqlValue[];
  readonly failed: SqlValue;
}

/** Amounts to add to one row of `usage_totals`. */
interface Addition extends Sum {
  readonly level: number;
  /** In milliseconds. */
  readonly start: number;
  /** Undefined in sums of all keys. */
  readonly keyId: SqlValue | undefined;
  readonly names: readonly SqlValue[];
  readonly failed: SqlValue;
}

/** SQL that adds up calls of one minute that are alike. `source` is SQL for rows with the columns of `usage_unsummed`. */
export function alikeInSqlite(source: string, more = ''): string {
  const alike = dimensions.join(', ');
  return `SELECT at - at % ${minute} AS start, ${alike}, COUNT(*) AS calls, ${amounts.map((name) => `TOTAL(${name}) AS ${name}`).join(', ')},
    group_concat(ms_bin) AS ms_bins, group_concat('f' || first_bin) AS first_bins${more}
    FROM (${source}) GROUP BY start, ${alike}`;
}

/**
 * Adds rows of {@link alikeInSqlite} to the sums of all levels; belongs inside a transaction. `minutesSince`: from when on sums of minutes are
 * made.
 *
 * Levels are added up here and not by SQLite, which would sort each row for every level: with 20 keys and 5 models that took four times as
 * long.
 */
export function addInSqlite(found: readonly Row[], minutesSince: number): Work<void> {
  return write(additionsOf(found.map(alikeOf), minutesSince));
}

/** Moves sums of a level to `usage_totals`: those from a time on, the oldest first. Returns the starts of those that were moved. */
export function* moveInSqlite(level: number, since: number, limit: number): Work<readonly number[]> {
  const found = yield* rows(
    'SELECT * FROM usage_sums WHERE level = ? AND start >= ? ORDER BY start LIMIT ?',
    level,
    since,
    limit,
  );
  const hasKeys = levels.some((one) => one.level === level && one.hasKeys);
  yield* write(
    found.map(
      ({ start, key_id: keyId, model, channel, format, operation, status, failed, calls, ...more }) => ({
        level,
        start: Number(start),
        keyId: hasKeys ? (keyId as SqlValue) : undefined,
        names: [model, channel, format, operation, status] as SqlValue[],
        failed: failed as SqlValue,
        calls: Number(calls),
        amounts: amounts.map((name) => Number(more[name])),
        bins: new Map(
          Object.entries(parseObject(String(more['bins'])) ?? {}).map(([bin, number]) => [
            bin,
            Number(number),
          ]),
        ),
      }),
    ),
  );
  const columns = ['level', 'start', ...dimensions];
  for (const one of found)
    yield* rows(
      `DELETE FROM usage_sums WHERE ${columns.map((name) => `${name} = ?`).join(' AND ')}`,
      ...columns.map((name) => one[name] as SqlValue),
    );
  return found.map(({ start }) => Number(start));
}

function* write(additions: Iterable<Addition>): Work<void> {
  const names = new SumNames();
  for (const one of additions) {
    const key = [
      one.level,
      startOf(one.start),
      one.keyId === undefined ? 0 : yield* names.key(one.keyId, one.start),
      yield* names.names([...one.names, one.failed], one.start),
    ];
    if (one.keyId === undefined) addBins(one.bins, yield* row(binsThere, ...key));
    yield* rows(
      addition,
      ...key,
      one.calls,
      ...one.amounts.map((amount) => (amount === 0 ? null : Math.min(amount, largestSum))),
      one.bins.size === 0 ? null : JSON.stringify(Object.fromEntries(one.bins)),
    );
  }
}

function alikeOf(one: Row): Alike {
  const { start, key_id: keyId, model, channel, format, operation, status, failed, calls } = one;
  const bins = new Map<string, number>();
  for (const listed of [one['ms_bins'], one['first_bins']])
    if (listed !== null) for (const bin of String(listed).split(',')) count(bins, bin, 1);
  return {
    start: Number(start),
    keyId: keyId as SqlValue,
    names: [model, channel, format, operation, status] as SqlValue[],
    failed: failed as SqlValue,
    calls: Number(calls),
    amounts: amounts.map((name) => Number(one[name])),
    bins,
  };
}

function additionsOf(all: Iterable<Alike>, minutesSince: number): Iterable<Addition> {
  const additions = new Map<string, Addition>();
  for (const alike of all) {
    const named = alike.names.join('\0');
    const isRefused = isRefusal(alike);
    const unnamed = isRefused ? refusedNames : noNames;
    for (const { level, size, hasKeys, hasNames } of levels) {
      const start = alike.start - (alike.start % size);
      if (size === minute && start < minutesSince) continue;
      const keyId = hasKeys ? alike.keyId : '';
      const key = `${level} ${start} ${String(alike.failed)} ${String(keyId)}\0${hasNames ? named : isRefused ? 'refused' : ''}`;
      let one = additions.get(key);
      if (one === undefined) {
        one = {
          level,
          start,
          keyId: hasKeys ? alike.keyId : undefined,
          names: hasNames ? alike.names : unnamed,
          failed: alike.failed,
          calls: 0,
          amounts: amounts.map(() => 0),
          bins: new Map(),
        };
        additions.set(key, one);
      }
      one.calls += alike.calls;
      for (let index = 0; index < amounts.length; index += 1)
        one.amounts[index] = (one.amounts[index] ?? 0) + (alike.amounts[index] ?? 0);
      if (!hasKeys) for (const [bin, calls] of alike.bins) count(one.bins, bin, calls);
    }
  }
  return additions.values();
}

function isRefusal({ names: [, channel, , , status], failed }: Alike): boolean {
  return Number(failed) === 1 && channel === '' && Number(status) >= 400 && Number(status) <= 498;
}

/** Adds the bins of the row that is there, if any. */
function addBins(bins: Map<string, number>, there: Row | undefined): void {
  if (there === undefined) return;
  for (const [bin, calls] of Object.entries(parseObject(String(there['bins'] ?? '')) ?? {}))
    count(bins, bin, Number(calls));
}

function count(bins: Map<string, number>, bin: string, calls: number): void {
  bins.set(bin, (bins.get(bin) ?? 0) + calls);
}
