/** Sums of the usage log as the admin API gives them: by days of a time zone, with totals and with the period before. */
import { GatewayError } from 'sluice';
import type { UsageFilter, UsageGrouping, UsageLog, UsageSums, UsageTotals } from './core-types.ts';
import { daysOf, type ZoneDay } from './zone-days.ts';

/** The most buckets of time in one answer. */
const mostBuckets = 2_000;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
/** So many milliseconds are one bucket, of all times. */
const always = 1_000_000 * day;
/** Milliseconds for which sums of minutes can be requested: an hour less than they are stored. */
const minutesKept = 3 * day - hour;

const none: UsageTotals = { calls: 0, failed: 0, refused: 0, input: 0, output: 0, microDollars: 0 };

type Sums = Awaited<ReturnType<UsageLog['sums']>>;
type SumsOptions = Parameters<UsageLog['sums']>[2];

/** Adds up sums. */
export function totalsOf(sums: readonly UsageTotals[]): UsageTotals {
  const all = sums.reduce(
    (sum, one) => ({
      calls: sum.calls + one.calls,
      failed: sum.failed + one.failed,
      refused: sum.refused + one.refused,
      input: sum.input + one.input,
      output: sum.output + one.output,
      microDollars: sum.microDollars + one.microDollars,
    }),
    none,
  );
  const charged = sums.reduce((sum, one) => sum + (one.chargedMicroDollars ?? one.microDollars), 0);
  return charged === all.microDollars ? all : { ...all, chargedMicroDollars: charged };
}

/** Returns the totals of all calls that fit a filter, each counted once. */
export async function totalsIn(usageLog: Pick<UsageLog, 'sums'>, filter: UsageFilter): Promise<UsageTotals> {
  return totalsOf((await usageLog.sums(filter, { bucket: always })).sums);
}

/** Returns the filter for the time of the same length before `since`. */
export function before<Filter extends UsageFilter>(
  filter: Filter,
  now: number,
): Filter & { since: number; until: number } {
  const { since, until = now } = filter;
  if (since === undefined) throw missing('since');
  return { ...filter, since: Math.max(0, since - (until - since)), until: since };
}

/** Grouping of sums: as in the usage log, by buckets of time, or by days in a time zone. */
export interface SumGrouping {
  readonly by: Exclude<UsageGrouping, object> | 'time' | 'day';
  readonly bucket?: number;
  readonly zone?: string;
}

/** Sums as {@link SumGrouping}. `exact` is false where days of the zone begin within an hour whose sums cannot be divided. */
export async function querySums(
  usageLog: Pick<UsageLog, 'sums'>,
  filter: UsageFilter,
  { by, bucket, zone = 'UTC' }: SumGrouping,
  options: SumsOptions,
): Promise<Sums & { readonly exact?: false }> {
  if (by === 'day') return sumsByDay(usageLog, filter, zone);
  return usageLog.sums(filter, by === 'time' ? bucketsOf(bucket, filter) : by, options);
}

/** Sums by days of a zone: those of hours, which one day or another has. */
async function sumsByDay(
  usageLog: Pick<UsageLog, 'sums'>,
  filter: UsageFilter,
  zone: string,
): Promise<Sums & { readonly exact?: false }> {
  const { since, until = Date.now() } = filter;
  if (since === undefined) throw missing('since');
  const days = daysOf(zone, since, until);
  const isWhole = days.every((one) => one.since % hour === 0);
  const isFine = !isWhole && since > Date.now() - minutesKept;
  const list = await usageLog.sums(filter, { bucket: isFine ? 15 * minute : hour });
  const sums = days.flatMap((one): UsageSums[] => {
    const found = list.sums.filter(({ group }) => isIn(one, Number(group)));
    return found.length === 0 ? [] : [{ group: one.since, ...totalsOf(found) }];
  });
  return { ...list, sums, ...(isWhole || isFine ? {} : { exact: false as const }) };
}

function isIn({ since, until }: ZoneDay, at: number): boolean {
  return at >= since && at < until;
}

/** Returns the dates of days, by when they begin. */
export function datesOf(zone: string, since: number, until: number): ReadonlyMap<number, string> {
  return new Map(daysOf(zone, since, until).map((one) => [one.since, one.date]));
}

function bucketsOf(
  bucket: number | undefined,
  { since, until = Date.now() }: { readonly since?: number; readonly until?: number },
): UsageGrouping {
  if (bucket === undefined) throw missing('bucket');
  if (since === undefined) throw missing('since');
  if ((until - since) / bucket > mostBuckets) {
    const least = Math.ceil((until - since) / mostBuckets);
    throw new GatewayError(
      'invalid_value',
      `bucket is too small for this time: more than ${mostBuckets} buckets. Make it ${least} or more.`,
      { param: 'bucket' },
    );
  }
  return { bucket };
}

function missing(param: string): GatewayError {
  return new GatewayError('missing_required_parameter', `The parameter ${param} is missing.`, { param });
}
