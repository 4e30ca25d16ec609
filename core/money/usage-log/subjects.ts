/** By whom calls are summed besides keys: owners, tags and end users. */
import { hour, day } from './levels.ts';

/** What a subject of `usage_subjects` is. A bearer is a key with its owners, so that keys of a team can be told apart. */
export const subjectKinds = {
  bearer: 0,
  organisation: 1,
  team: 2,
  member: 3,
  tag: 4,
  endUser: 5,
} as const;
/** The name of one of them. */
export type SubjectKind = keyof typeof subjectKinds;

/** One way in which calls of subjects are summed. */
export interface SubjectLevel {
  readonly level: number;
  readonly size: number;
  readonly hasNames: boolean;
  readonly kinds: readonly SubjectKind[];
}

/**
 * Levels of `usage_subject_totals`. Tags and end users have levels of their own, so that those of an hour are counted with few reads. Days with
 * names are for the kinds of which one subject may have most calls of a gateway.
 */
export const subjectLevels: readonly SubjectLevel[] = [
  { level: 1, size: hour, hasNames: false, kinds: ['bearer', 'organisation', 'team', 'member'] },
  { level: 2, size: day, hasNames: false, kinds: ['bearer', 'organisation', 'team', 'member'] },
  { level: 3, size: hour, hasNames: true, kinds: ['organisation', 'team', 'member'] },
  { level: 4, size: day, hasNames: true, kinds: ['organisation'] },
  { level: 5, size: hour, hasNames: false, kinds: ['tag', 'endUser'] },
  { level: 6, size: day, hasNames: false, kinds: ['tag', 'endUser'] },
  { level: 7, size: hour, hasNames: true, kinds: ['tag'] },
  { level: 8, size: day, hasNames: true, kinds: ['tag'] },
];

/** The level in which tags and end users of an hour are counted. */
export const boundedLevel = 5;

/**
 * Maximum number of tags, and of end users, that are told apart in the sums of an hour: clients choose them. Calls of others are summed
 * together, under an empty name.
 */
export const mostPerHour = 1_000;

/** Returns the level of a size that has sums of a kind. */
export function subjectLevel(kind: SubjectKind, needsNames: boolean, size: number): number | undefined {
  return subjectLevels.find(
    (one) => one.size === size && one.hasNames === needsNames && one.kinds.includes(kind),
  )?.level;
}
