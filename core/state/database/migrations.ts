/** Runs the migration steps that a database lacks, in SQLite and PostgreSQL, and rejects databases of newer versions. */
import type { DatabaseSync } from 'node:sqlite';

/**
 * One migration step, run once in each database, in both dialects (several statements, `;` between them).
 *
 * Each file of `tables/` exports a list of steps, and `tables/index.ts` joins the lists. A step that was released is never edited, removed or
 * renamed: another change is another step at the end of its list.
 */
export interface Step {
  /** Unlike any other step's: `ledger-1`, `ledger-2`. */
  readonly name: string;
  readonly sqlite: string;
  readonly postgres: string;
  /**
   * True when gateways of the previous version run on tables with this step. It is recorded in a table that they do not read, so that they start
   * beside newer ones. Such a step changes nothing that the previous version reads or writes; it uses triggers to react to writes of that
   * version.
   */
  readonly isAddition?: true;
}

/** The steps, and the database that they are for. */
export interface Migration {
  readonly steps: readonly Step[];
  /** The database as messages may name it. */
  readonly url: string;
}

/** Under this name, because the database may be shared with another program that has a `migrations` of its own. */
const NOTES = 'CREATE TABLE IF NOT EXISTS sluice_migrations (name TEXT PRIMARY KEY, applied BIGINT NOT NULL)';
const ADDITION_NOTES =
  'CREATE TABLE IF NOT EXISTS sluice_additions (name TEXT PRIMARY KEY, applied BIGINT NOT NULL)';
/** Tables that record the applied steps. */
const noteTables = ['sluice_migrations', 'sluice_additions'] as const;

/** Names of the steps that were applied to a database. */
export interface AppliedSteps {
  readonly migrations: readonly string[];
  /** Those that gateways of older versions need not know. */
  readonly additions: readonly string[];
}

/** Maximum time that a start waits for another gateway's migration, in milliseconds. */
const PATIENCE = 60_000;

/** Any number that no other program on the same server is likely to lock. */
const ADVISORY_LOCK = 5_717_440_151_029;

/**
 * Returns the steps that a database lacks. Throws an Error for the operator when it has steps that this version does not know, because a newer
 * version has changed the tables.
 */
export function missingSteps(
  { steps, url }: Migration,
  { migrations, additions }: AppliedSteps,
): readonly Step[] {
  const known = new Set(steps.map(({ name }) => name));
  const newer = migrations.find((name) => !known.has(name));
  if (newer !== undefined) {
    throw new Error(
      `The database ${url} was changed by a newer version of Sluice (its step "${newer}" is not known here). Start that version, or restore a copy of the database from before.`,
    );
  }
  const done = new Set([...migrations, ...additions]);
  return steps.filter(({ name }) => !done.has(name));
}

function notesOf({ isAddition }: Step): (typeof noteTables)[number] {
  return isAddition === true ? 'sluice_additions' : 'sluice_migrations';
}

/** Returns the steps that were applied to this SQLite database. */
export function appliedInSqlite(connection: DatabaseSync): AppliedSteps {
  const [migrations = [], additions = []] = noteTables.map((table) => {
    const exists = connection
      .prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?")
      .get(table);
    if (exists === undefined) return [];
    const rows = connection.prepare(`SELECT name FROM ${table}`).all();
    return rows.map((row) => String(row['name']));
  });
  return { migrations, additions };
}

/** Runs the missing steps in one transaction. Processes that start at the same time wait for the first of them. */
export function migrateSqlite(connection: DatabaseSync, migration: Migration): void {
  if (missingSteps(migration, appliedInSqlite(connection)).length === 0) return;
  const { timeout } = connection.prepare('PRAGMA busy_timeout').get() as { readonly timeout: number };
  connection.exec(`PRAGMA busy_timeout = ${PATIENCE}`);
  try {
    connection.exec('BEGIN IMMEDIATE');
    connection.exec(`${NOTES}; ${ADDITION_NOTES}`);
    for (const step of missingSteps(migration, appliedInSqlite(connection))) {
      connection.exec(step.sqlite);
      connection
        .prepare(`INSERT INTO ${notesOf(step)} (name, applied) VALUES (?, ?)`)
        .run(step.name, Date.now());
    }
    connection.exec('COMMIT');
  } catch (error) {
    // Some failures (a full disk) have ended the transaction already.
    if (connection.isTransaction) connection.exec('ROLLBACK');
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`The tables of the database ${migration.url} cannot be brought up to date: ${reason}.`, {
      cause: error,
    });
  } finally {
    connection.exec(`PRAGMA busy_timeout = ${timeout}`);
  }
}

/** A PostgreSQL connection for migrations. One text may have several statements when there are no values. */
export interface MigratingSession {
  query(
    sql: string,
    values?: readonly (string | number)[],
    options?: { readonly patience?: number },
  ): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/** Returns the steps that were applied to this PostgreSQL database. */
export async function appliedInPostgres(session: MigratingSession): Promise<AppliedSteps> {
  const namesIn = async (table: string): Promise<readonly string[]> => {
    const [row] = await session.query(`SELECT to_regclass('${table}') IS NOT NULL AS exists`);
    if (row?.['exists'] !== true) return [];
    return (await session.query(`SELECT name FROM ${table}`)).map(({ name }) => String(name));
  };
  const [migrations, additions] = noteTables;
  return { migrations: await namesIn(migrations), additions: await namesIn(additions) };
}

/** As {@link migrateSqlite}. Must run inside a transaction, whose end releases the lock. */
export async function migratePostgres(session: MigratingSession, migration: Migration): Promise<void> {
  // An advisory lock, because tables that do not exist yet cannot be locked.
  await session.query(`SET LOCAL lock_timeout = ${PATIENCE}; SET LOCAL statement_timeout = 0`);
  await session.query(`SELECT pg_advisory_xact_lock(${ADVISORY_LOCK})`, [], { patience: PATIENCE });
  await session.query(`${NOTES}; ${ADDITION_NOTES}`);
  for (const step of missingSteps(migration, await appliedInPostgres(session))) {
    await session.query(step.postgres, [], { patience: PATIENCE });
    const note = `INSERT INTO ${notesOf(step)} (name, applied) VALUES ($1, $2)`;
    await session.query(note, [step.name, Date.now()]);
  }
}
