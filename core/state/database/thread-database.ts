/** The database as the program of a thread reads it. */
import { workerData } from 'node:worker_threads';
import { Semaphore } from '../../sdk/semaphore.ts';
import { largeReads, operatorReads, type Ask } from './long-reads.ts';
import { usualPoolSize } from './postgres-pool.ts';
import type { ThreadConnections, ThreadTarget } from './reading-thread.ts';
import { openSqliteToRead } from './sqlite-to-read.ts';
import { send } from './thread-answers.ts';
import { inTurn } from './turns.ts';

/** Interval at which the thread reports how its connections stand, in milliseconds. */
const reportInterval = 1_000;

/** The thread's own connections to the database. */
export interface ThreadDatabase {
  readonly kind: ThreadTarget['kind'];
  /** See `operatorReads` and `largeReads`. */
  readonly ask: Ask;
  readonly askLarge: Ask;
  close(): Promise<void>;
}

/** Opens the database that the thread was started for. */
export async function openThreadDatabase(): Promise<ThreadDatabase> {
  const target = workerData as ThreadTarget;
  if (target.kind === 'sqlite') {
    const read = openSqliteToRead(target.path);
    const ask = inTurn(async (sql, values) => read(sql, values), new Semaphore(1));
    return { kind: 'sqlite', ask, askLarge: ask, close: async () => {} };
  }
  // Not loaded for a file.
  const [{ openPostgres }, { schema }] = await Promise.all([
    import('./postgres.ts'),
    import('./tables/index.ts'),
  ]);
  const { poolSize = usualPoolSize, ...settings } = target.settings;
  // Beside the connections of the process itself.
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
    ask: inTurn(operatorReads(database), permits),
    askLarge: inTurn(largeReads(database), permits),
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
