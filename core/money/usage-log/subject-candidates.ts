/** The indexes of records by tag and end user, and with SQLite by organisation. */
import type { Database } from '../../state/database/index.ts';
import { daysOf, type Candidates } from './candidate-entries.ts';
import type { UsageFilter } from './index.ts';
import type { RecordIndexes } from './record-indexes.ts';
import { subjectKinds } from './subjects.ts';
import { clean } from './values.ts';

const hour = 3_600_000;

/** Returns the indexes by the tag, the end user or, with SQLite, the organisation of a filter. */
export async function ofSubjects(
  kind: Database['kind'],
  indexes: RecordIndexes,
  filter: UsageFilter,
): Promise<readonly Candidates[]> {
  const { endUser, tag, organisation } = filter;
  if (kind === 'sqlite')
    return [
      ...(endUser === undefined ? [] : [ofSubjectInSqlite('endUser', endUser)]),
      ...(tag === undefined ? [] : [ofSubjectInSqlite('tag', tag)]),
      ...(organisation === undefined ? [] : [ofSubjectInSqlite('organisation', organisation)]),
    ];
  if ((endUser === undefined && tag === undefined) || !(await indexes.areMade('subjects'))) return [];
  return [...(endUser === undefined ? [] : [ofEndUser(endUser)]), ...(tag === undefined ? [] : [ofTag(tag)])];
}

/** The records of an end user, by stretches of 70 minutes as the index has them. */
function ofEndUser(endUser: string): Candidates {
  return {
    isOrdered: false,
    by: 'subject',
    subject: 'endUser',
    select(columns, since, until, limit) {
      const stretches = [since, until - 1].map((at) => Math.floor(Math.max(0, at) / 2 ** 22));
      return {
        sql: `SELECT ${columns} FROM usage_records WHERE end_user IS NOT NULL AND hashtext(end_user) = hashtext(?)
          AND CAST(at >> 22 AS INTEGER) BETWEEN ? AND ? AND at >= ? AND at < ? ORDER BY CAST(at >> 22 AS INTEGER) DESC LIMIT ?`,
        values: [endUser, ...stretches, ...daysOf(since, until), limit],
      };
    },
  };
}

/** The records of a tag in whole days, because the index does not tell the times of a day apart. */
function ofTag(tag: string): Candidates {
  return {
    isOrdered: false,
    by: 'subject',
    subject: 'tag',
    select: (columns, since, until, limit) => ({
      sql: `SELECT ${columns} FROM usage_records WHERE tags IS NOT NULL AND CAST(tags AS jsonb) @> CAST(? AS jsonb) AND at >= ? AND at < ? LIMIT ?`,
      values: [JSON.stringify([clean(tag)]), ...daysOf(since, until), limit],
    }),
  };
}

/** The records whose times SQLite has noted for an organisation, a tag or an end user, hour by hour. Those of an organisation are noted by the minute. */
function ofSubjectInSqlite(subject: 'organisation' | 'tag' | 'endUser', name: string): Candidates {
  const width = subject === 'organisation' ? 60_000 : 1;
  return {
    isOrdered: false,
    by: 'subject',
    subject,
    select: (columns, since, until, limit) => ({
      sql: `SELECT ${columns} FROM (
          WITH RECURSIVE hours (hour) AS (
            SELECT MAX(hour) FROM usage_subject_records WHERE hour <= ?
            UNION ALL SELECT (SELECT MAX(hour) FROM usage_subject_records s WHERE s.hour < hours.hour) FROM hours WHERE hours.hour > ?)
          SELECT s.at AS noted FROM hours CROSS JOIN usage_subject_records s
          WHERE s.hour = hours.hour AND s.kind = ${subjectKinds[subject]} AND s.subject = ? AND s.at > ? AND s.at < ?) AS notes
        CROSS JOIN usage_records WHERE at >= noted AND at < noted + ${width} LIMIT ?`,
      values: [Math.floor((until - 1) / hour), Math.floor(since / hour), name, since - width, until, limit],
    }),
  };
}
