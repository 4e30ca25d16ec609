/** Rolling hours, weeks, and periods of time zones: where they begin, and the sums by which they are counted. */
import { dayOf, monthOf, weekOf, type Span } from '../../model/time-zones.ts';
import type { Budget, HeldBudget } from '../../sdk/budget.ts';

/*
 * A series is a list of sums of what a holder of budgets has spent, each over a bucket of time, beside the sums by day, month and in total of UTC
 * that everybody has: `hours:5` has a bucket for each 60th of five hours, `day@Europe/Berlin` one for each local day. A series begins when a
 * budget needs it. A call counts in the bucket in which its reservation was made.
 *
 * A rolling window counts whole buckets, from the one in which it begins: of any span of its length never more than the amount is spent.
 */

/** Number of buckets of a rolling window. */
const buckets = 60;

const hour = 3_600_000;
const dayLength = 86_400_000;

/** Prefix of the ids of end users, who have no sums but those that their budgets need. */
export const endUserPrefix = 'usr_';

/** True for the id under which an end user's spending is kept. */
export function isEndUser(holder: string): boolean {
  return holder.startsWith(endUserPrefix);
}

/** Returns those of the holders of budgets who have the sums of UTC that everybody has: all but end users. */
export function summedIn(holders: readonly string[]): readonly string[] {
  return holders.filter((holder) => !isEndUser(holder));
}

/** Length of a bucket of the rolling window of so many hours, in milliseconds. */
function bucketLength(hours: number): number {
  return (hours * hour) / buckets;
}

type Timing = Pick<HeldBudget, 'period' | 'hours' | 'timeZone' | 'owner'>;

/** The time zone of a period; undefined for UTC, whose sums everybody has. */
function zoneOf({ timeZone = 'UTC', owner }: Timing): string | undefined {
  return timeZone === 'UTC' && !isEndUser(owner?.id ?? '') ? undefined : timeZone;
}

/** Name of the period of a budget, unlike that of any other period. */
export function labelOf(budget: Timing): string {
  const { period, hours = 1 } = budget;
  if (period === 'hours') return `hours:${hours}`;
  const zone = zoneOf(budget);
  return period === 'total' || zone === undefined ? period : `${period}@${zone}`;
}

/** The series that a budget is counted by, beyond the sums that everybody has. */
function seriesOf(budget: Timing): string | undefined {
  const zone = zoneOf(budget);
  if (budget.period === 'hours' || isEndUser(budget.owner?.id ?? '')) return labelOf(budget);
  return zone === undefined || budget.period === 'total' ? undefined : `day@${zone}`;
}

/** Returns the bucket of a series that holds a moment. */
export function bucketOf(series: string, at: number): Span {
  if (series.startsWith('hours:')) {
    const length = bucketLength(Number(series.slice('hours:'.length)));
    const start = Math.floor(at / length) * length;
    return { start, end: start + length };
  }
  const end = series.indexOf('@');
  const zone = series.slice(end + 1);
  const period = series.slice(0, end);
  return period === 'week' ? weekOf(zone, at) : period === 'month' ? monthOf(zone, at) : dayOf(zone, at);
}

/** Returns the present period of a budget. A rolling window ends never, and neither does all time. */
export function spanOf({ period, hours = 1, timeZone = 'UTC' }: Budget, at: number): Span {
  if (period === 'total') return { start: 0, end: Number.POSITIVE_INFINITY };
  if (period === 'day') return dayOf(timeZone, at);
  if (period === 'week') return weekOf(timeZone, at);
  if (period === 'month') return monthOf(timeZone, at);
  return { start: bucketOf(`hours:${hours}`, at - hours * hour).start, end: Number.POSITIVE_INFINITY };
}

/** A series of one holder. */
export interface HolderSeries {
  readonly holder: string;
  readonly series: string;
}

/** Returns the series that are charged for calls under these budgets, each once. */
export function seriesIn(keyId: string, budgets: readonly HeldBudget[]): readonly HolderSeries[] {
  const found = new Map<string, HolderSeries>();
  for (const budget of budgets) {
    const series = seriesOf(budget);
    const holder = budget.owner?.id ?? keyId;
    if (series !== undefined) found.set(`${holder} ${series}`, { holder, series });
  }
  return [...found.values()];
}

/** Sums to read for the period of a budget: those of a series from a moment on. */
export interface Window extends HolderSeries {
  readonly label: string;
  readonly since: number;
}

/** Returns what has to be read for budgets whose sums are not those that everybody has: each holder's periods once. */
export function windowsOf(keyId: string, budgets: readonly HeldBudget[], at: number): readonly Window[] {
  const windows = new Map<string, Window>();
  for (const budget of budgets) {
    // Weeks of UTC are made of days.
    const series = seriesOf(budget) ?? (budget.period === 'week' ? 'day' : undefined);
    if (series === undefined) continue;
    const holder = budget.owner?.id ?? keyId;
    const label = labelOf(budget);
    windows.set(`${holder} ${label}`, { holder, series, label, since: spanOf(budget, at).start });
  }
  return [...windows.values()];
}

/** Returns the time in which all calls of these budgets count in the same buckets as one at this moment. */
export function sharedSpan(budgets: readonly HeldBudget[], at: number): Span {
  const day = Math.floor(at / dayLength) * dayLength;
  let [start, end] = [day, day + dayLength];
  for (const budget of budgets) {
    const series = seriesOf(budget);
    if (series === undefined) continue;
    const bucket = bucketOf(series, at);
    start = Math.max(start, bucket.start);
    end = Math.min(end, bucket.end);
  }
  return { start, end };
}

/** Amount that was spent in one bucket, in the unit of a budget. */
export interface Bucket {
  readonly since: number;
  readonly spent: number;
}

/**
 * Returns when buckets of a rolling window, oldest first, have left it that hold at least so much; undefined when all do not. What was given back
 * more than was charged in a bucket makes no room, as in the sum of the window.
 */
export function freeAt(hours: number, spent: readonly Bucket[], needed: number): number | undefined {
  let freed = 0;
  for (const bucket of spent) {
    freed += Math.max(0, bucket.spent);
    if (freed >= needed) return bucket.since + bucketLength(hours) + hours * hour;
  }
  return undefined;
}
