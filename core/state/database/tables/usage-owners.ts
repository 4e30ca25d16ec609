/** Tables of the usage log for owners, tags and end users. */
import type { Step } from '../migrations.ts';
import { kindColumns, ofKind, ownColumns, unsummed, unsummedColumns, unsummedOfKind } from './usage-log.ts';

/** Whom calls belong to, each combination written once. `last_day`: the latest day on which a record with it was written. */
const owners = (id: string): string => `
      CREATE TABLE usage_owners (id ${id} PRIMARY KEY, team TEXT, member TEXT, organisation TEXT, last_day INTEGER NOT NULL);
      CREATE INDEX usage_owners_last_day ON usage_owners (last_day);`;

const ownedColumns = `${unsummedColumns}, owners, tags, end_user`;

/** Records with owners, tags or an end user that are in no sums of these yet, with what they add to them. */
const unsummedOwned = (collate: string): string =>
  `${unsummed(collate)}, owners BIGINT, tags TEXT, end_user TEXT`;

/**
 * Sums by owners, tags and end users, see `money/usage-log/subjects.ts`: as `usage_totals`, with a number of `usage_subjects` in the place of
 * the key. Names are those of `usage_names`.
 */
const subjects = (collate: string, more: string): string => `
      CREATE TABLE usage_subjects (
        id INTEGER PRIMARY KEY, kind SMALLINT NOT NULL, subject TEXT${collate} NOT NULL, key_id TEXT${collate}, team TEXT${collate},
        member TEXT${collate}, organisation TEXT${collate}, last_day INTEGER NOT NULL
      );
      CREATE UNIQUE INDEX usage_subjects_subject ON usage_subjects (kind, subject);
      CREATE INDEX usage_subjects_team ON usage_subjects (team);
      CREATE INDEX usage_subjects_member ON usage_subjects (member);
      CREATE INDEX usage_subjects_last_day ON usage_subjects (last_day);
      CREATE TABLE usage_subject_totals (
        calls BIGINT NOT NULL, start INTEGER NOT NULL, subject INTEGER NOT NULL, names INTEGER NOT NULL, level SMALLINT NOT NULL,
        input BIGINT, output BIGINT, cache_read BIGINT, cache_write BIGINT, reasoning BIGINT, micro_dollars BIGINT,
        PRIMARY KEY (level, start, subject, names)
      )${more};
      CREATE INDEX usage_subject_totals_subject ON usage_subject_totals (subject, level, start);`;

/** Records as they are read, with whom they belong to. */
const ownedCalls = `CREATE VIEW usage_calls AS SELECT ${ownColumns.map((name) => `r.${name}`).join(', ')},
        ${kindColumns.map((name) => `${ofKind('r.', name)} AS ${name}`).join(', ')}, k.price,
        o.team, o.member, o.organisation, r.tags, r.end_user
      FROM usage_records r LEFT JOIN usage_kinds k ON k.id = r.kind LEFT JOIN usage_owners o ON o.id = r.owners;`;

const isOwned = (row: string): string =>
  `(${row}owners IS NOT NULL OR ${row}tags IS NOT NULL OR ${row}end_user IS NOT NULL)`;

/** Records say whom they belong to, and are summed by it. */
export const usageOwnerSteps: readonly Step[] = [
  {
    name: 'usage-log-6',
    // Older gateways write records without owners, and add none to these sums: those have a table of their own that waits for newer ones.
    isAddition: true,
    sqlite: `${owners('INTEGER')}${subjects('', ' WITHOUT ROWID')}
      ALTER TABLE usage_records ADD COLUMN owners BIGINT;
      ALTER TABLE usage_records ADD COLUMN tags TEXT;
      ALTER TABLE usage_records ADD COLUMN end_user TEXT;
      DROP VIEW usage_calls;
      ${ownedCalls}
      CREATE TABLE usage_unsummed_owned (${unsummedOwned('')});
      CREATE TRIGGER usage_records_owned AFTER INSERT ON usage_records WHEN ${isOwned('NEW.')} BEGIN
        INSERT INTO usage_unsummed_owned (${ownedColumns})
          SELECT ${unsummedOfKind('NEW.')}, NEW.owners, NEW.tags, NEW.end_user FROM (SELECT 1) LEFT JOIN usage_kinds k ON k.id = NEW.kind;
      END;`,
    postgres: `${owners('BIGINT')}${subjects(' COLLATE "C"', '')}
      ALTER TABLE usage_records ADD COLUMN owners BIGINT, ADD COLUMN tags TEXT, ADD COLUMN end_user TEXT;
      ${ownedCalls.replace('CREATE VIEW', 'CREATE OR REPLACE VIEW')}
      CREATE TABLE usage_unsummed_owned (${unsummedOwned(' COLLATE "C"')})
        WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
      CREATE OR REPLACE FUNCTION usage_note_unsummed() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO usage_unsummed (${unsummedColumns})
            SELECT ${unsummedOfKind('a.')} FROM added a LEFT JOIN usage_kinds k ON k.id = a.kind;
          INSERT INTO usage_unsummed_owned (${ownedColumns})
            SELECT ${unsummedOfKind('a.')}, a.owners, a.tags, a.end_user FROM added a LEFT JOIN usage_kinds k ON k.id = a.kind
            WHERE ${isOwned('a.')};
          INSERT INTO usage_late (at, id) SELECT at, id FROM added WHERE at < (SELECT MAX(at) FROM usage_summing)
            ON CONFLICT DO NOTHING;
          RETURN NULL;
        END
      $$;`,
  },
  {
    name: 'usage-log-7',
    // Partitions of a server get the same indexes from `money/usage-log/partitions.ts`. The values are those of `record-indexes.ts`.
    isAddition: true,
    sqlite: `
      CREATE INDEX usage_records_kind ON usage_records (kind, at);
      CREATE INDEX usage_records_failures ON usage_records (at) WHERE status >= 400;
      CREATE INDEX usage_records_ms ON usage_records (ms) WHERE ms >= 30000;
      CREATE INDEX usage_records_micro_dollars ON usage_records (micro_dollars) WHERE micro_dollars >= 100000;
      DROP VIEW usage_calls;
      ${ownedCalls.replace(', r.tags', ', r.kind, r.tags')}`,
    postgres: ownedCalls
      .replace('CREATE VIEW', 'CREATE OR REPLACE VIEW')
      .replace('r.end_user', 'r.end_user, r.kind'),
  },
];
