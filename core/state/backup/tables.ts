/** Determines the tables and columns that a backup contains, from the migration steps of the saved database. */
import { DatabaseSync } from 'node:sqlite';
import { migrateSqlite, type Step } from '../database/migrations.ts';
import { schema } from '../database/tables/index.ts';

/** A table whose rows are saved. */
export interface SavedTable {
  readonly name: string;
  readonly columns: readonly string[];
}

/**
 * Names of the tables that are not saved. Triggers or the first start fill some of them from other tables; others count writes for running
 * processes. The header of an archive lists the migration steps.
 */
const derived = /^(?:sqlite_|sluice_|api_keys|keyv_changes$|keyv_revisions$|usage_subject_records$)/;

/** Tables that triggers fill with rows of other tables. A restore empties them before it inserts their own rows. */
export const filledByTriggers: readonly string[] = [
  'usage_unsummed',
  'usage_unsummed_owned',
  'usage_unsummed_charged',
  'usage_late',
];

/** Returns the migration steps with these names. Throws an Error for the operator if a name belongs to a newer version of Sluice. */
export function stepsNamed(names: readonly string[], where: string): readonly Step[] {
  const known = new Set(schema.map(({ name }) => name));
  const newer = names.find((name) => !known.has(name));
  if (newer !== undefined)
    throw new Error(
      `${where} was made by a newer version of Sluice (this version does not know its step "${newer}"). Use that version.`,
    );
  return schema.filter(({ name }) => names.includes(name));
}

/** Returns the tables that these steps create and that are saved. They are the same for SQLite and PostgreSQL. */
export function savedTables(steps: readonly Step[]): readonly SavedTable[] {
  const connection = new DatabaseSync(':memory:');
  try {
    migrateSqlite(connection, { steps, url: 'sqlite::memory:' });
    const tables = connection
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .all();
    const names = tables.map(({ name }) => String(name)).filter((name) => !derived.test(name));
    // Tables that triggers fill come last.
    const isFilled = (name: string): number => (filledByTriggers.includes(name) ? 1 : 0);
    return names
      .toSorted((one, other) => isFilled(one) - isFilled(other))
      .map((name) => ({
        name,
        columns: connection
          .prepare('SELECT name FROM pragma_table_info(?)')
          .all(name)
          .map((column) => String(column['name'])),
      }));
  } finally {
    connection.close();
  }
}
