import type { Step } from '../migrations.ts';

/**
 * What a key has spent in each period that began, and the claims of running calls. What is reserved is always the sum of the claims, so
 * that no counter can drift away from them. A claim knows the day and month in which it was made.
 */
const tables = `
  CREATE TABLE ledger_spent (
    key_id TEXT NOT NULL, period TEXT NOT NULL, since BIGINT NOT NULL, micro_dollars BIGINT NOT NULL, tokens BIGINT NOT NULL,
    PRIMARY KEY (key_id, period, since)
  );
  CREATE TABLE ledger_reservations (
    id TEXT PRIMARY KEY, key_id TEXT NOT NULL, micro_dollars BIGINT NOT NULL, tokens BIGINT NOT NULL,
    day BIGINT NOT NULL, month BIGINT NOT NULL, lease BIGINT NOT NULL, expires BIGINT NOT NULL
  );
  CREATE INDEX ledger_reservations_key ON ledger_reservations (key_id);
  CREATE INDEX ledger_reservations_expires ON ledger_reservations (expires);
`;

/** The tables of the ledger. */
export const ledgerSteps: readonly Step[] = [{ name: 'ledger-1', sqlite: tables, postgres: tables }];
