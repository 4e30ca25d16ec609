import type { Database } from '../../state/database/index.ts';
import { row, rows, sqlOf, type Sql, type Work } from '../../state/database/sql.ts';
import { levels, minutesKept } from './levels.ts';

/**
 * Records that are added up at once: some tens of milliseconds of a database's time, in which SQLite holds the event loop up. After a failure
 * they are half as many, so that a server that is slow keeps its time.
 */
const batches: Readonly<Record<Database['kind'], { readonly most: number; readonly least: number }>> = {
  sqlite: { most: 250, least: 25 },
  postgres: { most: 1_000, least: 25 },
};

/** Any number that no other lock of this database has. */
const advisoryLock = 5_717_440_151_030;

const dimensions = ['key_id', 'model', 'channel', 'format', 'operation', 'status', 'failed'] as const;
const amounts = ['input', 'output', 'cache_read', 'cache_write', 'reasoning', 'micro_dollars'] as const;

/** Columns of a row that is to be summed. */
export const summed = ['at', ...dimensions, ...amounts, 'ms_bin', 'first_bin'] as const;

/** The same of a row of `usage_records`. Must equal what the triggers of the table write. */
export const summedOfRecords = `at, COALESCE(key_id, '') AS key_id, model, COALESCE(channel, '') AS channel, format, operation, status,
  CASE WHEN status >= 400 OR ended = 'interrupted' THEN 1 ELSE 0 END AS failed, input, output, cache_read, cache_write, reasoning,
  COALESCE(micro_dollars, 0) AS micro_dollars, ms_bin, first_bin`;

/** The words that the two kinds of databases have for the same. */
interface Dialect {
  /** A sum that no column is too small for. */
  readonly sum: (value: string) => string;
  readonly add: (one: string, other: string) => string;
  readonly object: string;
  /** Bins of the row that is there and of the one that comes. */
  readonly addBins: string;
  readonly empty: string;
}

/** More than any sum comes to that is true: what providers say of usage may be wrong. */
const largest = '9000000000000000000';

const dialects: Readonly<Record<Database['kind'], Dialect>> = {
  sqlite: {
    sum: (value) => `CAST(MIN(TOTAL(${value}), ${largest}) AS INTEGER)`,
    add: (one, other) => `CAST(MIN(${one} + ${other}, ${largest}) AS INTEGER)`,
    object: 'json_group_object(bin, calls)',
    addBins: `json_patch(usage_sums.bins, (SELECT json_group_object(key, value + COALESCE(json_extract(usage_sums.bins, '$."' || key || '"'), 0))
      FROM json_each(excluded.bins)))`,
    empty: "'{}'",
  },
  postgres: {
    sum: (value) => `LEAST(SUM(${value}), ${largest})::bigint`,
    add: (one, other) => `LEAST(${one}::numeric + ${other}, ${largest})::bigint`,
    object: 'jsonb_object_agg(bin, calls)',
    addBins: `usage_sums.bins || COALESCE((SELECT jsonb_object_agg(key, value::bigint + COALESCE((usage_sums.bins ->> key)::bigint, 0))
      FROM jsonb_each_text(excluded.bins)), '{}')`,
    empty: "'{}'::jsonb",
  },
};

/** Widths of all levels are multiples of it. */
const smallest = Math.min(...levels.map(({ size }) => size));

const levelRows = levels
  .map(
    ({ level, size, hasNames, hasKeys }) =>
      `SELECT ${level} AS level, ${size} AS size, ${Number(hasNames)} AS names, ${Number(hasKeys)} AS keys`,
  )
  .join(' UNION ALL ');

/**
 * SQL that adds rows to the sums of all levels. `source` gives rows with the columns {@link summed}. Its only value besides those of
 * `source` is the time from which on sums of minutes are made.
 */
function addition(kind: Database['kind'], source: string): string {
  const { sum, add, object, addBins, empty } = dialects[kind];
  const key = `level, start, ${dimensions.join(', ')}`;
  const dimension = (name: (typeof dimensions)[number]): string => {
    if (name === 'failed') return 'failed';
    if (name === 'key_id') return "CASE WHEN keys = 1 THEN key_id ELSE '' END AS key_id";
    return `CASE WHEN names = 1 THEN ${name} ELSE ${name === 'status' ? '0' : "''"} END AS ${name}`;
  };
  const sums = amounts
    .map((name) => `SUM(CAST(${name} AS ${kind === 'sqlite' ? 'REAL' : 'NUMERIC'})) AS ${name}`)
    .join(', ');
  const alike = [...dimensions, 'ms_bin', 'first_bin'].join(', ');
  // Calls of a minute that are alike are added up first, because each row is read for all levels: once for its duration, with the amounts,
  // and once for the time until its first event.
  return `${source},
    minutes AS (
      SELECT at - at % ${smallest} AS minute, ${alike}, COUNT(*) AS calls, ${sums}
      FROM source GROUP BY minute, ${alike}
    ),
    parts AS (
      SELECT level, minute - minute % size AS start, ${dimensions.map(dimension).join(', ')}, is_first,
        CASE WHEN keys = 1 THEN NULL WHEN is_first = 1 THEN 'f' || first_bin ELSE CAST(ms_bin AS TEXT) END AS bin, calls,
        ${amounts.map((name) => `CASE WHEN is_first = 1 THEN 0 ELSE ${name} END AS ${name}`).join(', ')}
      FROM minutes CROSS JOIN (${levelRows}) AS levels CROSS JOIN (SELECT 0 AS is_first UNION ALL SELECT 1) AS measures
      WHERE (is_first = 0 OR (keys = 0 AND first_bin IS NOT NULL)) AND (size > ${smallest} OR minute >= ?)
    ),
    bins AS (
      SELECT ${key}, is_first, bin, SUM(calls) AS calls, ${sums}
      FROM parts GROUP BY ${key}, is_first, bin
    )
    INSERT INTO usage_sums (${key}, calls, ${amounts.join(', ')}, bins)
    SELECT ${key}, ${sum('CASE WHEN is_first = 1 THEN 0 ELSE calls END')}, ${amounts.map((name) => sum(name)).join(', ')},
      COALESCE(${object} FILTER (WHERE bin IS NOT NULL), ${empty})
    FROM bins GROUP BY ${key} ORDER BY ${key}
    ON CONFLICT (${key}) DO UPDATE SET
      ${['calls', ...amounts].map((name) => `${name} = ${add(`usage_sums.${name}`, `excluded.${name}`)}`).join(', ')}, bins = ${addBins}`;
}

/** SQL for the two kinds of rows that are to be added. */
function statementsOf(kind: Database['kind']) {
  const records = `WITH source AS (SELECT ${summedOfRecords} FROM usage_records r
    WHERE at >= ? AND at <= ? AND (at, id) >= (?, ?) AND (at, id) < (?, ?)
      AND NOT EXISTS (SELECT 1 FROM usage_late l WHERE l.at = r.at AND l.id = r.id))`;
  const unsummed =
    kind === 'sqlite'
      ? 'WITH source AS (SELECT * FROM usage_unsummed WHERE rowid <= ?)'
      : `WITH source AS (DELETE FROM usage_unsummed WHERE ctid = ANY(ARRAY(SELECT ctid FROM usage_unsummed LIMIT ?)) RETURNING *)`;
  return { records: addition(kind, records), unsummed: addition(kind, unsummed) };
}

/** Which part of {@link createSumming}'s work was done. */
interface Added {
  /** Maybe more is to be added. */
  readonly hasMore: boolean;
}

/**
 * Returns a function that adds records to the sums, a bounded number of them at a time, in one transaction with the note of which these
 * were: nothing is added twice or left out, whichever processes do it, and wherever they end. What was written since there are sums goes
 * first, then what is older, from the newest to the oldest.
 */
export function createSumming(database: Database): () => Promise<boolean> {
  const sql = sqlOf(database);
  const { most, least } = batches[database.kind];
  let batch = most;
  const { records, unsummed } = statementsOf(database.kind);
  const minutesSince = (): number => Date.now() - minutesKept;

  function* addUnsummed(): Work<Added> {
    if (database.kind === 'postgres') {
      yield* rows(unsummed, batch, minutesSince());
      const left = yield* row('SELECT 1 FROM usage_unsummed LIMIT 1');
      return { hasMore: left !== undefined };
    }
    const last = yield* row(
      'SELECT MAX(place) AS place, COUNT(*) AS count FROM (SELECT rowid AS place FROM usage_unsummed ORDER BY rowid LIMIT ?)',
      batch,
    );
    const place = Number(last?.['place'] ?? 0);
    if (place === 0) return { hasMore: false };
    yield* rows(unsummed, place, minutesSince());
    yield* rows('DELETE FROM usage_unsummed WHERE rowid <= ?', place);
    return { hasMore: Number(last?.['count']) === batch };
  }

  function* addOlder(): Work<Added> {
    const cursor = yield* row(`SELECT at, id FROM usage_summing WHERE one = 1${sql.forUpdate}`);
    if (cursor === undefined) return { hasMore: false };
    const [at, id] = [Number(cursor['at']), String(cursor['id'])];
    const last = yield* row(
      `SELECT at, id FROM (SELECT at, id FROM usage_records WHERE at <= ? AND (at, id) < (?, ?) ORDER BY at DESC, id DESC LIMIT ?) AS newest
       ORDER BY at, id LIMIT 1`,
      at,
      at,
      id,
      batch,
    );
    if (last === undefined) {
      yield* rows('DELETE FROM usage_summing WHERE one = 1');
      yield* rows('DELETE FROM usage_late');
      return { hasMore: false };
    }
    const [lowest, lowestId] = [Number(last['at']), String(last['id'])];
    yield* rows(records, lowest, at, lowest, lowestId, at, id, minutesSince());
    yield* rows('UPDATE usage_summing SET at = ?, id = ? WHERE one = 1', lowest, lowestId);
    return { hasMore: true };
  }

  return async () => {
    if (!(await hasWork(sql))) return false;
    try {
      const { hasMore } = await sql.atomically(function* add() {
        if (database.kind === 'postgres') {
          // One adds at a time: others would wait for its rows.
          const lock = yield* row('SELECT pg_try_advisory_xact_lock(?) AS is_ours', advisoryLock);
          if (lock?.['is_ours'] !== true) return { hasMore: false };
        }
        const { hasMore: more } = yield* addUnsummed();
        return more ? { hasMore: true } : yield* addOlder();
      });
      batch = Math.min(most, batch * 2);
      return hasMore;
    } catch (error) {
      batch = Math.max(least, Math.floor(batch / 2));
      throw error;
    }
  };
}

async function hasWork(sql: Sql): Promise<boolean> {
  const found = await sql.run(() =>
    row('SELECT 1 FROM usage_unsummed UNION ALL SELECT 1 FROM usage_summing LIMIT 1'),
  );
  return found !== undefined;
}
