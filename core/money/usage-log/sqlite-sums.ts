/** Adds records to the sums in SQLite. It is done here, because SQLite would sort each record for every level. */
import { parseObject } from '../../model/json.ts';
import { row, rows, type Row, type SqlValue, type Work } from '../../state/database/sql.ts';
import { amounts, dimensions, largestSum, levels, minute } from './levels.ts';

const columns = ['level', 'start', ...dimensions];
const isKey = columns.map((name) => `${name} = ?`).join(' AND ');
const binsThere = `SELECT bins FROM usage_sums WHERE ${isKey}`;
const addition = `INSERT INTO usage_sums (${columns.join(', ')}, calls, ${amounts.join(', ')}, bins)
  VALUES (${[...columns, 'calls', ...amounts, 'bins'].map(() => '?').join(', ')})
  ON CONFLICT (${columns.join(', ')}) DO UPDATE SET
    ${['calls', ...amounts].map((name) => `${name} = CAST(MIN(${name} + excluded.${name}, ${largestSum}) AS INTEGER)`).join(', ')},
    bins = excluded.bins`;

/** In the place of all dimensions but the key and failure. */
const noNames: readonly SqlValue[] = ['', '', '', '', 0];

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

/** What is to be added to one row of `usage_sums`. */
interface Addition extends Sum {
  /** The values of its primary key. */
  readonly key: readonly SqlValue[];
  readonly hasBins: boolean;
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
export function* addInSqlite(found: readonly Row[], minutesSince: number): Work<void> {
  for (const one of additionsOf(found.map(alikeOf), minutesSince)) {
    if (one.hasBins) addBins(one.bins, yield* row(binsThere, ...one.key));
    const bins = one.hasBins ? JSON.stringify(Object.fromEntries(one.bins)) : '{}';
    yield* rows(
      addition,
      ...one.key,
      one.calls,
      ...one.amounts.map((amount) => Math.min(amount, largestSum)),
      bins,
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
    for (const { level, size, hasKeys, hasNames } of levels) {
      const start = alike.start - (alike.start % size);
      if (size === minute && start < minutesSince) continue;
      const keyId = hasKeys ? alike.keyId : '';
      const place = `${level} ${start} ${String(alike.failed)} ${String(keyId)}\0${hasNames ? named : ''}`;
      let one = additions.get(place);
      if (one === undefined) {
        const key = [level, start, keyId, ...(hasNames ? alike.names : noNames), alike.failed];
        one = { key, hasBins: !hasKeys, calls: 0, amounts: amounts.map(() => 0), bins: new Map() };
        additions.set(place, one);
      }
      one.calls += alike.calls;
      for (let index = 0; index < amounts.length; index += 1)
        one.amounts[index] = (one.amounts[index] ?? 0) + (alike.amounts[index] ?? 0);
      if (one.hasBins) for (const [bin, calls] of alike.bins) count(one.bins, bin, calls);
    }
  }
  return additions.values();
}

/** Adds the bins of the row that is there, if any. */
function addBins(bins: Map<string, number>, there: Row | undefined): void {
  if (there === undefined) return;
  for (const [bin, calls] of Object.entries(parseObject(String(there['bins'])) ?? {}))
    count(bins, bin, Number(calls));
}

function count(bins: Map<string, number>, bin: string, calls: number): void {
  bins.set(bin, (bins.get(bin) ?? 0) + calls);
}
