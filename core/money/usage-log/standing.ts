/** The backlog of records and sums behind the rule by which they are kept. */
import type { Kept } from '../../state/upkeep.ts';
import type { UsageRetention } from './index.ts';
import type { Query } from '../../state/database/long-reads.ts';
import { totalsIn } from './totals.ts';

const hour = 3_600_000;
const day = 24 * hour;

/** Maximum number of records that are counted of those that are in no sums. */
const mostCounted = 100_000;
/** How long something may be overdue before it is a warning. */
const patience = day;

/**
 * Says how the records of the usage log, and their sums, stand to the rule by which they are kept. `lastWith` gives the time of
 * the last records that are removed together with those of a time.
 */
export async function standingOf(
  query: Query,
  keep: UsageRetention,
  lastWith: (at: number) => Promise<number>,
): Promise<readonly Kept[]> {
  const now = Date.now();
  const [first] = await query('SELECT at FROM usage_records ORDER BY at LIMIT 1', []);
  const oldest = first === undefined ? undefined : Number(first['at']);
  return [await records(query, keep, oldest, now, lastWith), await sums(query, keep, oldest)];
}

async function records(
  query: Query,
  { days, records: most }: UsageRetention,
  oldest: number | undefined,
  now: number,
  lastWith: (at: number) => Promise<number>,
): Promise<Kept> {
  const callsSince = async (since: number): Promise<number> => {
    const found = totalsIn({ level: 1, since, until: Number.MAX_SAFE_INTEGER }, {}, ['calls']);
    const [row] = await query(`SELECT SUM(calls) AS calls FROM (${found.sql}) AS sums`, found.values);
    return Number(row?.['calls'] ?? 0);
  };
  const rows = oldest === undefined ? 0 : await callsSince(Math.floor(oldest / hour) * hour);
  // Whole hours of the last day, or as many as there are.
  const recent = Math.max(Math.ceil((now - day) / hour) * hour, oldest ?? now);
  const span = Math.max(hour, now - recent);
  const perDay = ((await callsSince(Math.floor(recent / hour) * hour)) / span) * day;
  const reach = perDay === 0 ? days : Math.min(days, most / perDay);
  const rule = `Records of calls are kept for ${shownDays(days)}, and up to ${shown(most)} of them: at the rate of the last day that is ${shownDays(reach)}. Their sums stay.`;
  const overdue = oldest === undefined ? 0 : now - days * day - (await lastWith(oldest));
  const tooMany = rows - most;
  const warning =
    overdue > patience || tooMany > Math.max(perDay, most / 10)
      ? `Old records of the usage log are not removed: the oldest is ${shownDays((now - (oldest ?? now)) / day)} old, and there are ${shown(rows)}.`
      : reach < days && rows > most / 2
        ? `The usage log keeps ${shown(most)} records, which are ${shownDays(reach)} at the rate of the last day, not ${shownDays(days)}: set usageLog({ retention: { records } }) higher, or days lower.`
        : undefined;
  return {
    what: 'usage-records',
    rule,
    rows,
    overdueSeconds: Math.max(0, Math.round(overdue / 1_000)),
    ...(warning === undefined ? {} : { warning }),
  };
}

async function sums(query: Query, { sumDays }: UsageRetention, oldest: number | undefined): Promise<Kept> {
  const [waiting] = await query(
    'SELECT COUNT(*) AS count FROM (SELECT 1 FROM usage_unsummed LIMIT ?) AS waiting',
    [mostCounted],
  );
  const [older] = await query('SELECT at FROM usage_summing', []);
  const rows = Number(waiting?.['count'] ?? 0);
  const left = older === undefined || oldest === undefined ? 0 : Math.max(0, Number(older['at']) - oldest);
  const warning =
    rows >= mostCounted
      ? 'More than 100,000 records wait to be added to the sums of the usage log: the log of the gateway says why.'
      : left > 0
        ? `Sums of the usage log are complete from ${new Date(Number(older?.['at'])).toISOString().slice(0, 16).replace('T', ' ')} UTC on: older records are still being added.`
        : undefined;
  return {
    what: 'usage-sums',
    rule: `Sums of hours and days are kept for ${shownDays(sumDays)}, sums of minutes for 3 days. Counted here are records that wait to be added.`,
    rows,
    overdueSeconds: Math.round(left / 1_000),
    ...(warning === undefined ? {} : { warning }),
  };
}

function shown(count: number): string {
  return Math.round(count).toLocaleString('en-US');
}

function shownDays(days: number): string {
  const text = days >= 10 ? shown(days) : String(Math.round(days * 10) / 10);
  return `${text} ${text === '1' ? 'day' : 'days'}`;
}
