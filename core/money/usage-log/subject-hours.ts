/** Finds the hours in which an owner, a tag or an end user has records. */
import type { UsageFilter } from './index.ts';
import { hour, largestStart, minute } from './levels.ts';
import type { MatchingHour } from './matching-hour.ts';
import type { Ask } from '../../state/database/long-reads.ts';
import { ownedMembers, ownedNarrowing } from './narrowing.ts';
import { listSlice } from './questions.ts';
import { subjectKinds, subjectLevel } from './subjects.ts';
import { minutesOf } from './totals.ts';

const hourStart = `at - at % ${hour}`;

/**
 * Gives the hours from the newest to the oldest in which there may be records of a filter that names an owner, a tag or an end user. The rarest
 * kind that the filter names is looked for.
 */
export async function* subjectHours(
  ask: Ask,
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
  const waiting = await ask(
    `SELECT DISTINCT ${hourStart} AS start FROM
       (SELECT u.*, o.team, o.member, o.organisation FROM usage_unsummed_owned u LEFT JOIN usage_owners o ON o.id = u.owners) AS waiting
     WHERE at >= ? AND at < ?${owned.sql}`,
    [since, until, ...owned.values],
  );
  const column = kind === 'team' || kind === 'member' ? kind : 'subject';
  // A tag or end user that was one too many in its hour is among the rest there.
  const isRest = kind === 'tag' || kind === 'endUser' ? " OR subject = ''" : '';
  const found = await ask(
    `SELECT t.start, SUM(t.calls) AS calls FROM usage_subject_totals t WHERE t.level = ${subjectLevel(kind, false, hour)}
       AND t.subject IN (SELECT id FROM usage_subjects WHERE kind = ${subjectKinds[kind]} AND (${column} = ?${isRest}))
       AND t.start >= ? AND t.start < ? GROUP BY t.start`,
    [String(filter[kind]), Math.floor(since / minute), Math.min(largestStart, Math.ceil(until / minute))],
  );
  const calls = new Map<number, number>(waiting.map(({ start }) => [Number(start), 0]));
  for (const one of found) calls.set(Number(one['start']) * minute, Number(one['calls']));
  for (const start of [...calls.keys()].toSorted((one, other) => other - one))
    yield { start, calls: calls.get(start) ?? 0 };
}

/** True when a team or a member has more calls in a time than are read together. */
export async function ownerHasMany(
  ask: Ask,
  { team, member }: UsageFilter,
  since: number,
  until: number,
): Promise<boolean> {
  const kind = member === undefined ? 'team' : 'member';
  const [row] = await ask(
    `SELECT SUM(t.calls) AS calls FROM usage_subject_totals t WHERE t.level = ${subjectLevel(kind, false, hour)}
       AND t.subject IN (SELECT id FROM usage_subjects WHERE kind = ${subjectKinds[kind]} AND ${kind} = ?)
       AND t.start >= ? AND t.start < ?`,
    [member ?? team ?? '', minutesOf(Math.floor(since / hour) * hour), minutesOf(until)],
  );
  return Number(row?.['calls'] ?? 0) > listSlice;
}
