import type { Database } from './index.ts';
import type { PostgresSession } from './postgres.ts';
import type { Row } from './sql-values.ts';

/** Asks the database; `?` stands for a value. Rejects when the database fails. */
export type Ask = (sql: string, values: readonly (string | number)[]) => Promise<readonly Row[]>;

/** How long a long read of an operator may take, in milliseconds: less than the server allows any statement. */
const readPatience = 8_000;

/** Returns how to read this database, whichever it is, without holding calls up. */
export function longReads(database: Database): Ask {
  return database.kind === 'postgres' ? numbered(database.query) : database.read;
}

/** As {@link longReads}, for what operators look at: from a read replica where there is one, which may be some time behind. */
export function operatorReads(database: Database): Ask {
  return database.kind === 'postgres' ? numbered(database.read) : database.read;
}

/** As {@link operatorReads}, for statements that add up very many rows. */
export function largeReads(database: Database): Ask {
  return database.kind === 'postgres' ? numbered(database.read, true) : database.read;
}

function numbered(query: PostgresSession['query'], isLarge = false): Ask {
  return (sql, values) => {
    let position = 0;
    return query(
      sql.replaceAll('?', () => `$${(position += 1)}`),
      values,
      { patience: readPatience, isLarge },
    );
  };
}

/** Returns a function that asks once what several want to know at the same time. */
export function askedOnce(ask: Ask): Ask {
  const running = new Map<string, ReturnType<Ask>>();
  return (sql, values) => {
    const name = JSON.stringify([sql, values]);
    const known = running.get(name);
    if (known !== undefined) return known;
    const asked = ask(sql, values).finally(() => running.delete(name));
    running.set(name, asked);
    return asked;
  };
}
