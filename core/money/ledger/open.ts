import type { Stores } from '../../state/stores.ts';
import type { Ledger } from './index.ts';
import { openPostgresLedger } from './postgres.ts';
import { openSqliteLedger } from './sqlite.ts';

/** Opens the ledger in the gateway's database. */
export function openLedger({ database }: Stores): Ledger {
  return database.kind === 'sqlite' ? openSqliteLedger(database.connection) : openPostgresLedger(database);
}
