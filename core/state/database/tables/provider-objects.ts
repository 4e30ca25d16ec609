import type { Step } from '../migrations.ts';

/**
 * Tables of the objects that providers keep for API keys. The owner is part of the primary key, so that no query can leave it out. `ask_at` is
 * set while an object is still to be charged: the process that queries the provider then holds `lease` until `lease_until`. Times are Unix
 * milliseconds. The large column comes last.
 */
const tables = `
  CREATE TABLE provider_objects (
    owner TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, channel TEXT NOT NULL, account TEXT NOT NULL, created BIGINT NOT NULL,
    ask_at BIGINT, lease TEXT NOT NULL, lease_until BIGINT NOT NULL, details TEXT NOT NULL,
    PRIMARY KEY (owner, kind, id)
  );
  CREATE INDEX provider_objects_owner ON provider_objects (owner, kind, created, id);
  CREATE INDEX provider_objects_id ON provider_objects (id);
  CREATE INDEX provider_objects_due ON provider_objects (ask_at) WHERE ask_at IS NOT NULL;
`;

/** The table of what providers keep. */
export const providerObjectSteps: readonly Step[] = [
  { name: 'provider-objects-1', sqlite: tables, postgres: tables },
];
