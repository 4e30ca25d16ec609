/** Settings of the database: a URL, or a PostgreSQL server with its pool and read replica. */
import { z } from 'zod';
import { secretUrl } from './secret.ts';

/** Address of a database, or a PostgreSQL server with options. */
export type DatabaseSettings = string | PostgresSettings;

/** Returns the address of a database. */
export function urlOf(database: DatabaseSettings): string {
  return typeof database === 'string' ? database : database.url;
}

const postgres = /^postgres(?:ql)?:\/\/./i;

/** Returns true for the URL of a PostgreSQL server. */
export function isPostgres(url: string): boolean {
  return /^postgres(?:ql)?:/i.test(url);
}

const url = secretUrl(
  z
    .string()
    .regex(
      /^(sqlite:|postgres(ql)?:\/\/)./i,
      'must be "sqlite:" and the path of a file, "sqlite::memory:", or a postgres:// URL',
    ),
);

const postgresSchema = z.strictObject({
  url: secretUrl(
    z.string().regex(postgres, 'must be a postgres:// URL, because the other options are for servers'),
  ).describe('URL of the server'),
  poolSize: z
    .int()
    .min(2)
    .max(200)
    .optional()
    .describe(
      'maximum number of connections of each process; further queries wait. Default: 8. While the admin API reads sums, half as many more',
    ),
  replica: secretUrl(z.string().regex(postgres, 'must be a postgres:// URL'))
    .optional()
    .describe('read replica for usage, statistics and searches of the admin API. Default: none'),
});

/** A PostgreSQL server. */
export type PostgresSettings = z.output<typeof postgresSchema>;

/** Schema of the setting `database`. */
export const databaseSchema = z
  .union([url, postgresSchema])
  .optional()
  .describe(
    '`sqlite:PATH`, `sqlite::memory:` or `postgres://USER:PASSWORD@HOST/DATABASE`. Default: `sluice.db` in the data folder. A server that does not respond for 0.9 seconds counts as gone; `?answer_timeout=SECONDS` gives a slow one more time. `sslmode`, `sslrootcert`, `sslcert` and `sslkey` in the URL mean what they mean to libpq',
  );
