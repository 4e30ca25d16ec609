import type { Step } from '../migrations.ts';

/**
 * The owner is part of every key, so that no question can be asked without one. The large columns come last: what precedes them is read
 * without them. `response_items` says in which responses an item is; the item itself is in their text.
 */
const tables = `
  CREATE TABLE IF NOT EXISTS responses (
    owner TEXT NOT NULL, id TEXT NOT NULL, created BIGINT NOT NULL, expires BIGINT NOT NULL, status TEXT NOT NULL,
    previous TEXT, channel TEXT, runs_until BIGINT, response TEXT NOT NULL, input TEXT NOT NULL,
    PRIMARY KEY (owner, id)
  );
  CREATE INDEX IF NOT EXISTS responses_expires ON responses (expires);
  CREATE TABLE IF NOT EXISTS response_items (
    owner TEXT NOT NULL, response TEXT NOT NULL, item TEXT NOT NULL,
    PRIMARY KEY (owner, response, item)
  );
  CREATE INDEX IF NOT EXISTS response_items_item ON response_items (owner, item);
  CREATE TABLE IF NOT EXISTS conversations (
    owner TEXT NOT NULL, id TEXT NOT NULL, created BIGINT NOT NULL, positions BIGINT NOT NULL, metadata TEXT NOT NULL,
    PRIMARY KEY (owner, id)
  );
  CREATE TABLE IF NOT EXISTS conversation_items (
    owner TEXT NOT NULL, conversation TEXT NOT NULL, position BIGINT NOT NULL, item TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (owner, conversation, position)
  );
  CREATE UNIQUE INDEX IF NOT EXISTS conversation_items_once ON conversation_items (owner, conversation, item);
  CREATE INDEX IF NOT EXISTS conversation_items_item ON conversation_items (owner, item);
`;

/** The tables of responses and conversations. */
export const responseSteps: readonly Step[] = [{ name: 'responses-1', sqlite: tables, postgres: tables }];
