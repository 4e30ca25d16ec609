import { DatabaseSync } from 'node:sqlite';
import { migrateSqlite, type Step } from '../database/migrations.ts';
import { schema } from '../database/tables/index.ts';

/** A table whose rows are saved. */
export interface SavedTable {
  readonly name: string;
  readonly columns: readonly string[];
}

/**
 * Tables that are not saved: triggers and the first start fill them from the others, or they count writes for processes that run. The notes
 * about the steps are in the header of an archive.
 */
const derived = /^(?:sqlite_|sluice_|api_keys|keyv_changes$|keyv_revisions$)/;

/** Tables that triggers fill with rows of others: they are emptied before their own rows come. */
export const filledByTriggers: readonly string[] = ['usage_unsummed', 'usage_late'];

/** Returns the steps of these names. Throws an Error for the operator where a newer version of Sluice has made others. */
export function stepsNamed(names: readonly string[], where: string): readonly Step[] {
  const known = new Set(schema.map(({ name }) => name));
  const newer = names.find((name) => !known.has(name));
  if (newer !== undefined)
    throw new Error(
      `${where} is of a newer version of Sluice (its step "${newer}" is not known here). Use that version.`,
    );
  return schema.filter(({ name }) => names.includes(name));
}

/** Returns the tables that these steps make and that are saved, the same in both kinds of databases. */
export function savedTables(steps: readonly Step[]): readonly SavedTable[] {
  const connection = new DatabaseSync(':memory:');
  try {
    migrateSqlite(connection, { steps, url: 'sqlite::memory:' });
    const tables = connection
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
      .all();
    const names = tables.map(({ name }) => String(name)).filter((name) => !derived.test(name));
    // Those that triggers fill come last.
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
