import type { DatabaseSync } from 'node:sqlite';

/**
 * One change to the tables, made once in each database, in both of its dialects (several statements, `;` between them).
 *
 * A part of the state that has tables exports a list of steps from a file of its own (`ledger-schema.ts`), and `schema.ts` adds the list to
 * the others. A step that was released is never edited, removed or renamed: another change is another step at the end of the list.
 */
export interface Step {
  /** Unlike any other step's: `ledger-1`, `ledger-2`. */
  readonly name: string;
  readonly sqlite: string;
  readonly postgres: string;
  /**
   * True when gateways of the version before run on tables with this step. It is noted where they do not look, so that they start beside
   * newer ones, too. Such a step changes nothing that the version before reads or writes; where it watches what that version writes, a
   * trigger does.
   */
  readonly isAddition?: true;
}

/** How a database says what was done to it, and is changed. Everything runs in the transaction of its owner. */
export interface Migration {
  readonly steps: readonly Step[];
  /** The database as messages may name it. */
  readonly url: string;
}

/** Under this name, because the database may be shared with another program that has a `migrations` of its own. */
const NOTES = 'CREATE TABLE IF NOT EXISTS sluice_migrations (name TEXT PRIMARY KEY, applied BIGINT NOT NULL)';
const ADDITION_NOTES =
  'CREATE TABLE IF NOT EXISTS sluice_additions (name TEXT PRIMARY KEY, applied BIGINT NOT NULL)';
/** Tables that note which steps were made. */
const noteTables = ['sluice_migrations', 'sluice_additions'] as const;

/** Names of the steps that were made in a database. */
export interface AppliedSteps {
  readonly migrations: readonly string[];
  /** Those that gateways of older versions need not know. */
  readonly additions: readonly string[];
}

/** How long a start waits for another gateway's migration, in milliseconds. */
const PATIENCE = 60_000;

/** Any number that no other program on the same server is likely to lock. */
const ADVISORY_LOCK = 5_717_440_151_029;

/**
 * The steps that a database still needs. Throws an Error for the operator when it has some that this version does not know: a newer one
 * has changed the tables.
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

/** Returns which steps were made in this SQLite database. */
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

/** Makes the missing steps, all or none. Processes that start at once wait for the first of them. */
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

/** What a migration needs of a Postgres connection. Several statements may stand in one text when there are no values. */
export interface MigratingSession {
  query(
    sql: string,
    values?: readonly (string | number)[],
    options?: { readonly patience?: number },
  ): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/** Returns which steps were made in this Postgres database. */
export async function appliedInPostgres(session: MigratingSession): Promise<AppliedSteps> {
  const namesIn = async (table: string): Promise<readonly string[]> => {
    const [row] = await session.query(`SELECT to_regclass('${table}') IS NOT NULL AS exists`);
    if (row?.['exists'] !== true) return [];
    return (await session.query(`SELECT name FROM ${table}`)).map(({ name }) => String(name));
  };
  const [migrations, additions] = noteTables;
  return { migrations: await namesIn(migrations), additions: await namesIn(additions) };
}

/** As {@link migrateSqlite}. Belongs inside a transaction, with which the lock ends. */
export async function migratePostgres(session: MigratingSession, migration: Migration): Promise<void> {
  // A lock of the whole migration, since tables that do not exist yet cannot be locked.
  await session.query(`SET LOCAL lock_timeout = ${PATIENCE}; SET LOCAL statement_timeout = 0`);
  await session.query(`SELECT pg_advisory_xact_lock(${ADVISORY_LOCK})`, [], { patience: PATIENCE });
  await session.query(`${NOTES}; ${ADDITION_NOTES}`);
  for (const step of missingSteps(migration, await appliedInPostgres(session))) {
    await session.query(step.postgres, [], { patience: PATIENCE });
    const note = `INSERT INTO ${notesOf(step)} (name, applied) VALUES ($1, $2)`;
    await session.query(note, [step.name, Date.now()]);
  }
}
