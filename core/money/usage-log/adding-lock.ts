import type { Database } from '../../state/database/index.ts';
import { row, type Work } from '../../state/database/sql.ts';

/** Any number that no other lock of this database has. */
const advisoryLock = 5_717_440_151_030;

/**
 * Resolves with true when the transaction may change sums: one at a time does, because others would wait for its rows. In SQLite each
 * transaction that writes is alone.
 */
export function* addingLock(kind: Database['kind']): Work<boolean> {
  if (kind === 'sqlite') return true;
  const lock = yield* row('SELECT pg_try_advisory_xact_lock(?) AS is_ours', advisoryLock);
  return lock?.['is_ours'] === true;
}
