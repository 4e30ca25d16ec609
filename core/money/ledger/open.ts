import type { Stores } from '../../state/stores.ts';
import type { Ledger } from './index.ts';
import { openPostgresLedger } from './postgres.ts';
import { openSqliteLedger } from './sqlite.ts';

/** Opens the ledger in the gateway's database. `mostEndUsers`: of one key or team in one period. */
export function openLedger({ database }: Pick<Stores, 'database'>, mostEndUsers?: number): Ledger {
  return database.kind === 'sqlite'
    ? openSqliteLedger(database.connection, mostEndUsers)
    : openPostgresLedger(database, mostEndUsers);
}
