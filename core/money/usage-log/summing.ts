/** Adds usage records to the sums in bounded batches, each in one transaction, and then moves and folds older sums. */
import type { Database } from '../../state/database/index.ts';
import { row, rows, sqlOf, type Row, type Sql, type Work } from '../../state/database/sql.ts';
import { addingLock } from './adding-lock.ts';
import { unfold } from './folded.ts';
import { Folding } from './folding.ts';
import { minutesKept } from './levels.ts';
import { Moving } from './moving.ts';
import { additionInPostgres } from './postgres-sums.ts';
import { addInSqlite, alikeInSqlite } from './sqlite-sums.ts';

/**
 * Number of records in a batch: some tens of milliseconds of a database's time, in which SQLite blocks the event loop. Halved after a failure,
 * so that a slow server stays within its timeout.
 */
const batches: Readonly<Record<Database['kind'], { readonly most: number; readonly least: number }>> = {
  sqlite: { most: 500, least: 25 },
  postgres: { most: 1_000, least: 25 },
};

/** Number of sums that are folded in a step, for each record of the batch size. */
const foldedPerRecord = { sqlite: 2, postgres: 10 } as const;

/** Columns of `usage_unsummed` for a row of `usage_calls`. Must equal the rows that the triggers of the table write. */
export const summedOfRecords = `at, COALESCE(key_id, '') AS key_id, model, COALESCE(channel, '') AS channel, format, operation, status,
  CASE WHEN status >= 400 OR ended = 'interrupted' THEN 1 ELSE 0 END AS failed, input, output, cache_read, cache_write, reasoning,
  COALESCE(micro_dollars, 0) AS micro_dollars, ms_bin, first_bin`;

/** SQL for records of a range that are older than the sums. */
const olderRecords = `SELECT ${summedOfRecords} FROM usage_calls r
    WHERE at >= ? AND at <= ? AND (at, id) >= (?, ?) AND (at, id) < (?, ?)
      AND NOT EXISTS (SELECT 1 FROM usage_late l WHERE l.at = r.at AND l.id = r.id)`;
const olderInPostgres = additionInPostgres(olderRecords);
const unsummedInPostgres = additionInPostgres(
  'DELETE FROM usage_unsummed WHERE ctid = ANY(ARRAY(SELECT ctid FROM usage_unsummed LIMIT ?)) RETURNING *',
);
const olderInSqlite = alikeInSqlite(olderRecords);
const unsummedInSqlite = alikeInSqlite(
  'SELECT rowid AS place, * FROM usage_unsummed ORDER BY rowid LIMIT ?',
  ', MAX(place) AS place',
);

/** Result of one step. */
interface Added {
  /** True when there may be more to add. */
  readonly hasMore: boolean;
}

/**
 * Returns a function that adds a bounded number of records to the sums and marks them as added in the same transaction, so that no record is
 * added twice or left out when processes run in parallel or are killed. Records since the introduction of sums come first, then older ones,
 * from the newest to the oldest. The function returns true when there may be more work.
 */
export function createSumming(database: Database, fewestFolded: number): () => Promise<boolean> {
  const sql = sqlOf(database);
  const { most, least } = batches[database.kind];
  const moving = new Moving(database.kind);
  const folding = new Folding(database.kind, fewestFolded);
  let batch = most;
  const minutesSince = (): number => Date.now() - minutesKept;

  function* addUnsummed(): Work<Added> {
    if (database.kind === 'postgres') {
      yield* rows(unsummedInPostgres, batch, minutesSince());
      const left = yield* row('SELECT 1 FROM usage_unsummed LIMIT 1');
      return { hasMore: left !== undefined };
    }
    const found = yield* rows(unsummedInSqlite, batch);
    if (found.length === 0) return { hasMore: false };
    yield* addInSqlite(found, minutesSince());
    yield* unfold(startsOf(found), false);
    const last = found.reduce((newest, { place }) => Math.max(newest, Number(place)), 0);
    yield* rows('DELETE FROM usage_unsummed WHERE rowid <= ?', last);
    return { hasMore: found.reduce((sum, { calls }) => sum + Number(calls), 0) === batch };
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
    const between = [lowest, at, lowest, lowestId, at, id];
    if (database.kind === 'postgres') yield* rows(olderInPostgres, ...between, minutesSince());
    else {
      const found = yield* rows(olderInSqlite, ...between);
      yield* addInSqlite(found, minutesSince());
      yield* unfold(startsOf(found), false);
    }
    yield* rows('UPDATE usage_summing SET at = ?, id = ? WHERE one = 1', lowest, lowestId);
    return { hasMore: true };
  }

  return async () => {
    if (!moving.isDue && !folding.isDue && !(await hasWork(sql))) return false;
    try {
      const { hasMore } = await sql.atomically(function* add() {
        if (!(yield* addingLock(database.kind))) return { hasMore: false };
        const { hasMore: more } = yield* addUnsummed();
        if (more || (yield* addOlder()).hasMore) return { hasMore: true };
        if (yield* moving.step(batch)) return { hasMore: true };
        return { hasMore: yield* folding.step(batch * foldedPerRecord[database.kind]) };
      });
      batch = Math.min(most, batch * 2);
      return hasMore;
    } catch (error) {
      batch = Math.max(least, Math.floor(batch / 2));
      throw error;
    }
  };
}

function startsOf(found: readonly Row[]): readonly number[] {
  return found.map(({ start }) => Number(start));
}

async function hasWork(sql: Sql): Promise<boolean> {
  const found = await sql.run(() =>
    row('SELECT 1 FROM usage_unsummed UNION ALL SELECT 1 FROM usage_summing LIMIT 1'),
  );
  return found !== undefined;
}
