/** By whom calls are summed besides keys: owners, tags and end users. */
import { hour, day } from './levels.ts';

/** Kinds of the subjects in `usage_subjects`. A bearer is a key with its owners, so that there are sums of each key of a team. */
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
  readonly kind: SubjectKind;
}

/**
 * Levels of `usage_subject_totals`. Each kind has its own, so that sums by teams do not read those of keys. Days with names are for the kinds of
 * which one subject may have most calls of a gateway.
 */
export const subjectLevels: readonly SubjectLevel[] = [
  { level: 1, size: hour, hasNames: false, kind: 'bearer' },
  { level: 2, size: day, hasNames: false, kind: 'bearer' },
  { level: 3, size: hour, hasNames: false, kind: 'organisation' },
  { level: 4, size: day, hasNames: false, kind: 'organisation' },
  { level: 5, size: hour, hasNames: true, kind: 'organisation' },
  { level: 6, size: day, hasNames: true, kind: 'organisation' },
  { level: 7, size: hour, hasNames: false, kind: 'team' },
  { level: 8, size: day, hasNames: false, kind: 'team' },
  { level: 9, size: hour, hasNames: true, kind: 'team' },
  { level: 10, size: hour, hasNames: false, kind: 'member' },
  { level: 11, size: day, hasNames: false, kind: 'member' },
  { level: 12, size: hour, hasNames: true, kind: 'member' },
  { level: 13, size: hour, hasNames: false, kind: 'tag' },
  { level: 14, size: day, hasNames: false, kind: 'tag' },
  { level: 15, size: hour, hasNames: true, kind: 'tag' },
  { level: 16, size: day, hasNames: true, kind: 'tag' },
  { level: 17, size: hour, hasNames: false, kind: 'endUser' },
  { level: 18, size: day, hasNames: false, kind: 'endUser' },
];

/** Kinds of subjects whose number is limited, because clients choose their names. */
export type ChosenKind = 'tag' | 'endUser';

/**
 * Numbers of new tags and end users of each tenant in an hour, in the column of calls. They are kept beside the sums: `kind` is
 * that of a tenant in `usage_subjects`.
 */
export const newSubjectLevels: Readonly<
  Record<ChosenKind, { readonly level: number; readonly kind: number; readonly size: number }>
> = { tag: { level: 19, kind: 6, size: hour }, endUser: { level: 20, kind: 7, size: hour } };

/**
 * Maximum numbers of tags, and of end users, that have sums of their own in an hour: of a tenant, and of all tenants together, beyond which
 * each tenant still has a few. Calls of others are summed together, under an empty name.
 */
export interface SubjectLimits {
  readonly tenant: number;
  readonly all: number;
  readonly leastOfTenant: number;
}

/** The limits of a gateway. */
export const subjectLimits: SubjectLimits = { tenant: 1_000, all: 20_000, leastOfTenant: 20 };

/** Returns the level of a size that has sums of a kind. */
export function subjectLevel(kind: SubjectKind, needsNames: boolean, size: number): number | undefined {
  return subjectLevels.find((one) => one.size === size && one.hasNames === needsNames && one.kind === kind)
    ?.level;
}
