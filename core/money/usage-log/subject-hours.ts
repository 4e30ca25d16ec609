/** Finds the hours in which an owner, a tag or an end user has records. */
import type { UsageFilter } from './index.ts';
import { day, hour, largestStart, minute } from './levels.ts';
import type { MatchingHour } from './matching-hour.ts';
import type { Query } from '../../state/database/long-reads.ts';
import { ownedMembers, ownedNarrowing } from './narrowing.ts';
import { listSlice } from './questions.ts';
import { subjectKinds, subjectLevel, type SubjectKind } from './subjects.ts';
import { minutesOf } from './totals.ts';

const hourStart = `at - at % ${hour}`;

/**
 * Gives the hours from the newest to the oldest in which there may be records of a filter that names an owner, a tag or an end user, with the
 * calls that the sums know of it. The rarest kind that the filter names is looked for.
 */
export async function* subjectHours(
  query: Query,
  filter: UsageFilter,
  since: number,
  until: number,
): AsyncGenerator<MatchingHour> {
  const kind = (['endUser', 'tag', 'member', 'team', 'organisation'] as const).find(
    (name) => filter[name] !== undefined && ownedMembers.includes(name),
  );
  if (kind === undefined) return;
  const owned = ownedNarrowing({ [kind]: filter[kind] });
  // First what is in no sums yet: what is added to them meanwhile is found in the sums.
  const waiting = await query(
    `SELECT DISTINCT ${hourStart} AS start FROM
       (SELECT u.*, o.team, o.member, o.organisation FROM usage_unsummed_owned u LEFT JOIN usage_owners o ON o.id = u.owners) AS waiting
     WHERE at >= ? AND at < ?${owned.sql}`,
    [since, until, ...owned.values],
  );
  const column = columnOf(kind);
  // A tag or end user that was one too many in its hour is among the rest there.
  const isRest = kind === 'tag' || kind === 'endUser' ? " OR subject = ''" : '';
  const found = await query(
    `SELECT t.start, SUM(CASE WHEN s.subject = '' THEN 0 ELSE t.calls END) AS calls
       FROM (SELECT id, subject FROM usage_subjects WHERE kind = ${subjectKinds[kind]} AND (${column} = ?${isRest})) AS s
       JOIN usage_subject_totals t ON t.subject = s.id AND t.level = ${subjectLevel(kind, false, hour)}
         AND t.start >= ? AND t.start < ? GROUP BY t.start`,
    [String(filter[kind]), Math.floor(since / minute), Math.min(largestStart, Math.ceil(until / minute))],
  );
  const calls = new Map<number, number>(waiting.map(({ start }) => [Number(start), 0]));
  for (const one of found) calls.set(Number(one['start']) * minute, Number(one['calls']));
  for (const start of [...calls.keys()].toSorted((one, other) => other - one))
    yield { start, calls: calls.get(start) ?? 0 };
}

/** True when the sums know more calls of an owner, a tag or an end user in a time than are read together. */
export async function subjectHasMany(
  query: Query,
  filter: UsageFilter,
  kind: SubjectKind,
  since: number,
  until: number,
): Promise<boolean> {
  const name = kind === 'bearer' ? undefined : filter[kind];
  if (name === undefined) return false;
  // An index of a server has whole days of a tag.
  const size = kind === 'tag' || until - since > 7 * day ? day : hour;
  const [row] = await query(
    `SELECT SUM(t.calls) AS calls FROM usage_subject_totals t WHERE t.level = ${subjectLevel(kind, false, size)}
       AND t.subject IN (SELECT id FROM usage_subjects WHERE kind = ${subjectKinds[kind]} AND ${columnOf(kind)} = ?)
       AND t.start >= ? AND t.start < ?`,
    [name, minutesOf(Math.floor(since / size) * size), minutesOf(until)],
  );
  return Number(row?.['calls'] ?? 0) > listSlice;
}

/** An owner in each organisation is a subject of its own. */
function columnOf(kind: SubjectKind): string {
  return kind === 'team' || kind === 'member' ? kind : 'subject';
}
