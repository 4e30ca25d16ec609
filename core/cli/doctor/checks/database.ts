/** Checks the database and its growth. */
import { availableParallelism } from 'node:os';
import { inspectDatabase, type DatabaseFacts } from '../../../state/database/inspect.ts';
import { usualPoolSize } from '../../../state/database/postgres-pool.ts';
import { findingsOf, shownBytes, type Check, type Examined, type Finding } from '../finding.ts';
import { clockFindings } from './clock.ts';

const { ok, warning, error } = findingsOf('database');

/** Oldest major version of PostgreSQL that still gets updates, as of November 2026. */
const oldestPostgres = 14;

/** The database: reachable, recent, writable, up to date, with room for connections; its clock, and how fast it grows. */
export const database: Check = {
  name: 'database',
  async look(examined) {
    let facts: DatabaseFacts | undefined;
    try {
      facts = await inspectDatabase(examined.databaseUrl, () => examined.now());
    } catch (thrown) {
      const message = thrown instanceof Error ? thrown.message : String(thrown);
      return [error(message, 'Start the database server, or correct "database" (SLUICE_DATABASE).')];
    }
    if (facts === undefined) return [ok('There is no database yet. The first start creates it.')];
    return [
      ...stateFindings(facts, examined),
      ...(facts.clock === undefined ? [] : clockFindings('PostgreSQL', facts.clock)),
      ...growthFindings(facts, examined),
    ];
  },
};

function stateFindings(facts: DatabaseFacts, { config }: Examined): readonly Finding[] {
  const { kind, version, pending, canCreate, connections, bytes } = facts;
  const name = `${kind === 'postgres' ? 'PostgreSQL' : 'SQLite'} ${version}`;
  const found: Finding[] = [ok(`${name} is reachable. It uses ${shownBytes(bytes)}.`)];
  if (kind === 'postgres' && Number.parseInt(version, 10) < oldestPostgres)
    found.push(
      warning(`${name} is no longer maintained.`, `Upgrade to PostgreSQL ${oldestPostgres} or later.`),
    );
  if (!canCreate)
    found.push(
      error(
        'The database user is not allowed to create tables in its schema.',
        'Run as the owner of the schema: GRANT CREATE ON SCHEMA public TO …, with the user of "database".',
      ),
    );
  if (pending > 0)
    found.push(
      warning(
        `${pending} database migrations are pending.`,
        'Back up the database, then start this version: the start runs them.',
      ),
    );
  const { workers, spareWorker, database: given } = config.settings;
  const { poolSize = usualPoolSize } = typeof given === 'object' ? given : {};
  // A spare worker opens a pool of its own.
  const processes = (workers === 'auto' ? availableParallelism() : workers) + (spareWorker ? 1 : 0);
  const wanted = poolSize * processes;
  if (connections !== undefined && connections.max - connections.used < wanted)
    found.push(
      warning(
        `${connections.used} of ${connections.max} connections are in use; this gateway needs up to ${wanted}.`,
        'Raise max_connections of PostgreSQL, or lower "workers".',
      ),
    );
  return found;
}

const day = 86_400_000;

/** Compares the growth of the usage records with what the retention of the config allows. */
function growthFindings({ records }: DatabaseFacts, { config, now }: Examined): readonly Finding[] {
  if (records === undefined || records.newest - records.oldest < day / 24) return [];
  const days = (records.newest - records.oldest) / day;
  const perDay = Math.round(records.count / days);
  const age = Math.floor((now() - records.oldest) / day);
  const about = `About ${records.count} records of calls, ${perDay} a day; the oldest is ${age} days old.`;
  const limits = retentionOf(config.plugins);
  if (limits?.days === undefined) return [ok(about)];
  if (age > limits.days + 1)
    return [
      warning(
        `${about} The config keeps ${limits.days} days.`,
        'Start a gateway with this config: it removes old records. If one runs, look for "retention" in its log.',
      ),
    ];
  const { records: most = 5_000_000 } = limits;
  return perDay * limits.days > most
    ? [
        warning(
          `${about} At this rate the maximum of ${most} records is reached after ${Math.floor(most / Math.max(1, perDay))} days, but the config keeps ${limits.days} days.`,
          'Raise "retention.records" of the plugin that keeps the usage log, or lower "retention.days".',
        ),
      ]
    : [ok(about)];
}

/** Returns the retention that a plugin of the config sets; undefined where none does. */
function retentionOf(
  plugins: Examined['config']['plugins'],
): { readonly days?: number; readonly records?: number } | undefined {
  for (const { entry } of plugins) {
    const { retention } = entry.options as { retention?: { days?: number; records?: number } };
    if (typeof retention === 'object') return retention;
  }
  return undefined;
}
