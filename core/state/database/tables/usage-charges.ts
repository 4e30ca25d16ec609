/** Columns and a table of the usage log for what calls were charged by price rules. */
import type { Step } from '../migrations.ts';
import { unsummed, unsummedColumns, unsummedOfKind } from './usage-log.ts';

const name = '"chargedMicroDollars":';

/**
 * SQL for the charge of a call minus its cost, in micro-dollars: below zero where it was charged less, NULL where it was charged its cost. `row`:
 * prefix of the columns of `usage_records` or `usage_calls`. The details of a record end with its charge, see `detailsOf` of
 * `money/usage-log/rows.ts`. They are not parsed as `json` by PostgreSQL, which rejects texts that clients may send. The SQL must not contain a
 * question mark, which stands for a parameter.
 */
export const chargedMore: Readonly<Record<'sqlite' | 'postgres', (row: string) => string>> = {
  sqlite: (row) =>
    `CASE WHEN instr(${row}details, '${name}') > 0
       THEN CAST(json_extract(${row}details, '$.chargedMicroDollars') AS INTEGER) - COALESCE(${row}micro_dollars, 0) END`,
  postgres: (row) =>
    `CAST(substring(right(${row}details, 48) from '${name}(-{0,1}[0-9]{1,16})[}]$') AS BIGINT) - COALESCE(${row}micro_dollars, 0)`,
};

/** Columns of calls whose charge is in no sums yet. */
const columns = `${unsummedColumns}, owners, tags, end_user, charged_more`;

const table = (collate: string): string => `
      CREATE TABLE usage_unsummed_charged (${unsummed(collate)}, owners BIGINT, tags TEXT, end_user TEXT, charged_more BIGINT NOT NULL)`;

const values = (row: string, kind: 'sqlite' | 'postgres'): string =>
  `${unsummedOfKind(row)}, ${row}owners, ${row}tags, ${row}end_user, ${chargedMore[kind](row)}`;

/** Folds that older gateways make do not have what was charged. `charged` is the last number that a gateway of this version has folded. */
const added = `
      ALTER TABLE usage_totals ADD COLUMN charged_more BIGINT;
      ALTER TABLE usage_subject_totals ADD COLUMN charged_more BIGINT;
      ALTER TABLE usage_folds ADD COLUMN charged BIGINT;
      UPDATE usage_folds SET charged = COALESCE(after, 2147483647);`;

/** Sums have what calls were charged. Older gateways add calls to sums without it: charges wait in a table of their own for newer ones. */
export const usageChargeSteps: readonly Step[] = [
  {
    name: 'usage-charges-1',
    isAddition: true,
    sqlite: `${added}${table('')};
      CREATE TRIGGER usage_records_charged AFTER INSERT ON usage_records WHEN instr(NEW.details, '${name}') > 0 BEGIN
        INSERT INTO usage_unsummed_charged (${columns})
          SELECT ${values('NEW.', 'sqlite')} FROM (SELECT 1) LEFT JOIN usage_kinds k ON k.id = NEW.kind;
      END;`,
    postgres: `${added}${table(' COLLATE "C"')} WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);
      CREATE FUNCTION usage_note_charged() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          INSERT INTO usage_unsummed_charged (${columns})
            SELECT ${values('a.', 'postgres')} FROM added a LEFT JOIN usage_kinds k ON k.id = a.kind
            WHERE a.details IS NOT NULL AND ${chargedMore.postgres('a.')} IS NOT NULL;
          RETURN NULL;
        END
      $$;
      CREATE TRIGGER usage_records_charged AFTER INSERT ON usage_records
        REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION usage_note_charged();`,
  },
];
