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
 * Records that are added up at once: some tens of milliseconds of a database's time, in which SQLite holds the event loop up. After a failure
 * they are half as many, so that a server that is slow keeps its time.
 */
const batches: Readonly<Record<Database['kind'], { readonly most: number; readonly least: number }>> = {
  sqlite: { most: 500, least: 25 },
  postgres: { most: 1_000, least: 25 },
};

/** Sums that are folded at once for each record that would be added up at once. */
const foldedPerRecord = { sqlite: 2, postgres: 10 } as const;

/** A row of `usage_calls` with the columns of `usage_unsummed`. Must equal what the triggers of the table write. */
export const summedOfRecords = `at, COALESCE(key_id, '') AS key_id, model, COALESCE(channel, '') AS channel, format, operation, status,
  CASE WHEN status >= 400 OR ended = 'interrupted' THEN 1 ELSE 0 END AS failed, input, output, cache_read, cache_write, reasoning,
  COALESCE(micro_dollars, 0) AS micro_dollars, ms_bin, first_bin`;

/** Records of a time from before there were sums. */
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
