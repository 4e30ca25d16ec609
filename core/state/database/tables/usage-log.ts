import type { Step } from '../migrations.ts';

/**
 * What records are looked for and summed by is apart from what only tells more of one of them: sums read all records of a time, and would
 * read the rest with them. `ms_bin` and `first_bin` are times on a logarithmic scale, for percentiles.
 */
const columns = `
    at BIGINT NOT NULL, id TEXT NOT NULL, key_id TEXT, ip TEXT NOT NULL, operation TEXT NOT NULL, format TEXT NOT NULL,
    upstream_format TEXT, model TEXT NOT NULL, upstream_model TEXT, channel TEXT, stream SMALLINT NOT NULL, pass_through SMALLINT,
    status SMALLINT NOT NULL, code TEXT, ended TEXT NOT NULL, input BIGINT NOT NULL, output BIGINT NOT NULL, cache_read BIGINT NOT NULL,
    cache_write BIGINT NOT NULL, reasoning BIGINT NOT NULL, estimated SMALLINT, micro_dollars BIGINT,
    ms DOUBLE PRECISION NOT NULL, first_ms DOUBLE PRECISION, gateway_ms DOUBLE PRECISION, ms_bin SMALLINT NOT NULL, first_bin SMALLINT,
    PRIMARY KEY (at, id)`;

const details =
  'at BIGINT NOT NULL, id TEXT NOT NULL, details TEXT, request TEXT, response TEXT, PRIMARY KEY (at, id)';

const attempts = `
    at BIGINT NOT NULL, id TEXT NOT NULL, number SMALLINT NOT NULL, channel TEXT NOT NULL, model TEXT NOT NULL, code TEXT NOT NULL,
    message TEXT NOT NULL, PRIMARY KEY (at, id, number)`;

const byId = 'CREATE UNIQUE INDEX usage_records_id ON usage_records (id);';

/** The tables of the usage log. */
export const usageLogSteps: readonly Step[] = [
  {
    name: 'usage-log-1',
    // Without row ids the records lie in the order of their time, so that a slice of it is read in one go. More indexes would double what
    // each call costs to write down.
    sqlite: `
      CREATE TABLE usage_records (${columns}) WITHOUT ROWID;
      CREATE TABLE usage_details (${details}) WITHOUT ROWID;
      ${byId}`,
    postgres: `
      CREATE TABLE usage_records (${columns});
      CREATE TABLE usage_details (${details});
      ${byId}
      CREATE INDEX usage_records_key ON usage_records (key_id, at);
      CREATE INDEX usage_records_model ON usage_records (model, at);`,
  },
  {
    name: 'usage-log-2',
    // A call has one channel and may have failed at others before: these are counted by channels here. Few calls have any.
    sqlite: `CREATE TABLE usage_attempts (${attempts}) WITHOUT ROWID;`,
    postgres: `CREATE TABLE usage_attempts (${attempts});`,
  },
];
