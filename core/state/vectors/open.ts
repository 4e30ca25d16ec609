/** Opens collections of vectors in the gateway's database, and removes expired vectors while it is open. */
import type { VectorLimits, VectorStore } from '../../sdk/author/vectors.ts';
import type { Database } from '../database/index.ts';
import { startSweeping } from '../database/sweeping.ts';
import { prepareVectors } from './postgres-table.ts';
import { deleteExpiredVectors, PostgresVectors } from './postgres.ts';

const sweep = { batch: 500, pause: 60_000, pauseWhenFull: 200 };

/** Opens collections of one database. */
export interface VectorOpener {
  /** See `Stores.vectors`. */
  open(name: string, limits: VectorLimits): Promise<VectorStore | undefined>;
  /** Ends the sweeping. */
  close(): void;
}

/** Nothing is asked of the database before a collection is opened. */
export function createVectorOpener(database: Database, report: (error: Error) => void): VectorOpener {
  let stopSweeping: (() => void) | undefined;
  let isClosed = false;
  return {
    async open(name, limits) {
      if (database.kind === 'sqlite') return undefined;
      const schema = await prepareVectors(database);
      if (!isClosed)
        stopSweeping ??= startSweeping(
          async () => (await deleteExpiredVectors(database, sweep.batch)) === sweep.batch,
          sweep,
          (cause) =>
            report(new Error(`Expired vectors could not be removed from ${database.url}.`, { cause })),
        );
      return new PostgresVectors(database, name, limits, schema);
    },
    close() {
      isClosed = true;
      stopSweeping?.();
    },
  };
}
