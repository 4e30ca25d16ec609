/** Reads time, time zone and groups of sums from the address. */
import { dateIn, isZone, ownZone, startOf } from '../parts/zone-time.ts';

/** By what calls are summed, with its name in the singular. */
export const groupings = [
  ['team', 'Team'],
  ['member', 'Member'],
  ['organisation', 'Organisation'],
  ['keyId', 'API key'],
  ['tag', 'Tag'],
  ['endUser', 'End user'],
  ['model', 'Model'],
  ['channel', 'Channel'],
] as const;
/** One of them. */
export type GroupedBy = (typeof groupings)[number][0];

/** Names of spans of days, today among them. */
export const spans = [
  ['today', 'Today'],
  ['7d', '7 days'],
  ['30d', '30 days'],
  ['month', 'This month'],
  ['custom', 'From … to …'],
] as const;

const lengths: Readonly<Record<string, number>> = { today: 1, '7d': 7, '30d': 30 };

/** A stretch of whole days of a time zone, the last of which may be going on. */
export interface Span {
  /** One of {@link spans}. */
  readonly name: string;
  readonly zone: string;
  /** Milliseconds since 1970; `until` is exclusive. */
  readonly since: number;
  readonly until: number;
  /** The first and the last date. */
  readonly from: string;
  readonly to: string;
}

/** Returns the grouping of the spend table from the query. */
export function groupingOf(query: URLSearchParams): GroupedBy {
  return groupings.find(([name]) => name === query.get('by'))?.[0] ?? 'team';
}

/** Returns the title of a grouping. */
export function titleOf(by: GroupedBy): string {
  return groupings.find(([name]) => name === by)?.[1] ?? by;
}

/** Returns the time that the address names; 30 days without one. */
export function spanOf(query: URLSearchParams, now: number): Span {
  const wanted = query.get('zone') ?? '';
  const zone = isZone(wanted) ? wanted : ownZone;
  const today = dateIn(zone, now);
  const [from, to] = [query.get('from') ?? '', query.get('to') ?? ''];
  if (query.get('span') === 'custom') {
    const [first, last] = [from || today, to || today].toSorted();
    const since = startOf(zone, first ?? today);
    const until = startOf(zone, last ?? today, 1);
    if (since !== undefined && until !== undefined)
      return {
        name: 'custom',
        zone,
        since,
        until: Math.min(until, now),
        from: first ?? today,
        to: last ?? today,
      };
  }
  const name = spans.find(([one]) => one === query.get('span') && one !== 'custom')?.[0] ?? '30d';
  const since =
    name === 'month'
      ? startOf(zone, `${today.slice(0, 8)}01`)
      : startOf(zone, today, 1 - (lengths[name] ?? 30));
  return { name, zone, since: since ?? now, until: now, from: dateIn(zone, since ?? now), to: today };
}
