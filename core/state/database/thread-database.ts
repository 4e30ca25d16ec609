/** Opens the database for the program that runs in a reading thread. */
import { workerData } from 'node:worker_threads';
import { Semaphore } from '../../sdk/semaphore.ts';
import { largeReads, operatorReads, type Query } from './long-reads.ts';
import { usualPoolSize } from './postgres-pool.ts';
import type { ThreadConnections, ThreadTarget } from './reading-thread.ts';
import { openSqliteToRead } from './sqlite-to-read.ts';
import { send } from './thread-answers.ts';
import { limitConcurrency } from './limit-concurrency.ts';

/** Interval in milliseconds at which the thread reports the state of its connections. */
const reportInterval = 1_000;

/** The thread's own connections to the database. */
export interface ThreadDatabase {
  readonly kind: ThreadTarget['kind'];
  /** See `operatorReads` and `largeReads`. */
  readonly query: Query;
  readonly queryLarge: Query;
  close(): Promise<void>;
}

/** Opens the database that the thread was started for. */
export async function openThreadDatabase(): Promise<ThreadDatabase> {
  const target = workerData as ThreadTarget;
  if (target.kind === 'sqlite') {
    const read = openSqliteToRead(target.path);
    const query = limitConcurrency(async (sql, values) => read(sql, values), new Semaphore(1));
    return { kind: 'sqlite', query, queryLarge: query, close: async () => {} };
  }
  // Loaded here because a file does not need them.
  const [{ openPostgres }, { schema }] = await Promise.all([
    import('./postgres.ts'),
    import('./tables/index.ts'),
  ]);
  const { poolSize = usualPoolSize, ...settings } = target.settings;
  // Half of the pool size, because the process has connections of its own.
  const size = Math.ceil(poolSize / 2);
  const database = openPostgres({ ...settings, poolSize: size }, schema, (error) =>
    send({ report: error.message }),
  );
  const permits = new Semaphore(size);
  const reporting = setInterval(
    () => send({ connections: together(database.connections()) }),
    reportInterval,
  );
  reporting.unref();
  return {
    kind: 'postgres',
    query: limitConcurrency(operatorReads(database), permits),
    queryLarge: limitConcurrency(largeReads(database), permits),
    close: () => {
      clearInterval(reporting);
      return database.close();
    },
  };
}

/** Adds up the connections to the primary and to the replica. */
function together(states: readonly ThreadConnections[]): ThreadConnections {
  const sum = (name: keyof ThreadConnections): number => states.reduce((total, one) => total + one[name], 0);
  return { size: sum('size'), inUse: sum('inUse'), idle: sum('idle'), waiting: sum('waiting') };
}
