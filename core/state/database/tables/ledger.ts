import type { Step } from '../migrations.ts';

/**
 * Tables of the spend of each key by period, and of the claims of running calls. The reserved amount is always the sum of the claims, so
 * that no counter can drift away from them. A claim has the day and month in which it was made.
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

/**
 * `allotment`: 1 for a reservation from which its process serves calls to come, 2 when it was recalled, else 0. `free_…`: what no call uses
 * of it. Gateways of the version before, which know of neither, may go on beside this one: their rows have the defaults.
 */
const allotments = `
  ALTER TABLE ledger_reservations ADD COLUMN allotment BIGINT NOT NULL DEFAULT 0;
  ALTER TABLE ledger_reservations ADD COLUMN free_micro_dollars BIGINT NOT NULL DEFAULT 0;
  ALTER TABLE ledger_reservations ADD COLUMN free_tokens BIGINT NOT NULL DEFAULT 0;
  CREATE INDEX ledger_reservations_recalled ON ledger_reservations (id) WHERE allotment = 2;
`;

/**
 * Claims on budgets of the owners of keys: members, teams, organisations. A reservation has a row here for each of them, under the id that its
 * row for the key has. They stand apart because gateways of the version before know the primary key of the other table.
 */
const owners = `
  CREATE TABLE ledger_owner_reservations (
    id TEXT NOT NULL, owner TEXT NOT NULL, micro_dollars BIGINT NOT NULL, tokens BIGINT NOT NULL,
    day BIGINT NOT NULL, month BIGINT NOT NULL, lease BIGINT NOT NULL, expires BIGINT NOT NULL,
    allotment BIGINT NOT NULL DEFAULT 0, free_micro_dollars BIGINT NOT NULL DEFAULT 0, free_tokens BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id, owner)
  );
  CREATE INDEX ledger_owner_reservations_owner ON ledger_owner_reservations (owner);
  CREATE INDEX ledger_owner_reservations_expires ON ledger_owner_reservations (expires);
  CREATE INDEX ledger_owner_reservations_recalled ON ledger_owner_reservations (id) WHERE allotment = 2;
`;

/**
 * When a claim was made, for periods other than days and months of UTC. Gateways of the version before do not note it: their claims count in
 * every period. They refuse keys with budgets of such periods.
 */
const made = ['ledger_reservations', 'ledger_owner_reservations']
  .map((table) => `ALTER TABLE ${table} ADD COLUMN made BIGINT NOT NULL DEFAULT ${Number.MAX_SAFE_INTEGER};`)
  .join('\n');

/** The end users that keys and owners have had in the periods of their budgets, of which there is a maximum. */
const endUsers = `
  CREATE TABLE ledger_end_users (
    scope TEXT NOT NULL, until BIGINT NOT NULL, holder TEXT NOT NULL, PRIMARY KEY (scope, until, holder)
  );
  CREATE INDEX ledger_end_users_until ON ledger_end_users (until);
`;

/** The tables of the ledger. */
export const ledgerSteps: readonly Step[] = [
  { name: 'ledger-1', sqlite: tables, postgres: tables },
  { name: 'ledger-2', sqlite: allotments, postgres: allotments },
  // Gateways of the version before know no owners: calls through them are neither held to the limits of owners nor charged to them.
  { name: 'ledger-3', isAddition: true, sqlite: owners, postgres: owners },
  { name: 'ledger-4', isAddition: true, sqlite: made, postgres: made },
  { name: 'ledger-5', isAddition: true, sqlite: endUsers, postgres: endUsers },
];
