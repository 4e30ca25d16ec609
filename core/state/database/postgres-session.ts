/** Parameter of a statement: `$1` is the first. Characters that PostgreSQL cannot store (NUL) are replaced as UTF-8 decoders do. */
export type PostgresValue = string | number | bigint | boolean | null | Buffer | readonly PostgresValue[];

/** A row by the names of its columns. BIGINT comes as a number, NUMERIC (such as the SUM of a BIGINT) as text: cast it. */
export type PostgresRow = Readonly<Record<string, unknown>>;

/** Runs statements: on any connection, or on the one of a transaction. */
export interface PostgresSession {
  /**
   * The rows, which are none without SELECT or RETURNING. Rejects with {@link PostgresError}: at once when the server refuses, and when
   * it has been silent for `patience` milliseconds (default: less than a second), because it is down, hangs or waits for a lock.
   * `isLarge`: the statement adds up very many rows, see `largeRead` in `postgres-server.ts`. `signal`: when it is aborted, the server is asked to
   * cancel the statement, which is refused with the code 57014 then; behind a pooler in transaction mode it runs to its end.
   */
  query(
    sql: string,
    values?: readonly PostgresValue[],
    options?: {
      readonly patience?: number;
      readonly isLarge?: boolean;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<readonly PostgresRow[]>;
}
