/** Rows that are to be added up for a question. */
import type { Database } from '../../state/database/index.ts';
import {
  addedAmounts as amounts,
  addedUp,
  chargeAlone,
  outcomesOf,
  rowsToAdd,
  uncharged,
} from './added-up.ts';
import type { UsageFilter } from './index.ts';
import { isLevel, type Segment } from './levels.ts';
import { narrowing, type Source } from './narrowing.ts';
import { conditions } from './questions.ts';
import { chargedMore } from '../../state/database/tables/usage-charges.ts';
import { summedOfRecords } from './summing.ts';
import { olderTotalsIn, totalsIn } from './totals.ts';

const dimensions = 'key_id, model, channel, format, status, failed';

/** By what rows are grouped, so that those of one group are added up before their names are looked up. */
export interface Apart {
  /** Width of buckets of time, in milliseconds. */
  readonly bucket: number | undefined;
  readonly byKey: boolean;
}

const addedColumns = `calls, ${amounts.join(', ')}, ${outcomesOf('calls')}`;

/**
 * Returns the rows of these segments that fit a filter: sums, records that are in none yet, and records of the segments that no sums fit.
 * One statement sees all of them as they are at one time. By keys, where the segments are of records alone, rows have the number of a key, or its id
 * where it has no number yet: see {@link keysInOrder} for sums.
 */
export function sourceOf(
  kind: Database['kind'],
  filter: UsageFilter,
  segments: readonly Segment[],
  apart: Apart,
): Source {
  const ofSums = segments.filter(({ level }) => level !== 'records');
  const own = ofSums.length > 0 ? [totalsOf(kind, filter, ofSums, apart.bucket)] : [];
  const others = joined([...own, ...outsideTotals(kind, filter, segments)]);
  if (!apart.byKey)
    return {
      sql: `SELECT at, ${dimensions}, ${addedColumns} FROM (${others.sql}) AS others`,
      values: others.values,
    };
  // A key has a number when its first sum is written.
  return {
    sql: `SELECT k.id AS key, CASE WHEN k.id IS NULL THEN others.key_id END AS key_id, ${addedColumns}
      FROM (${others.sql}) AS others LEFT JOIN usage_keys k ON k.key_id = others.key_id`,
    values: others.values,
  };
}

/** Returns the rows that are not in `usage_totals`: sums of older gateways, and records. */
function outsideTotals(
  kind: Database['kind'],
  filter: UsageFilter,
  segments: readonly Segment[],
): readonly Source[] {
  const older = segments.flatMap(({ level, since, until }) =>
    level !== 'records' && isLevel(level)
      ? [olderTotalsIn({ level, since, until }, filter, summedColumns)]
      : [],
  );
  return [...older, ...recordParts(kind, filter, segments, false)];
}

/** Parts of a statement that adds up many keys, or finds the first of them by two amounts and adds up all amounts of these alone. */
export interface KeysInOrder {
  /** SELECT of what is not in `usage_totals`, added up by keys. A key without a number has one below zero, and its id in `key_id`. */
  readonly others: Source;
  /** SELECT of `key`, `calls` and `micro_dollars` in any number of rows. It reads `others`. */
  readonly compared: Source;
  /** SELECT of all amounts of all keys that are in `usage_totals`, one row for each. */
  readonly all: Source;
  /** SELECT of all amounts of the keys in `listed`. It reads `others`. */
  readonly listed: Source;
}

/** The keys that a statement adds up, by their numbers. `before` is exclusive. Keys without a number are below zero. */
export interface KeyRange {
  readonly from?: number;
  readonly before?: number;
}

/** Which keys are added up; absent for all. */
interface KeysAdded {
  /** The only keys that `others` has. */
  readonly ids?: readonly string[] | undefined;
  readonly range?: KeyRange;
}

/** Returns the parts for segments that have sums. `sum`: writes the SQL of a sum. */
export function keysInOrder(
  kind: Database['kind'],
  filter: UsageFilter,
  segments: readonly Segment[],
  sum: (value: string) => string,
  { ids, range = {} }: KeysAdded = {},
): KeysInOrder {
  const ofSums = segments.filter(({ level }) => level !== 'records');
  const outside = joined(outsideTotals(kind, filter, segments));
  const all = ['calls', ...amounts, 'failed_calls', 'refused_calls'];
  const chosen = 'SELECT key FROM listed';
  const among = ids === undefined ? '' : ` WHERE key_id IN (${ids.map(() => '?').join()})`;
  // With the types of the others: PostgreSQL would pass each row through two more steps to change them.
  const number = (name: string): string =>
    `${kind === 'sqlite' ? `t.${name}` : `CAST(t.${name} AS DOUBLE PRECISION)`} AS ${name}`;
  const rows = rowsToAdd(
    kind,
    { ...conditionsOf(filter, range), table: 'usage_totals', segments: ofSums },
    `t.key, ${number('calls')}, ${number('micro_dollars')}`,
  );
  const ofListed = addedUp(kind, {
    ...conditionsOf(filter),
    table: 'usage_totals',
    segments: ofSums,
    bucket: undefined,
    byId: true,
    among: { sql: chosen, values: [] },
  });
  return {
    all: keyTotalsOf(kind, filter, ofSums, range),
    others: {
      sql: `SELECT * FROM (SELECT COALESCE(k.id, CAST(-ROW_NUMBER() OVER () AS INTEGER)) AS key, g.* FROM (
          SELECT key_id, ${all.map((name) => `${sum(name)} AS ${name}`).join(', ')}
          FROM (SELECT key_id, ${addedColumns} FROM (${outside.sql}) AS found${among}) AS counted GROUP BY key_id
        ) AS g LEFT JOIN usage_keys k ON k.key_id = g.key_id) AS numbered WHERE 1 = 1${inRange('key', range)}`,
      values: [...outside.values, ...(ids ?? [])],
    },
    compared: {
      sql: `${rows.sql} UNION ALL SELECT key, calls, micro_dollars FROM others`,
      values: rows.values,
    },
    listed: {
      sql: `SELECT key, ${all.join(', ')} FROM (${ofListed.sql}) AS sums
        UNION ALL SELECT key, ${all.join(', ')} FROM others WHERE key IN (${chosen})`,
      values: ofListed.values,
    },
  };
}

/** The rows of the calls that `others` of {@link keysInOrder} has: it is read by the same statement. */
export const allOfOthers: Source = {
  sql: `SELECT calls, ${amounts.join(', ')}, failed_calls, refused_calls FROM others`,
  values: [],
};

/** Returns the rows of all calls of segments that sums have, whatever their keys, and {@link allOfOthers}. */
export function allOf(kind: Database['kind'], filter: UsageFilter, segments: readonly Segment[]): Source {
  const totals = totalsOf(kind, filter, segments, undefined);
  return {
    sql: `SELECT ${addedColumns} FROM (${totals.sql}) AS totals UNION ALL ${allOfOthers.sql}`,
    values: totals.values,
  };
}

const summedColumns = ['at', ...dimensions.split(', '), 'calls', ...uncharged.split(', ')];

/** Sums as `usage_totals` has them, by keys. */
function keyTotalsOf(
  kind: Database['kind'],
  filter: UsageFilter,
  segments: readonly Segment[],
  range: KeyRange,
): Source {
  const { sql, values } = addedUp(kind, {
    ...conditionsOf(filter, range),
    table: 'usage_totals',
    segments,
    bucket: undefined,
    byId: true,
  });
  return {
    sql: `SELECT g.key, g.calls, ${amounts.map((name) => `COALESCE(g.${name}, 0) AS ${name}`).join(', ')},
        g.failed_calls, g.refused_calls FROM (${sql}) AS g`,
    values,
  };
}

/** Sums as `usage_totals` has them, by names. */
function totalsOf(
  kind: Database['kind'],
  filter: UsageFilter,
  segments: readonly Segment[],
  bucket: number | undefined,
): Source {
  const { sql, values } = addedUp(kind, {
    ...conditionsOf(filter),
    table: 'usage_totals',
    segments,
    bucket,
    byId: false,
  });
  return {
    sql: `SELECT g.at, '' AS key_id, n.model, n.channel, n.format, n.status, n.failed, g.calls,
        ${amounts.map((name) => `COALESCE(g.${name}, 0) AS ${name}`).join(', ')}
      FROM (${sql}) AS g JOIN usage_names n ON n.id = g.names`,
    values,
  };
}

/** Returns the conditions of a column for a range of keys. */
function inRange(column: string, { from, before }: KeyRange): string {
  return `${from === undefined ? '' : ` AND ${column} >= ${Math.trunc(from)}`}${before === undefined ? '' : ` AND ${column} < ${Math.trunc(before)}`}`;
}

/** Conditions on sums: of the table, and of names. */
function conditionsOf(
  { keyId, ...others }: UsageFilter,
  range: KeyRange = {},
): {
  readonly ofTable: Source;
  readonly ofNames: Source;
} {
  return {
    ofTable:
      keyId === undefined
        ? { sql: inRange('t.key', range), values: [] }
        : { sql: ' AND t.key = (SELECT id FROM usage_keys WHERE key_id = ?)', values: [keyId] },
    ofNames: narrowing(others, 'n.'),
  };
}

/** As {@link sourceOf}, with the times of calls. */
export function sourceWithBins(
  kind: Database['kind'],
  filter: UsageFilter,
  segments: readonly Segment[],
): Source {
  const summed = ['start', ...dimensions.split(', '), 'calls', 'bins'];
  const parts = segments.flatMap(({ level, since, until }) => {
    if (level === 'records') return [];
    const sums = totalsIn({ level, since, until }, filter, summed);
    return [
      {
        sql: `SELECT start AS at, ${dimensions}, calls, bins FROM (${sums.sql}) AS sums`,
        values: sums.values,
      },
    ];
  });
  return joined([...parts, ...recordParts(kind, filter, segments, true)]);
}

/** Records that are in no sums yet, and those of segments that no sums fit. */
function recordParts(
  kind: Database['kind'],
  filter: UsageFilter,
  segments: readonly Segment[],
  withBins: boolean,
): readonly Source[] {
  const parts: Source[] = [];
  const narrowed = narrowing(filter);
  const ofSums = segments.filter(({ level }) => level !== 'records');
  const [first, last] = [ofSums[0], ofSums.at(-1)];
  const addWaiting = (table: string, counted: string): void => {
    if (first === undefined || last === undefined) return;
    parts.push({
      sql: `SELECT at, ${dimensions}, ${counted} FROM ${table} WHERE at >= ? AND at < ?${narrowed.sql}`,
      values: [first.since, last.until, ...narrowed.values],
    });
  };
  const bins = `1 AS calls, ${binsOf[kind]} AS bins`;
  addWaiting('usage_unsummed', withBins ? bins : `1 AS calls, ${uncharged}`);
  if (!withBins) addWaiting('usage_unsummed_charged', chargeAlone);
  for (const { level, since, until } of segments) {
    if (level !== 'records') continue;
    const own = conditions({ ...filter, since, until });
    parts.push({
      sql: `SELECT at, ${dimensions}, ${withBins ? bins : `1 AS calls, ${amounts.join(', ')}`}
        FROM (SELECT ${summedOfRecords}, COALESCE(${chargedMore[kind]('')}, 0) AS charged_more FROM usage_calls ${own.where}) AS records`,
      values: own.values,
    });
  }
  return parts;
}

function joined(parts: readonly Source[]): Source {
  return {
    sql: parts.map(({ sql }) => sql).join(' UNION ALL '),
    values: parts.flatMap(({ values }) => values),
  };
}

const binsOf: Readonly<Record<Database['kind'], string>> = {
  sqlite: `CASE WHEN first_bin IS NULL THEN json_object(CAST(ms_bin AS TEXT), 1) ELSE json_object(CAST(ms_bin AS TEXT), 1, 'f' || first_bin, 1) END`,
  postgres: `'{"' || ms_bin || '":1' || COALESCE(',"f' || first_bin || '":1', '') || '}'`,
};
