/** In milliseconds. Widths of all levels are multiples of it. */
export const minute = 60_000;
export const hour = 60 * minute;
export const fourHours = 4 * hour;
export const halfDay = 12 * hour;
export const day = 24 * hour;

/** One way in which records are summed: the width of its times in milliseconds, and by what they are grouped. */
export interface Level {
  readonly level: number;
  readonly size: number;
  /** By model, channel, format, operation and status. */
  readonly hasNames: boolean;
  readonly hasKeys: boolean;
}

/**
 * Levels of `usage_totals`. A question reads the coarsest that can answer it, so that what it reads does not grow with the number of records.
 * Levels with keys count no times of calls: a key may have few calls in an hour, and their sums must stay smaller than the calls.
 */
export const levels: readonly Level[] = [
  { level: 0, size: minute, hasNames: false, hasKeys: false },
  { level: 1, size: hour, hasNames: false, hasKeys: false },
  { level: 2, size: minute, hasNames: true, hasKeys: false },
  { level: 3, size: hour, hasNames: true, hasKeys: false },
  { level: 4, size: day, hasNames: true, hasKeys: false },
  { level: 5, size: hour, hasNames: true, hasKeys: true },
  { level: 6, size: day, hasNames: false, hasKeys: true },
];

/** True for the number of a level, and not for that of a fold. */
export function isLevel(level: number): boolean {
  return levels.some((one) => one.level === level);
}

/** Columns that calls are grouped by, besides time. Names come between the key and failure. */
export const dimensions = ['key_id', 'model', 'channel', 'format', 'operation', 'status', 'failed'] as const;
export type Dimension = (typeof dimensions)[number];

/** Columns that are added up. */
export const amounts = [
  'input',
  'output',
  'cache_read',
  'cache_write',
  'reasoning',
  'micro_dollars',
] as const;

/** More than any sum comes to that is true: what providers say of usage may be wrong. */
export const largestSum = 9_000_000_000_000_000_000;

/** The latest minute that the sums can have. */
export const largestStart = 2_147_483_647;

/** Returns the minute in which a time lies, as the column `start` has it. */
export function startOf(time: number): number {
  return Math.max(0, Math.min(largestStart, Math.floor(time / minute)));
}

/** How long sums of minutes are kept, in milliseconds. */
export const minutesKept = 3 * day;

/** A stretch of time that is read from one level, or from the records themselves. `until` is exclusive. */
export interface Segment {
  readonly level: number | 'records';
  readonly since: number;
  readonly until: number;
}

/** By what a question tells records apart, and by what it narrows them. */
export interface Needs {
  readonly needsNames: boolean;
  readonly needsKeys: boolean;
}

/** Returns the level that answers a question for times of a size, if any. */
export function levelFor({ needsNames, needsKeys }: Needs, size: number): number | undefined {
  return levels.find(
    (one) =>
      one.size === size &&
      one.hasKeys === needsKeys &&
      // Sums by names are many more than sums without: an hour without them is less to read than a day with them.
      (needsKeys ? one.hasNames || !needsNames : one.hasNames === needsNames),
  )?.level;
}

/** Folds that there are of one level, by when they start: in order, in milliseconds. */
export interface Folded {
  readonly level: number;
  readonly size: number;
  readonly starts: readonly number[];
}

/**
 * Divides a time into stretches, each of the coarsest level or fold that fits. What begins or ends within the smallest sums that there are is
 * read from the records. `bucket`: width of the buckets of time that are asked for, in milliseconds.
 */
export function segmentsOf(
  levelOf: (size: number) => number | undefined,
  bucket: number | undefined,
  since: number,
  until: number,
  now: number,
  folded: readonly Folded[] = [],
): readonly Segment[] {
  const segments: Segment[] = [];
  const add = (level: Segment['level'], from: number, to: number): void => {
    const last = segments.at(-1);
    if (last?.level === level && last.until === from) segments[segments.length - 1] = { ...last, until: to };
    else segments.push({ level, since: from, until: to });
  };
  const ofFolds = (
    from: number,
    to: number,
    { level, size, starts }: Folded,
    smaller: readonly number[],
  ): void => {
    let at = from;
    for (const start of starts) {
      if (start < at || start + size > to) continue;
      divide(at, start, smaller);
      add(level, start, start + size);
      at = start + size;
    }
    divide(at, to, smaller);
  };
  const divide = (from: number, to: number, sizes: readonly number[]): void => {
    if (from >= to) return;
    const [size, ...smaller] = sizes;
    if (size === undefined) {
      add('records', from, to);
      return;
    }
    const isWhole = bucket === undefined || bucket % size === 0;
    const level = isWhole ? levelOf(size) : undefined;
    const fold = isWhole && level === undefined ? folded.find((one) => one.size === size) : undefined;
    if (fold !== undefined) {
      ofFolds(from, to, fold, smaller);
      return;
    }
    const first = Math.ceil(from / size) * size;
    const last = to === Number.MAX_SAFE_INTEGER ? to : Math.floor(to / size) * size;
    // One hour less than they are kept: they are removed by a clock of another process.
    const isKept = size !== minute || first >= now - minutesKept + hour;
    if (level === undefined || first >= last || !isKept) {
      divide(from, to, smaller);
      return;
    }
    divide(from, first, smaller);
    add(level, first, last);
    divide(last, to, smaller);
  };
  const sizes = new Set([day, hour, minute, ...folded.map(({ size }) => size)]);
  divide(
    Math.max(0, since),
    until,
    [...sizes].toSorted((one, other) => other - one),
  );
  return segments;
}
