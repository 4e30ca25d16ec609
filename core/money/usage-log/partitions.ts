/** Partitions of the usage log's tables in PostgreSQL: one for some days each, made before they are needed, and removed as a whole. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Database } from '../../state/database/index.ts';
import { PostgresError } from '../../state/database/postgres-error.ts';
import type { PostgresDatabase, PostgresSession } from '../../state/database/postgres.ts';
import { creationOf, lackingIndexes, partitionIndexes } from './partition-indexes.ts';

const day = 86_400_000;

/** Tables that are partitioned, those of records last: what a crash leaves is a record without details. */
export const partedTables = ['usage_details', 'usage_attempts', 'usage_records'] as const;
type Table = (typeof partedTables)[number];

/** Days for which there are partitions beforehand. */
const daysAhead = 3;

/** When partitions are few enough to be planned for in a few milliseconds. */
const mostPartitions = 120;

/** How long a change waits for those who read or write, in milliseconds. New ones wait for the change meanwhile, so it is short. */
const lockTimeout = 250;
const attempts = 5;
const retryPause = 500;
const lockNotAvailable = '55P03';

/** For what reads or moves many rows, and for changes of tables, which a busy server is slow to write. Nobody waits for them. */
const long = { patience: 600_000 } as const;

/** Any number that no other lock of this database has. */
const advisoryLock = 5_717_440_151_031;

/** A partition with records of a time; `until` is exclusive. */
export interface Partition {
  readonly name: string;
  readonly since: number;
  readonly until: number;
  /** True for the one that takes what no other takes. */
  readonly isDefault: boolean;
}

/** Returns the partitions of a table in the order of time. */
export async function partitionsOf(session: PostgresSession, table: Table): Promise<readonly Partition[]> {
  const found = await session.query(
    `SELECT c.relname AS name, pg_get_expr(c.relpartbound, c.oid) AS bound FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = to_regclass($1)`,
    [table],
    long,
  );
  return found
    .map(({ name, bound }) => {
      const [, since = '', until = ''] =
        /FROM \('?([^')]+)'?\) TO \('?([^')]+)'?\)/.exec(String(bound)) ?? [];
      const isDefault = bound === 'DEFAULT';
      return {
        name: String(name),
        // MINVALUE has no digits.
        since: isDefault ? Number.MAX_SAFE_INTEGER : /^-?\d+$/.test(since) ? Number(since) : 0,
        until: isDefault ? Number.MAX_SAFE_INTEGER : Number(until),
        isDefault,
      };
    })
    .toSorted((one, other) => one.since - other.since || one.until - other.until);
}

/** Width of partitions for records that are kept for so many days, in milliseconds: a day, unless there were too many of them. */
function widthFor(days: number): number {
  return Math.ceil(days / mostPartitions) * day;
}

/** Records that are kept for fewer days go one by one, when they are too old. */
const fewestWholeDays = 7;

/** True when records that are kept for so many days are removed by whole partitions. */
export function keepsWholeDays(kind: Database['kind'], days: number): boolean {
  return kind === 'postgres' && days >= fewestWholeDays;
}

/** Returns the time of the last records that are removed together with those of a time. */
export async function removedWith(database: Database, days: number, at: number): Promise<number> {
  if (database.kind === 'sqlite' || !keepsWholeDays(database.kind, days)) return at;
  return (await partialAt(database, at))?.until ?? at;
}

/**
 * Makes the partitions that are missing from now on. The table as it was before there were partitions becomes the first of them, without a
 * copy: a check that is made beside those who write says that it ends before a day. Does nothing where another process is at it.
 */
export async function makePartitions(
  database: PostgresDatabase,
  days: number,
  now = Date.now(),
): Promise<void> {
  for (const table of partedTables) {
    await boundFirst(database, table, now);
    const width = widthFor(days);
    for (;;) {
      const existing = await partitionsOf(database, table);
      const since = existing.reduce((end, one) => (one.isDefault ? end : Math.max(end, one.until)), 0);
      if (since === 0 || since > now + daysAhead * day) break;
      if (!(await changing(database, (session) => addPartition(session, table, since, since + width))))
        return;
    }
  }
  await addIndexes(database, now);
}

/** Maximum number of pages of a partition in use whose indexes are made all the same, because that takes less than a second. */
const mostPages = 8_000;

/**
 * Makes the indexes that partitions of an older version lack. Writers wait for it, so that a large partition gets them when its time has
 * been over for a day.
 */
async function addIndexes(database: PostgresDatabase, now: number): Promise<void> {
  const lacking = await database.query(lackingIndexes, [], long);
  if (lacking.length === 0) return;
  const partitions = await partitionsOf(database, 'usage_records');
  for (const { name, number, pages } of lacking) {
    const until = partitions.find((one) => one.name === name)?.until ?? 0;
    if (until + day > now && Number(pages) > mostPages) continue;
    const isDone = await changing(database, async (session) => {
      await session.query(creationOf('usage_records', Number(number), String(name)), [], long);
    });
    if (!isDone) return;
  }
}

/** Removes the partitions that end before a time; returns how many records they had. Those that are in use stay until the next time. */
export async function dropPartitions(database: PostgresDatabase, before: number): Promise<number> {
  let removed = 0;
  for (const table of partedTables) {
    for (const { name, until, isDefault } of await partitionsOf(database, table)) {
      if (isDefault || until > before) continue;
      const count = table === 'usage_records' ? await countOf(database, name) : 0;
      const isDone = await changing(database, async (session) => {
        await session.query(`DROP TABLE IF EXISTS ${name}`, [], long);
      });
      if (!isDone) return removed;
      removed += count;
    }
  }
  return removed;
}

/**
 * Returns the time before which records are removed by themselves, when those before a time are to go. A partition of days goes as a whole,
 * when the last of its records is too old: to remove its records as they age would cost as much as to write them.
 */
export async function rangeEnd(database: PostgresDatabase, before: number): Promise<number> {
  return (await partialAt(database, before))?.since ?? before;
}

/** The partition of days that a time is in. */
async function partialAt(database: PostgresDatabase, at: number): Promise<Partition | undefined> {
  const found = await partitionsOf(database, 'usage_records');
  return found.find(({ since, until, isDefault }) => !isDefault && since > 0 && since <= at && at < until);
}

async function countOf(database: PostgresDatabase, name: string): Promise<number> {
  return database.transaction(async (session) => {
    await session.query('SET LOCAL statement_timeout = 0');
    const [row] = await session.query(`SELECT COUNT(*) AS count FROM ${name}`, [], long);
    return Number(row?.['count']);
  });
}

/** Makes a partition for a time, with what has come in for it already. */
async function addPartition(
  session: PostgresSession,
  table: Table,
  since: number,
  until: number,
): Promise<void> {
  const existing = await partitionsOf(session, table);
  if (existing.some((one) => !one.isDefault && one.until > since)) return;
  const name = `${table}_${new Date(since).toISOString().slice(0, 10).replaceAll('-', '')}`;
  await createTable(session, table, name);
  const rest = existing.find(({ isDefault }) => isDefault);
  const columns = await columnsOf(session, table);
  // Records of a gateway whose clock is ahead, or of a time when nobody made partitions.
  if (rest !== undefined)
    await session.query(
      `WITH early AS (DELETE FROM ${rest.name} WHERE at >= ${since} AND at < ${until} RETURNING *)
       INSERT INTO ${name} (${columns}) SELECT ${columns} FROM early`,
      [],
      long,
    );
  await session.query(
    `ALTER TABLE ${table} ATTACH PARTITION ${name} FOR VALUES FROM (${since}) TO (${until})`,
    [],
    long,
  );
}

async function createTable(session: PostgresSession, table: Table, name: string): Promise<void> {
  const statements = [...partitionIndexes[table].keys()].map((number) => creationOf(table, number, name));
  await session.query(
    `CREATE TABLE ${name} (LIKE ${table} INCLUDING DEFAULTS); ${statements.join('; ')}`,
    [],
    long,
  );
}

async function columnsOf(session: PostgresSession, table: Table): Promise<string> {
  const found = await session.query(
    'SELECT attname AS name FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum',
    [table],
    long,
  );
  return found.map(({ name }) => String(name)).join(', ');
}

/** Gives the table from before an end, where it takes everything still. */
async function boundFirst(database: PostgresDatabase, table: Table, now: number): Promise<void> {
  const before = `${table}_before`;
  const isWhole = (found: readonly Partition[]): boolean =>
    found.some(({ name, isDefault }) => isDefault && name === before);
  if (!isWhole(await partitionsOf(database, table))) return;
  const [newest] = await database.query(`SELECT at FROM ${before} ORDER BY at DESC LIMIT 1`);
  // Two days ahead: until this is done, nothing can be written from then on.
  const end = (Math.floor(Math.max(now, Number(newest?.['at'] ?? 0)) / day) + 2) * day;
  const check = `${before}_end`;
  const dropCheck = `ALTER TABLE ${before} DROP CONSTRAINT IF EXISTS ${check}`;
  const bounded = await changing(database, async (session) => {
    await session.query(dropCheck, [], long);
    await session.query(
      `ALTER TABLE ${before} ADD CONSTRAINT ${check} CHECK (at < ${end}) NOT VALID`,
      [],
      long,
    );
  });
  if (!bounded) return;
  let isDone = false;
  try {
    // Reads all rows; others write meanwhile.
    await database.transaction(async (session) => {
      await session.query('SET LOCAL statement_timeout = 0');
      await session.query(`ALTER TABLE ${before} VALIDATE CONSTRAINT ${check}`, [], long);
    });
    isDone = await changing(database, async (session) => {
      if (!isWhole(await partitionsOf(session, table))) return;
      await createTable(session, table, `${table}_other`);
      await session.query(`ALTER TABLE ${table} DETACH PARTITION ${before}`, [], long);
      await session.query(
        `ALTER TABLE ${table} ATTACH PARTITION ${before} FOR VALUES FROM (MINVALUE) TO (${end})`,
        [],
        long,
      );
      await session.query(`ALTER TABLE ${table} ATTACH PARTITION ${table}_other DEFAULT`, [], long);
    });
  } finally {
    if (!isDone) await changing(database, async (session) => void (await session.query(dropCheck, [], long)));
  }
}

/**
 * Changes tables in a transaction; returns false when another process does, or others use the tables all the time.
 */
async function changing(
  database: PostgresDatabase,
  work: (session: PostgresSession) => Promise<void>,
): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await database.transaction(async (session): Promise<boolean> => {
        const [lock] = await session.query('SELECT pg_try_advisory_xact_lock($1) AS is_ours', [advisoryLock]);
        if (lock?.['is_ours'] !== true) return false;
        await session.query(`SET LOCAL lock_timeout = ${lockTimeout}; SET LOCAL statement_timeout = 0`);
        await work(session);
        return true;
      });
    } catch (error) {
      if (!(error instanceof PostgresError && error.code === lockNotAvailable)) throw error;
      if (attempt === attempts) return false;
      // oxlint-disable-next-line no-await-in-loop -- others may have ended by then
      await pause(retryPause * attempt);
    }
  }
}
