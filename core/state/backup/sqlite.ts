/** Saves an SQLite file while gateways write to it, and makes one of an archive. */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { appliedInSqlite, migrateSqlite, type Step } from '../database/migrations.ts';
import { syncFile, type ArchiveWriter, type Value } from './archive.ts';
import type { Source, Target } from './ends.ts';
import { filledByTriggers, savedTables, stepsNamed } from './tables.ts';

/** Opens a file to save it. Its transaction reads what was committed before it began. */
export function openSqliteSource(path: string): Source {
  if (path === ':memory:' || !existsSync(path))
    throw new Error(`There is no database at ${path}: nothing can be saved.`);
  const connection = new DatabaseSync(path, { readOnly: true, timeout: 10_000 });
  return {
    kind: 'sqlite',
    async save(writer: ArchiveWriter) {
      // Readers do not hold up writers, because the gateway keeps a write-ahead log.
      connection.exec('BEGIN');
      const { migrations, additions } = appliedInSqlite(connection);
      if (migrations.length === 0)
        throw new Error(`The database ${path} has no tables of Sluice: nothing can be saved.`);
      const steps = [...migrations, ...additions];
      writer.start(steps);
      for (const { name, columns } of savedTables(stepsNamed(steps, path))) {
        writer.begin(name, columns);
        const rows = connection.prepare(`SELECT ${columns.join(', ')} FROM ${name}`).iterate();
        // oxlint-disable-next-line no-await-in-loop -- the disk sets the pace
        for (const row of rows) await writer.row(columns.map((column) => row[column] as Value));
        writer.end();
      }
    },
    close: async () => connection.close(),
  };
}

/** Opens a file to fill it. A new one is made beside it, which takes its place in the end. */
export function openSqliteTarget(path: string): Target {
  if (path === ':memory:')
    throw new Error('A database in memory cannot be restored: set "database" to a file.');
  const made = `${path}.restoring-${process.pid}`;
  let connection: DatabaseSync | undefined;
  return {
    isEmpty: async () => !existsSync(path) || isEmptyFile(path),
    async make(steps: readonly Step[]) {
      removeFile(made);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(made, '', { mode: 0o600, flag: 'wx' });
      connection = new DatabaseSync(made);
      // Nobody else sees the file, and it is made anew when the machine stops.
      connection.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF');
      migrateSqlite(connection, { steps, url: `sqlite:${path}` });
      connection.exec('BEGIN');
    },
    async fill(table, columns) {
      if (connection === undefined) throw new Error('The database is not made yet.');
      if (filledByTriggers.includes(table)) connection.exec(`DELETE FROM ${table}`);
      const insert = connection.prepare(
        `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
      );
      return { add: async (values) => void insert.run(...values), done: async () => {} };
    },
    async count(table) {
      return Number(connection?.prepare(`SELECT COUNT(*) AS rows FROM ${table}`).get()?.['rows']);
    },
    async finish() {
      if (connection === undefined) return undefined;
      connection.exec('COMMIT');
      const [check] = connection.prepare('PRAGMA integrity_check(1)').all();
      if (check?.['integrity_check'] !== 'ok')
        throw new Error(`The restored database is damaged: ${JSON.stringify(check)}.`);
      connection.close();
      connection = undefined;
      await syncFile(made);
      const before = setAside(path);
      renameSync(made, path);
      return before;
    },
    async close() {
      connection?.close();
      removeFile(made);
    },
  };
}

/** Renames the file that was there, with all that was written to it. Returns its new name. */
function setAside(path: string): string | undefined {
  if (!existsSync(path)) return undefined;
  const connection = new DatabaseSync(path, { timeout: 2_000 });
  try {
    // Brings the log into the file, which nobody can do while a gateway uses it.
    connection.exec('PRAGMA journal_mode = DELETE');
  } catch (error) {
    throw new Error(`The database ${path} is in use: stop the gateway before you restore.`, { cause: error });
  } finally {
    connection.close();
  }
  const aside = `${path}.before-restore-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`;
  renameSync(path, aside);
  return aside;
}

function isEmptyFile(path: string): boolean {
  const connection = new DatabaseSync(path, { readOnly: true, timeout: 2_000 });
  try {
    const { migrations, additions } = appliedInSqlite(connection);
    return savedTables(stepsNamed([...migrations, ...additions], path)).every(
      ({ name }) => connection.prepare(`SELECT 1 FROM ${name} LIMIT 1`).get() === undefined,
    );
  } finally {
    connection.close();
  }
}

function removeFile(path: string): void {
  for (const ending of ['', '-wal', '-shm', '-journal']) rmSync(path + ending, { force: true });
}
