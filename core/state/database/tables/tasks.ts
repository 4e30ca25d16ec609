import type { Step } from '../migrations.ts';

/**
 * Tasks that providers work on. The owner is part of the key, so that no question can be asked without one. `ask_at` is when the provider
 * is to be asked next; whoever asks holds `lease` until `lease_until`. Times are Unix milliseconds. The large column comes last.
 */
const tables = `
  CREATE TABLE tasks (
    owner TEXT NOT NULL, id TEXT NOT NULL, created BIGINT NOT NULL, updated BIGINT NOT NULL, finished BIGINT, expires BIGINT NOT NULL,
    deadline BIGINT NOT NULL, state TEXT NOT NULL, format TEXT NOT NULL, channel TEXT NOT NULL, asked BIGINT NOT NULL, asks BIGINT NOT NULL,
    ask_at BIGINT NOT NULL, lease TEXT NOT NULL, lease_until BIGINT NOT NULL, details TEXT NOT NULL,
    PRIMARY KEY (owner, id)
  );
  CREATE INDEX tasks_owner ON tasks (owner, created, id);
  CREATE INDEX tasks_due ON tasks (ask_at) WHERE finished IS NULL;
  CREATE INDEX tasks_expires ON tasks (expires);
`;

/** The table of tasks. */
export const taskSteps: readonly Step[] = [{ name: 'tasks-1', sqlite: tables, postgres: tables }];
