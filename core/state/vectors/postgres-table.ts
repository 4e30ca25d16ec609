/**
 * The extension `vector` and the table of vectors. They are no step of the schema, because most servers have no such extension. Vectors can
 * be made anew: backups leave them out.
 */
import type { PostgresDatabase } from '../database/postgres.ts';
import { PostgresError } from '../database/postgres-error.ts';
import type { PostgresSession } from '../database/postgres-session.ts';

const find = `SELECT extnamespace::regnamespace::text AS schema FROM pg_extension WHERE extname = 'vector'`;

/** SQLSTATE of a user who lacks a permission. */
const forbidden = '42501';

/** How long a start waits for another gateway that makes the table, in milliseconds. */
const patience = 10_000;

/** Any number that no other program on the same server is likely to lock. */
const advisoryLock = 5_717_440_151_031;

/**
 * Makes the table of vectors where it is missing, and the extension where the user may. Returns the schema of the extension, quoted as SQL
 * needs it. Rejects with an Error for the operator where the server has no extension, or the user may not make it.
 */
export async function prepareVectors(database: PostgresDatabase): Promise<string> {
  try {
    return (await existing(database)) ?? (await database.transaction(prepare));
  } catch (error) {
    if (!(error instanceof PostgresError) || error.code !== forbidden) throw error;
    throw new Error(
      `The user of the database ${database.url} may not create the extension "vector", or tables. Run "CREATE EXTENSION vector" in the database as a superuser.`,
      { cause: error },
    );
  }
}

/** Returns the schema of the extension where all is there. */
async function existing(session: PostgresSession): Promise<string | undefined> {
  return (await hasTable(session)) ? schemaIn(session) : undefined;
}

async function prepare(session: PostgresSession): Promise<string> {
  await session.query(`SET LOCAL lock_timeout = ${patience}; SET LOCAL statement_timeout = ${patience}`);
  // Two gateways that start at once would both create the table, and one would fail.
  await session.query(`SELECT pg_advisory_xact_lock(${advisoryLock})`, [], { patience });
  const schema = (await schemaIn(session)) ?? (await createExtension(session));
  if (!(await hasTable(session))) await session.query(tableWith(schema), [], { patience });
  return schema;
}

async function createExtension(session: PostgresSession): Promise<string> {
  const available = await session.query(`SELECT 1 FROM pg_available_extensions WHERE name = 'vector'`);
  if (available.length === 0)
    throw new Error('The PostgreSQL server has no extension "vector". Install pgvector on the server.');
  await session.query('CREATE EXTENSION IF NOT EXISTS vector', [], { patience });
  const schema = await schemaIn(session);
  if (schema === undefined) throw new Error('The extension "vector" could not be created.');
  return schema;
}

async function schemaIn(session: PostgresSession): Promise<string | undefined> {
  const [row] = await session.query(find);
  return row === undefined ? undefined : String(row['schema']);
}

async function hasTable(session: PostgresSession): Promise<boolean> {
  const [row] = await session.query(`SELECT to_regclass('sluice_vectors') IS NOT NULL AS exists`);
  return row?.['exists'] === true;
}

/** The type has no length, because models make vectors of different lengths. Partitions are bounded and read in whole. */
const tableWith = (schema: string): string => `
  CREATE TABLE sluice_vectors (
    namespace TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    number BIGINT GENERATED ALWAYS AS IDENTITY,
    part TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    expires BIGINT NOT NULL,
    dimensions INTEGER NOT NULL,
    vector ${schema}.vector NOT NULL,
    PRIMARY KEY (namespace, id)
  );
  CREATE INDEX sluice_vectors_part ON sluice_vectors (namespace, part, number);
  CREATE INDEX sluice_vectors_number ON sluice_vectors (namespace, number);
  CREATE INDEX sluice_vectors_owner ON sluice_vectors (namespace, owner);
  CREATE INDEX sluice_vectors_expires ON sluice_vectors (expires)`;
