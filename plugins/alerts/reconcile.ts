/** Compares the conditions of a check with the existing alerts: opens, closes and counts alerts, and selects those to send. */
import {
  itemOf,
  limits,
  severities,
  type Alert,
  type AlertState,
  type Condition,
  type Item,
  type Mute,
  type Severity,
} from './alert.ts';

/** Consecutive checks that must miss a condition before its alert is resolved, because a worker that has just started has little data. */
const missesToResolve = 2;

/** The alerts after a look, and what is to be sent. */
export interface Reconciled {
  readonly alerts: readonly Alert[];
  readonly items: readonly Item[];
}

/**
 * Returns the alerts after a check. `wasNotified`: returns true when a condition with `once` was sent before its alert was deleted.
 * Destinations are notified of an alert at most once within `throttle` milliseconds, again when it has become more severe, and of its end where they
 * were notified that it fires.
 */
export function reconcile(
  { alerts, mutes }: Pick<AlertState, 'alerts' | 'mutes'>,
  found: readonly Condition[],
  { now, throttle, wasNotified }: { now: number; throttle: number; wasNotified: (id: string) => boolean },
): Reconciled {
  const conditions = new Map(found.map((one) => [one.id, one] as const));
  const items: Item[] = [];
  const kept = alerts.map((alert) => {
    const condition = conditions.get(alert.id);
    conditions.delete(alert.id);
    const next = condition === undefined ? absent(alert, now) : present(alert, condition, now);
    return notify(next, { now, throttle, mutes, items });
  });
  const fresh = [...conditions.values()]
    .filter(({ id, once = false }) => !(once && wasNotified(id)))
    .map((one): Alert => ({ ...one, state: 'firing', since: now, count: 1, missed: 0 }))
    .map((alert) => notify(alert, { now, throttle, mutes, items }));
  return { alerts: bounded([...kept, ...fresh]), items };
}

function present(alert: Alert, found: Condition, now: number): Alert {
  const current = { ...alert, ...found, missed: 0 };
  // Stays at its highest while it is open, so that its end is routed as its beginning was.
  if (alert.state === 'firing')
    return rank(alert.severity) > rank(found.severity) ? { ...current, severity: alert.severity } : current;
  const { resolvedAt: _, acknowledgedAt: __, acknowledgedBy: ___, ...rest } = current;
  return { ...rest, state: 'firing', since: now, count: alert.count + 1 };
}

function absent(alert: Alert, now: number): Alert {
  if (alert.state === 'resolved') return alert;
  const missed = alert.missed + 1;
  return missed < missesToResolve
    ? { ...alert, missed }
    : { ...alert, missed, state: 'resolved', resolvedAt: now };
}

function rank(severity: Severity): number {
  return severities.indexOf(severity);
}

/** Adds the notification of an alert to the items if one is due, and records it in the alert. */
export function notify(
  alert: Alert,
  context: { now: number; throttle: number; mutes: readonly Mute[]; items: Item[] },
): Alert {
  const { now, throttle, mutes, items } = context;
  const { state, severity, notified, notifiedAt, notifiedSeverity = severity, once = false } = alert;
  if (state === 'resolved') {
    if (notified !== 'firing') return alert;
    // A budget that is less spent, or whose period has ended, needs no notification.
    if (!once && alert.kind !== 'budget' && !isMuted(alert, mutes, now))
      items.push(itemOf({ ...alert, severity: notifiedSeverity }, now));
    return { ...alert, notified: 'resolved' };
  }
  const hasRisen = rank(severity) > rank(notifiedSeverity);
  const isDue =
    notifiedAt === undefined ||
    (!once && (hasRisen || (notified !== 'firing' && now - notifiedAt >= throttle)));
  if (!isDue || alert.missed > 0 || alert.acknowledgedAt !== undefined || isMuted(alert, mutes, now))
    return alert;
  items.push(itemOf(alert, now));
  return { ...alert, notified: 'firing', notifiedAt: now, notifiedSeverity: severity };
}

/** Returns true while nothing is to be sent about an alert. */
export function isMuted(
  { id, kind }: Pick<Alert, 'id' | 'kind'>,
  mutes: readonly Mute[],
  now: number,
): boolean {
  return mutes.some((mute) => mute.until > now && (mute.id === id || mute.kind === kind));
}

/** Drops the oldest beyond the limit, resolved ones first. */
function bounded(alerts: readonly Alert[]): readonly Alert[] {
  const excess = alerts.length - limits.alerts;
  if (excess <= 0) return alerts;
  const order = alerts.toSorted(
    (one, other) =>
      Number(one.state === 'firing') - Number(other.state === 'firing') || one.since - other.since,
  );
  const dropped = new Set(order.slice(0, excess));
  return alerts.filter((alert) => !dropped.has(alert));
}
