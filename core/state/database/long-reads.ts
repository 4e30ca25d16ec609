import type { Database } from './index.ts';
import type { Row } from './sql-values.ts';

/** Asks the database; `?` stands for a value. Rejects when the database fails. */
export type Ask = (sql: string, values: readonly (string | number)[]) => Promise<readonly Row[]>;

/** How long a long read of an operator may take, in milliseconds: less than the server allows any statement. */
const readPatience = 8_000;

/** Returns how to read this database, whichever it is, without holding calls up. */
export function longReads(database: Database): Ask {
  if (database.kind === 'postgres') {
    return (sql, values) => {
      let position = 0;
      return database.query(
        sql.replaceAll('?', () => `$${(position += 1)}`),
        values,
        { patience: readPatience },
      );
    };
  }
  return (sql, values) => database.read(sql, values);
}
