/** Table and index of the usage log by which the records of an organisation, a tag or an end user are found. */
import type { Step } from '../migrations.ts';

const [hour, minute] = [3_600_000, 60_000];

/** Numbers of subjects in the column `kind`, as `usage_subjects` has them. */
const kinds = { organisation: 1, tag: 4, endUser: 5 } as const;

/** Rows of a record. An organisation may have most calls of a gateway, so that it has one row for all calls of a minute. */
const rowsOf = (record: string, from: string): string => `
  SELECT ${record}at / ${hour}, ${kinds.tag}, tag.value, ${record}at FROM ${from === '' ? '' : `${from}, `}json_each(${record}tags) AS tag
  UNION ALL SELECT ${record}at / ${hour}, ${kinds.endUser}, ${record}end_user, ${record}at
    ${from === '' ? '' : `FROM ${from}`} WHERE ${record}end_user IS NOT NULL
  UNION ALL SELECT ${record}at / ${hour}, ${kinds.organisation}, o.organisation, ${record}at - ${record}at % ${minute}
    FROM usage_owners o ${from === '' ? '' : `JOIN ${from}`} ${from === '' ? 'WHERE' : 'ON'} o.id = ${record}owners AND o.organisation IS NOT NULL`;

const insertion = 'INSERT OR IGNORE INTO usage_subject_records (hour, kind, subject, at)';

/**
 * SQLite has a table of times of records, in the order of hours: new rows are near each other, because rows all over a large table cost much more to
 * write. A trigger fills it, because older gateways write records beside this one. A server has indexes of partitions instead, see
 * `money/usage-log/partition-indexes.ts`, and finds the records of an organisation by its keys.
 */
export const usageSubjectRecordSteps: readonly Step[] = [
  {
    name: 'usage-subject-records-1',
    isAddition: true,
    sqlite: `
      CREATE TABLE usage_subject_records (
        hour INTEGER NOT NULL, kind INTEGER NOT NULL, subject TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (hour, kind, subject, at)
      ) WITHOUT ROWID;
      ${insertion} SELECT * FROM (${rowsOf('r.', 'usage_records r')}) ORDER BY 1, 2, 3, 4;
      CREATE TRIGGER usage_records_of_subjects AFTER INSERT ON usage_records
        WHEN NEW.owners IS NOT NULL OR NEW.tags IS NOT NULL OR NEW.end_user IS NOT NULL BEGIN
        ${insertion} ${rowsOf('NEW.', '')};
      END;`,
    postgres: 'CREATE INDEX usage_subjects_organisation ON usage_subjects (organisation) WHERE kind = 0',
  },
];
