import type { DatabaseSync } from 'node:sqlite';
import type { Stores } from '../../core/state/stores.ts';

/** The connection under stores on SQLite, for tests that look into the tables or damage them. */
export function connectionOf({ database }: Pick<Stores, 'database'>): DatabaseSync {
  if (database.kind !== 'sqlite') throw new Error('These stores are not on SQLite.');
  return database.connection;
}
