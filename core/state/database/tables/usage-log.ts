/** Migration steps of the usage log's tables: records, details, attempts, and the sums over records. */
import type { Step } from '../migrations.ts';

/**
 * Columns by which records are searched and summed. The others are in a table of their own, because sums read all records of a range, and would
 * read those columns too. `ms_bin` and `first_bin` are durations on a logarithmic scale, for percentiles.
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

/** Columns by which records are summed. Levels of `usage_sums` without such a column have an empty text, or 0, in its place. */
const names = (collate: string): string =>
  ['key_id', 'model', 'channel', 'format', 'operation']
    .map((name) => `${name} TEXT${collate} NOT NULL`)
    .join(', ');

/** Columns of sums; see `money/usage-log/levels.ts`. `bins` counts calls by `ms_bin`, and with an `f` before it by `first_bin`. */
const sums = (json: string, collate: string): string => `
    level SMALLINT NOT NULL, start BIGINT NOT NULL, ${names(collate)}, status SMALLINT NOT NULL, failed SMALLINT NOT NULL,
    calls BIGINT NOT NULL, input BIGINT NOT NULL, output BIGINT NOT NULL, cache_read BIGINT NOT NULL, cache_write BIGINT NOT NULL,
    reasoning BIGINT NOT NULL, micro_dollars BIGINT NOT NULL, bins ${json},
    PRIMARY KEY (level, start, key_id, model, channel, format, operation, status, failed)`;

/** Columns of records that are in no sums yet. */
export const unsummed = (collate: string): string => `
    at BIGINT NOT NULL, ${names(collate)}, status SMALLINT NOT NULL, failed SMALLINT NOT NULL, input BIGINT NOT NULL, output BIGINT NOT NULL,
    cache_read BIGINT NOT NULL, cache_write BIGINT NOT NULL, reasoning BIGINT NOT NULL, micro_dollars BIGINT NOT NULL,
    ms_bin SMALLINT NOT NULL, first_bin SMALLINT`;

/**
 * Position in the records that are older than the sums and are still to be added: those before `at`, from the newest to the oldest. Without a
 * row there are none. New records with a time before `at` are noted in `usage_late`, because they are in the sums already.
 */
const summing = `
      CREATE TABLE usage_summing (one SMALLINT PRIMARY KEY, at BIGINT NOT NULL, id TEXT NOT NULL);
      INSERT INTO usage_summing (one, at, id) SELECT 1, MAX(at) + 1, '' FROM usage_records HAVING MAX(at) IS NOT NULL;
      CREATE TABLE usage_late (at BIGINT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (at, id));`;

/** Index for the sums of one key, on the levels with keys. */
const keyIndex = 'CREATE INDEX usage_sums_key ON usage_sums (key_id, level, start) WHERE level >= 5;';

/** Names of the columns of `usage_unsummed`. */
export const unsummedColumns =
  'at, key_id, model, channel, format, operation, status, failed, input, output, cache_read, cache_write, reasoning, micro_dollars, ms_bin, first_bin';

/** SQL for the values of these columns from a row of `usage_records`. */
const unsummedValues = (row: string): string =>
  `${row}at, COALESCE(${row}key_id, ''), ${row}model, COALESCE(${row}channel, ''), ${row}format, ${row}operation, ${row}status,
          CASE WHEN ${row}status >= 400 OR ${row}ended = 'interrupted' THEN 1 ELSE 0 END, ${row}input, ${row}output, ${row}cache_read,
          ${row}cache_write, ${row}reasoning, COALESCE(${row}micro_dollars, 0), ${row}ms_bin, ${row}first_bin`;

/** Columns of the names of sums, each combination stored once. A row without names distinguishes failures from other calls only. */
const totalNames = (collate: string): string => `
    model TEXT${collate} NOT NULL, channel TEXT${collate} NOT NULL, format TEXT${collate} NOT NULL, operation TEXT${collate} NOT NULL,
    status SMALLINT NOT NULL, failed SMALLINT NOT NULL`;

/**
 * Sums as `usage_sums` has them, with numbers in the place of texts: `start` in minutes, `key` of `usage_keys` or 0, `names` of `usage_names`.
 * Amounts of zero are absent. `last_day`: the latest day of a record that has the name, so that names go when their sums have gone.
 */
const totals = (collate: string, more: string): string => `
      CREATE TABLE usage_names (id INTEGER PRIMARY KEY, ${totalNames(collate)}, last_day INTEGER NOT NULL);
      CREATE UNIQUE INDEX usage_names_all ON usage_names (model, channel, format, operation, status, failed);
      CREATE TABLE usage_keys (id INTEGER PRIMARY KEY, key_id TEXT${collate} NOT NULL, last_day INTEGER NOT NULL);
      CREATE UNIQUE INDEX usage_keys_key_id ON usage_keys (key_id);
      CREATE INDEX usage_names_last_day ON usage_names (last_day);
      CREATE INDEX usage_keys_last_day ON usage_keys (last_day);
      CREATE TABLE usage_totals (
        calls BIGINT NOT NULL, start INTEGER NOT NULL, key INTEGER NOT NULL, names INTEGER NOT NULL, level SMALLINT NOT NULL,
        input BIGINT, output BIGINT, cache_read BIGINT, cache_write BIGINT, reasoning BIGINT, micro_dollars BIGINT, bins TEXT,
        PRIMARY KEY (level, start, key, names)
      )${more};
      CREATE INDEX usage_totals_key ON usage_totals (key, start) WHERE level >= 5;`;

/** Values that many calls share; see `money/usage-log/kinds.ts`. `last_day`: the latest day on which a record with them was written. */
const kinds = (id: string): string => `
      CREATE TABLE usage_kinds (
        id ${id} PRIMARY KEY, operation TEXT NOT NULL, format TEXT NOT NULL, upstream_format TEXT, model TEXT NOT NULL, upstream_model TEXT,
        channel TEXT, code TEXT, ended TEXT NOT NULL, price TEXT, last_day INTEGER NOT NULL
      );
      CREATE INDEX usage_kinds_last_day ON usage_kinds (last_day);`;

/** SQL for a column of a record: of its kind, or of the row itself where it has no kind. */
export const ofKind = (row: string, name: string): string =>
  `CASE WHEN ${row}kind IS NULL THEN ${row}${name} ELSE k.${name} END`;

/** Columns that rows with a kind leave empty. */
export const kindColumns = [
  'operation',
  'format',
  'upstream_format',
  'model',
  'upstream_model',
  'channel',
  'code',
  'ended',
];
/** The other columns of records. */
export const ownColumns =
  'at, id, key_id, ip, stream, pass_through, status, input, output, cache_read, cache_write, reasoning, estimated, micro_dollars, ms, first_ms, gateway_ms, ms_bin, first_bin, details'.split(
    ', ',
  );

/** View of records that were written by older or newer gateways. */
const calls = `
      CREATE VIEW usage_calls AS SELECT ${ownColumns.map((name) => `r.${name}`).join(', ')},
        ${kindColumns.map((name) => `${ofKind('r.', name)} AS ${name}`).join(', ')}, k.price
      FROM usage_records r LEFT JOIN usage_kinds k ON k.id = r.kind;`;

/** SQL for the values that a row of `usage_records` adds to the sums, for rows of all versions. */
export const unsummedOfKind = (row: string): string => {
  const [status, ended] = [`${row}status`, ofKind(row, 'ended')];
  const name = (column: string): string => ofKind(row, column);
  return `${row}at, COALESCE(${row}key_id, ''), ${name('model')}, COALESCE(${name('channel')}, ''), ${name('format')}, ${name('operation')}, ${status},
          CASE WHEN ${status} >= 400 OR ${ended} = 'interrupted' THEN 1 ELSE 0 END, ${row}input, ${row}output, ${row}cache_read,
          ${row}cache_write, ${row}reasoning, COALESCE(${row}micro_dollars, 0), ${row}ms_bin, ${row}first_bin`;
};

/** Columns of `usage_records` in an order that leaves few gaps. */
const partedColumns = `
        at BIGINT NOT NULL, kind BIGINT, input BIGINT NOT NULL, output BIGINT NOT NULL, cache_read BIGINT NOT NULL, cache_write BIGINT NOT NULL,
        reasoning BIGINT NOT NULL, micro_dollars BIGINT, ms DOUBLE PRECISION NOT NULL, first_ms DOUBLE PRECISION, gateway_ms DOUBLE PRECISION,
        status SMALLINT NOT NULL, ms_bin SMALLINT NOT NULL, first_bin SMALLINT, stream SMALLINT NOT NULL, pass_through SMALLINT, estimated SMALLINT,
        id TEXT NOT NULL, key_id TEXT, ip TEXT NOT NULL, operation TEXT NOT NULL, format TEXT NOT NULL, upstream_format TEXT, model TEXT NOT NULL,
        upstream_model TEXT, channel TEXT, code TEXT, ended TEXT NOT NULL, details TEXT`;

/** Tables with partitions, and their columns. */
const parted: Readonly<Record<string, string>> = {
  usage_records: partedColumns,
  usage_details: 'at BIGINT NOT NULL, id TEXT NOT NULL, details TEXT, request TEXT, response TEXT',
  usage_attempts:
    'at BIGINT NOT NULL, id TEXT NOT NULL, number SMALLINT NOT NULL, channel TEXT NOT NULL, model TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL',
};

/**
 * Makes the existing tables the default partitions of partitioned ones. PostgreSQL need not read their rows, because there is no other
 * partition. `money/usage-log/partitions.ts` makes those of days.
 */
const partedTables = Object.entries(parted)
  .map(
    ([name, list]) => `
      ALTER TABLE ${name} RENAME TO ${name}_before;
      CREATE TABLE ${name} (${list}) PARTITION BY RANGE (at);
      ALTER TABLE ${name} ATTACH PARTITION ${name}_before DEFAULT;`,
  )
  .join('');

/** The steps. */
export const usageLogSteps: readonly Step[] = [
  {
    name: 'usage-log-1',
    // WITHOUT ROWID stores the records in the order of their time, so that a range is read sequentially. More indexes would double the cost
    // of writing a call.
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
    // Failed attempts of calls, because a record has only the channel that answered. Few calls have any.
    sqlite: `CREATE TABLE usage_attempts (${attempts}) WITHOUT ROWID;`,
    postgres: `CREATE TABLE usage_attempts (${attempts});`,
  },
  {
    name: 'usage-log-3',
    // Triggers, because gateways of the version before write records beside this one.
    isAddition: true,
    sqlite: `
      CREATE TABLE usage_sums (${sums('TEXT', '')}) WITHOUT ROWID;
      ${keyIndex}
      CREATE TABLE usage_unsummed (${unsummed('')});
      ${summing}
      CREATE TRIGGER usage_records_inserted AFTER INSERT ON usage_records BEGIN
        INSERT INTO usage_unsummed (${unsummedColumns}) VALUES (${unsummedValues('NEW.')});
      END;
      CREATE TRIGGER usage_records_late AFTER INSERT ON usage_records
        WHEN NEW.at < (SELECT MAX(at) FROM usage_summing) BEGIN
        INSERT OR IGNORE INTO usage_late (at, id) VALUES (NEW.at, NEW.id);
      END;`,
    postgres: `
      CREATE TABLE usage_sums (${sums('JSONB', ' COLLATE "C"')});
      ${keyIndex}
      CREATE TABLE usage_unsummed (${unsummed(' COLLATE "C"')})
        WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
      CREATE FUNCTION usage_note_unsummed() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO usage_unsummed (${unsummedColumns}) SELECT ${unsummedValues('')} FROM added;
          INSERT INTO usage_late (at, id) SELECT at, id FROM added WHERE at < (SELECT MAX(at) FROM usage_summing)
            ON CONFLICT DO NOTHING;
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER usage_records_inserted AFTER INSERT ON usage_records
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION usage_note_unsummed();
      ${summing}`,
  },
  {
    name: 'usage-log-4',
    // Sums that older gateways add to `usage_sums` meanwhile are moved from there, and are read in addition until then.
    isAddition: true,
    sqlite: totals('', ' WITHOUT ROWID'),
    postgres: totals(' COLLATE "C"', ''),
  },
  {
    name: 'usage-log-5',
    // Older gateways write whole rows, as before, and see rows of newer gateways without their names.
    isAddition: true,
    sqlite: `${kinds('INTEGER')}
      ALTER TABLE usage_records ADD COLUMN kind BIGINT;
      ALTER TABLE usage_records ADD COLUMN details TEXT;
      ${calls}
      DROP TRIGGER usage_records_inserted;
      CREATE TRIGGER usage_records_inserted AFTER INSERT ON usage_records BEGIN
        INSERT INTO usage_unsummed (${unsummedColumns})
          SELECT ${unsummedOfKind('NEW.')} FROM (SELECT 1) LEFT JOIN usage_kinds k ON k.id = NEW.kind;
      END;`,
    postgres: `${kinds('BIGINT')}
      DROP TRIGGER usage_records_inserted ON usage_records;
      DROP INDEX usage_records_model;
      ALTER TABLE usage_records ADD COLUMN kind BIGINT, ADD COLUMN details TEXT;
      ${partedTables}
      ${calls}
      CREATE OR REPLACE FUNCTION usage_note_unsummed() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO usage_unsummed (${unsummedColumns})
            SELECT ${unsummedOfKind('a.')} FROM added a LEFT JOIN usage_kinds k ON k.id = a.kind;
          INSERT INTO usage_late (at, id) SELECT at, id FROM added WHERE at < (SELECT MAX(at) FROM usage_summing)
            ON CONFLICT DO NOTHING;
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER usage_records_inserted AFTER INSERT ON usage_records
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION usage_note_unsummed();`,
  },
];
