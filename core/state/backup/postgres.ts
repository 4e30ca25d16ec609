/** Saves a PostgreSQL database while gateways write to it, and fills one from an archive. */
import { appliedInPostgres, migratePostgres, type Step } from '../database/migrations.ts';
import { openPostgresServer } from '../database/postgres-server.ts';
import type { PostgresSession, PostgresValue } from '../database/postgres-session.ts';
import { schema } from '../database/tables/index.ts';
import type { ArchiveWriter, Value } from './archive.ts';
import type { Source, Target } from './ends.ts';
import { filledByTriggers, savedTables, stepsNamed } from './tables.ts';

/** How long one statement of a backup may take, in milliseconds. */
const patience = { patience: 600_000 };
/** Characters that are read and written at once, about. */
const atOnce = 4_000_000;
/** Maximum number of rows in one INSERT, and of sizes that are read at once. */
const mostRows = 5_000;
/** Opens a database to save it: all of it as it was at one moment, in one transaction that only reads. */
export function openPostgresSource(url: string): Source {
  const server = openPostgresServer(url);
  const applied = async (session: PostgresSession): Promise<readonly string[]> => {
    const { migrations, additions } = await appliedInPostgres(session);
    if (migrations.length === 0)
      throw new Error(`The database ${server.url} has no tables of Sluice: nothing can be saved.`);
    return [...migrations, ...additions];
  };
  return {
    kind: 'postgres',
    save: (writer) =>
      server.transaction(async (session) => {
        await session.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
        await session.query(
          'SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0',
        );
        // The two cursors of a table, for sizes and for rows, must meet the rows in the same order.
        await session.query(
          'SET LOCAL synchronize_seqscans = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off',
        );
        const steps = await applied(session);
        writer.start(steps);
        for (const { name, columns } of savedTables(stepsNamed(steps, server.url))) {
          writer.begin(name, columns);
          // oxlint-disable-next-line no-await-in-loop -- one connection
          await saveTable(session, name, columns, writer);
          writer.end();
        }
      }),
    close: () => server.close(),
  };
}

async function saveTable(
  session: PostgresSession,
  table: string,
  columns: readonly string[],
  writer: ArchiveWriter,
): Promise<void> {
  const types = await typesOf(session, table);
  const selected = columns.map((name) => (types.get(name) === 'jsonb' ? `${name}::text AS ${name}` : name));
  const sizes = columns.map((name) => `COALESCE(octet_length(${name}::text), 0)`);
  const declare = (cursor: string, expressions: string): Promise<unknown> =>
    session.query(`DECLARE ${cursor} NO SCROLL CURSOR FOR SELECT ${expressions} FROM ${table}`, [], patience);
  await declare('saved', selected.join(', '));
  await declare('sizes', `${sizes.join(' + ')} AS size`);
  for (;;) {
    // oxlint-disable no-await-in-loop -- one connection, and the disk sets the pace
    const measured = await session.query(`FETCH ${mostRows} FROM sizes`, [], patience);
    for (const count of portionsOf(measured.map(({ size }) => Number(size)))) {
      const rows = await session.query(`FETCH ${count} FROM saved`, [], patience);
      for (const row of rows) await writer.row(columns.map((name) => row[name] as Value));
    }
    if (measured.length < mostRows) break;
    // oxlint-enable no-await-in-loop
  }
  await session.query('CLOSE saved; CLOSE sizes');
}

/** Divides rows of these sizes into portions of at most `atOnce` bytes, or of one larger row. Returns the number of rows of each. */
function portionsOf(sizes: readonly number[]): readonly number[] {
  const counts: number[] = [];
  let total = Number.POSITIVE_INFINITY;
  for (const size of sizes) {
    total += size;
    if (total > atOnce) {
      counts.push(0);
      total = size;
    }
    counts.push((counts.pop() ?? 0) + 1);
  }
  return counts;
}

async function typesOf(session: PostgresSession, table: string): Promise<ReadonlyMap<string, string>> {
  const rows = await session.query(
    'SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1',
    [table],
  );
  return new Map(rows.map((row) => [String(row['column_name']), String(row['data_type'])]));
}

/** `application_name` of the connections of a restore. */
const restoreName = 'sluice-restore';

/** Opens a database to fill it: all in one transaction, so that it is as before until the end. */
export function openPostgresTarget(url: string): Target {
  const server = openPostgresServer(`${url}${url.includes('?') ? '&' : '?'}application_name=${restoreName}`);
  const began = Promise.withResolvers<PostgresSession>();
  const ended = Promise.withResolvers<void>();
  let work: Promise<void> | undefined;
  const session = (): Promise<PostgresSession> => {
    work ??= server.transaction(async (one) => {
      await one.query('SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0');
      began.resolve(one);
      await ended.promise;
    });
    work.catch(began.reject);
    return began.promise;
  };
  return {
    isEmpty: () => server.session((one) => isEmptyDatabase(one, server.url)),
    async make(steps: readonly Step[]) {
      const one = await session();
      await refuseOthers(one, server.url);
      await dropAll(one);
      await migratePostgres(one, { steps, url: server.url });
    },
    async fill(table, columns) {
      const one = await session();
      if (filledByTriggers.includes(table)) await one.query(`DELETE FROM ${table}`, [], patience);
      return fillTable(one, table, columns);
    },
    async count(table) {
      const [row] = await (await session()).query(`SELECT COUNT(*) AS rows FROM ${table}`, [], patience);
      return Number(row?.['rows']);
    },
    async finish() {
      ended.resolve();
      await work;
      return undefined;
    },
    async close() {
      ended.reject(new Error('The restore was given up.'));
      ended.promise.catch(() => {});
      await work?.catch(() => {});
      await server.close();
    },
  };
}

async function fillTable(session: PostgresSession, table: string, columns: readonly string[]) {
  const types = await typesOf(session, table);
  const given = columns.map((name, index) => `$${index + 1}::${types.get(name) ?? 'text'}[]`);
  const insert = `INSERT INTO ${table} (${columns.join(', ')}) SELECT * FROM unnest(${given.join(', ')})`;
  let rows: (readonly Value[])[] = [];
  let size = 0;
  const done = async (): Promise<void> => {
    if (rows.length === 0) return;
    const lists = columns.map((_, index): PostgresValue => rows.map((row) => row[index] ?? null));
    rows = [];
    size = 0;
    await session.query(insert, lists, patience);
  };
  return {
    async add(values: readonly Value[]) {
      rows.push(values);
      for (const value of values) size += typeof value === 'string' ? value.length : 8;
      if (size >= atOnce || rows.length >= mostRows) await done();
    },
    done,
  };
}

/**
 * Throws an Error while a gateway uses the database, because the gateway would go on with what it has in memory. A gateway queries the database
 * at least once a second; the idle connections of a pooler do not count. The URL of a gateway may set another `application_name`, so connections
 * of the same user count as well.
 */
async function refuseOthers(session: PostgresSession, url: string): Promise<void> {
  const gateways = await session.query(
    `SELECT 1 FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
       AND application_name <> '${restoreName}' AND (application_name = 'sluice' OR usename = current_user)
       AND (state <> 'idle' OR state_change > clock_timestamp() - interval '5 seconds') LIMIT 1`,
  );
  if (gateways.length > 0)
    throw new Error(
      `Gateways, or other programs of the same user, use the database ${url}, or did until a moment ago: stop them, wait five seconds, and restore again.`,
    );
}

async function isEmptyDatabase(session: PostgresSession, url: string): Promise<boolean> {
  const { migrations, additions } = await appliedInPostgres(session);
  for (const { name } of savedTables(stepsNamed([...migrations, ...additions], url))) {
    // oxlint-disable-next-line no-await-in-loop -- one connection
    if ((await session.query(`SELECT 1 FROM ${name} LIMIT 1`)).length > 0) return false;
  }
  return true;
}

/** Removes all that the steps of this version make. */
async function dropAll(session: PostgresSession): Promise<void> {
  const text = schema.map(({ postgres }) => postgres).join('\n');
  const made = (kind: string): Set<string> =>
    new Set(
      [...text.matchAll(new RegExp(`CREATE (?:OR REPLACE )?${kind} (?:IF NOT EXISTS )?([a-z_]+)`, 'g'))].map(
        ([, name = '']) => name,
      ),
    );
  const drops = [
    ...[...made('TABLE'), 'sluice_migrations', 'sluice_additions'].map(
      (name) => `DROP TABLE IF EXISTS ${name} CASCADE`,
    ),
    ...[...made('FUNCTION')].map((name) => `DROP FUNCTION IF EXISTS ${name} CASCADE`),
    ...[...made('SEQUENCE')].map((name) => `DROP SEQUENCE IF EXISTS ${name} CASCADE`),
  ];
  await session.query(drops.join('; '), [], patience);
}
