/** Sums of many days, of half a day and of four hours, which are made of finer sums when their time has passed. */
import { day, fourHours, halfDay, hour, type Needs, type Segment } from './levels.ts';
import type { SubjectKind } from './subjects.ts';

/** One way in which sums are folded into coarser ones. `from`: the level, or the fold, that they are made of. */
export interface Fold {
  readonly level: number;
  readonly size: number;
  /** True: there are only those of the days before today, see {@link latestStart}; otherwise one follows the other. */
  readonly isOfLatest: boolean;
  /** How long it is made and kept, in milliseconds after its start; undefined: as long as all sums. */
  readonly keptFor: number | undefined;
  readonly hasNames: boolean;
  readonly from: number;
  readonly fromSize: number;
  readonly table: 'usage_totals' | 'usage_subject_totals';
  readonly kind: 'keyId' | SubjectKind;
}

type Row = readonly [level: number, size: number, hasNames: boolean, from: number, fromSize: number];

const foldsOf = (kind: Fold['kind'], ...rows: readonly Row[]): readonly Fold[] =>
  rows.map(([level, size, hasNames, from, fromSize]) => ({
    level,
    size,
    isOfLatest: size === month || size === week,
    keptFor: size === fourHours ? fourHoursKept : undefined,
    hasNames,
    from,
    fromSize,
    table: kind === 'keyId' ? 'usage_totals' : 'usage_subject_totals',
    kind,
  }));

const [short, middle, long] = [3 * day, 9 * day, 27 * day];
/** Lengths of the whole days within the last 30 and the last 7 days at every hour, without days that are too recent because of {@link foldGrace}. */
const [month, week] = [28 * day, 5 * day];

/**
 * How long after its end a time is folded, in milliseconds: records of calls that take long, or that waited, come in until then. One that comes
 * later removes the folds of its time, and they are made anew.
 */
export const foldGrace = 3 * hour;

/** When the latest days begin that are folded together, in milliseconds. */
export function latestStart({ size }: Pick<Fold, 'size'>, now: number): number {
  return Math.floor((now - foldGrace) / day) * day - size;
}

/**
 * How long folds of four hours are kept: reads of 30 days, and of the 30 days before those, begin within this time. Older ones are not worth their
 * room, because they have about two rows for three rows of hours.
 */
const fourHoursKept = 62 * day;

/** The longest time that is summed together. Whether a fold is worth its room is judged by the calls of so long a time. */
export const longestFold = long;

/**
 * Folds of what has many rows a day, finer ones first. Thirty days of 50,000 keys are 1,500,000 sums of days, and 400,000 of folds at most.
 * `usage_folds` says which there are. Their numbers differ from those of all levels.
 */
export const folds: readonly Fold[] = [
  ...foldsOf(
    'keyId',
    [37, fourHours, true, 5, hour],
    [38, fourHours, false, 5, hour],
    [39, halfDay, true, 5, hour],
    [40, halfDay, false, 5, hour],
    [41, short, false, 6, day],
    [42, middle, false, 41, short],
    [43, long, false, 42, middle],
    [44, day, true, 39, halfDay],
    [45, short, true, 44, day],
    [46, middle, true, 45, short],
    [47, long, true, 46, middle],
    [48, month, false, 6, day],
    [49, week, false, 6, day],
  ),
  ...foldsOf(
    'bearer',
    [56, fourHours, false, 1, hour],
    [50, halfDay, false, 1, hour],
    [51, short, false, 2, day],
    [52, middle, false, 51, short],
    [53, long, false, 52, middle],
    [54, month, false, 2, day],
    [55, week, false, 2, day],
  ),
  ...foldsOf(
    'team',
    [60, short, false, 8, day],
    [61, middle, false, 60, short],
    [62, long, false, 61, middle],
    [63, day, true, 9, hour],
    [64, short, true, 63, day],
    [65, middle, true, 64, short],
    [66, long, true, 65, middle],
    [68, fourHours, false, 7, hour],
    [67, halfDay, false, 7, hour],
  ),
  ...foldsOf(
    'member',
    [70, short, false, 11, day],
    [71, middle, false, 70, short],
    [72, long, false, 71, middle],
    [73, day, true, 12, hour],
    [74, short, true, 73, day],
    [75, middle, true, 74, short],
    [76, long, true, 75, middle],
    [77, month, false, 11, day],
    [78, week, false, 11, day],
    [69, fourHours, false, 10, hour],
    [79, halfDay, false, 10, hour],
  ),
  ...foldsOf(
    'tag',
    [80, short, false, 14, day],
    [81, middle, false, 80, short],
    [82, long, false, 81, middle],
    [83, short, true, 16, day],
    [84, middle, true, 83, short],
    [85, long, true, 84, middle],
  ),
  ...foldsOf(
    'endUser',
    [90, short, false, 18, day],
    [91, middle, false, 90, short],
    [92, long, false, 91, middle],
  ),
];

/** The smallest number of the folds of `usage_subject_totals`; those of `usage_totals` are smaller. */
export const firstSubjectFold = 50;

/** Returns the folds that answer a question by keys, if it is one. */
export function foldsFor({ needsKeys, needsNames }: Needs): readonly Fold[] {
  return needsKeys ? foldsOfKind('keyId', needsNames) : [];
}

/** Returns the folds of a kind with names or without. */
export function foldsOfKind(kind: Fold['kind'], needsNames: boolean): readonly Fold[] {
  return folds.filter((one) => one.kind === kind && one.hasNames === needsNames);
}

/** A fold that a question reads; `start` in milliseconds. */
export interface UsedFold {
  readonly level: number;
  readonly start: number;
}

/** Returns the folds that stretches of time are read from. */
export function usedFolds(segments: readonly Segment[]): readonly UsedFold[] {
  return segments.flatMap(({ level, since, until }) => {
    const fold = folds.find((one) => one.level === level);
    if (fold === undefined) return [];
    const used: UsedFold[] = [];
    for (let start = since; start < until; start += fold.size) used.push({ level: fold.level, start });
    return used;
  });
}
