/** Collects facts about a database for `sluice doctor`: version, size, pending migrations, clock, connections and records. */
import { existsSync, statSync } from 'node:fs';
import { appliedInPostgres, appliedInSqlite, missingSteps } from './migrations.ts';
import { openPostgresServer } from './postgres-server.ts';
import { isPostgres } from '../../settings/database.ts';
import { lookInto, pathIn } from './index.ts';
import { schema } from './tables/index.ts';

/** Facts about a database. Times are in milliseconds. */
export interface DatabaseFacts {
  readonly kind: 'sqlite' | 'postgres';
  readonly version: string;
  /** Path of the file; absent for a server and for a database in memory. */
  readonly path?: string;
  /** Size in bytes. */
  readonly bytes: number;
  /** Number of migration steps that the next start will run. */
  readonly pending: number;
  /** The server's clock, this machine's clock right after the response, and the round-trip time. */
  readonly clock?: { readonly at: number; readonly localAt: number; readonly roundTrip: number };
  readonly connections?: { readonly used: number; readonly max: number };
  /** False when this user may not create tables. */
  readonly canCreate: boolean;
  /** Records of calls: their number (approximate for PostgreSQL), and the times of the oldest and the newest. */
  readonly records?: { readonly count: number; readonly oldest: number; readonly newest: number };
}

/**
 * Inspects the database that a URL names, and changes nothing. `now` reads the clock of this machine. Resolves with undefined for a file that
 * the first start will make. Rejects with an Error for the operator.
 */
export async function inspectDatabase(url: string, now: () => number): Promise<DatabaseFacts | undefined> {
  return isPostgres(url) ? inspectPostgres(url, now) : inspectSqlite(url);
}

function inspectSqlite(url: string): DatabaseFacts | undefined {
  const path = pathIn(url);
  if (path === ':memory:' || !existsSync(path)) return undefined;
  return lookInto(path, (connection) => {
    const version = connection.prepare('SELECT sqlite_version() AS version').get();
    const pending = missingSteps({ steps: schema, url }, appliedInSqlite(connection)).length;
    const hasRecords = connection.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'usage_records'").get();
    const row =
      hasRecords === undefined
        ? undefined
        : connection
            .prepare('SELECT COUNT(*) AS count, MIN(at) AS oldest, MAX(at) AS newest FROM usage_records')
            .get();
    return {
      kind: 'sqlite',
      version: String(version?.['version']),
      path,
      bytes: statSync(path).size,
      pending,
      canCreate: true,
      ...recordsOf(row),
    };
  });
}

async function inspectPostgres(url: string, now: () => number): Promise<DatabaseFacts> {
  const server = openPostgresServer(url);
  const rows = server.query;
  try {
    // The first statement connects, so that the second one measures the round trip only.
    const [facts] = await rows(
      `SELECT current_setting('server_version') AS version, current_setting('max_connections')::int AS max,
        (SELECT count(*)::int FROM pg_stat_activity) AS used, pg_database_size(current_database()) AS bytes,
        has_schema_privilege(current_schema(), 'CREATE') AS create, to_regclass('usage_records') IS NOT NULL AS has`,
    );
    const before = now();
    const [clock] = await rows('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at');
    const localAt = now();
    const applied = await server.session(appliedInPostgres);
    const [records] =
      facts?.['has'] === true
        ? await rows(
            "SELECT (SELECT reltuples::float8 FROM pg_class WHERE oid = to_regclass('usage_records')) AS count, MIN(at) AS oldest, MAX(at) AS newest FROM usage_records",
          )
        : [];
    return {
      kind: 'postgres',
      version: String(facts?.['version']),
      bytes: Number(facts?.['bytes']),
      pending: missingSteps({ steps: schema, url: server.url }, applied).length,
      clock: { at: Number(clock?.['at']), localAt, roundTrip: localAt - before },
      connections: { used: Number(facts?.['used']), max: Number(facts?.['max']) },
      canCreate: facts?.['create'] === true,
      ...recordsOf(records),
    };
  } finally {
    await server.close();
  }
}

function recordsOf(
  row: Readonly<Record<string, unknown>> | undefined,
): Pick<DatabaseFacts, 'records'> | undefined {
  if (row === undefined || row['oldest'] === null) return undefined;
  return {
    records: {
      count: Math.max(0, Number(row['count'])),
      oldest: Number(row['oldest']),
      newest: Number(row['newest']),
    },
  };
}
