/** Finds out for whom a call is counted. */
import type { Row } from '../../state/database/sql.ts';
import { subjectKinds, type SubjectKind } from './subjects.ts';

/** A value of a column. */
export type Value = string | number | null;

/** A subject, and with what it is found again. */
export interface Subject {
  readonly kind: SubjectKind;
  /** Values of the columns `kind`, `subject`, `key_id`, `team`, `member` and `organisation`. */
  readonly values: readonly Value[];
}

/** Whose names of tags and end users a call brings: those of its organisation, else of its team, its member or its key. */
export function tenantOf(one: Row): string {
  const found = ['organisation', 'team', 'member', 'key_id'].find((name) => typeof one[name] === 'string');
  return found === undefined ? '' : String(one[found]);
}

/** Returns the subjects that a call is counted for. */
export function subjectsOf(one: Row): readonly Subject[] {
  const text = (name: string): string | null => (typeof one[name] === 'string' ? one[name] : null);
  const [keyId, team, member, organisation] = [
    text('key_id'),
    text('team'),
    text('member'),
    text('organisation'),
  ];
  const subjects: Subject[] = [];
  const add = (kind: SubjectKind, subject: string | null, ...of: readonly Value[]): void => {
    if (subject !== null)
      subjects.push({
        kind,
        values: [subjectKinds[kind], subject, ...(of.length === 0 ? [null, null, null, null] : of)],
      });
  };
  if (one['owners'] !== null)
    add(
      'bearer',
      [keyId, team, member, organisation].map((id) => id ?? '').join(' '),
      keyId,
      team,
      member,
      organisation,
    );
  add('organisation', organisation);
  // An owner that goes to another organisation is another subject.
  add('team', team === null ? null : joined(team, organisation), null, team, null, organisation);
  add('member', member === null ? null : joined(member, organisation), null, null, member, organisation);
  for (const tag of new Set(JSON.parse(text('tags') ?? '[]') as string[])) add('tag', tag);
  add('endUser', text('end_user'));
  return subjects;
}

/** Names of sums without names: whether calls failed, and whether they were refused. */
export function unnamedOf({ failed, channel, status }: Row): readonly Value[] {
  const isRefused = Number(failed) === 1 && channel === '' && Number(status) >= 400 && Number(status) <= 498;
  return ['', '', '', '', isRefused ? 400 : 0, Number(failed)];
}

function joined(owner: string, organisation: string | null): string {
  return organisation === null ? owner : `${owner} ${organisation}`;
}
