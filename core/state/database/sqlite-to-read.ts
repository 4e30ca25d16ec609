/** A connection to an SQLite file that only reads, for threads. */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Row, SqlValue } from './sql-values.ts';

/** More texts than the gateway has questions. */
const mostStatements = 200;

/** Opens the file, and returns the function that runs a SELECT; `?` stands for each value. */
export function openSqliteToRead(path: string): (sql: string, values: readonly SqlValue[]) => readonly Row[] {
  const connection = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  // Sorting and grouping stay in memory: 64 MiB at the most.
  connection.exec('PRAGMA temp_store = MEMORY; PRAGMA cache_size = -65536');
  const statements = new Map<string, StatementSync>();
  return (sql, values) => {
    let statement = statements.get(sql);
    if (statement === undefined) {
      if (statements.size >= mostStatements) statements.clear();
      statements.set(sql, (statement = connection.prepare(sql)));
    }
    return statement.all(...values) as readonly Row[];
  };
}
