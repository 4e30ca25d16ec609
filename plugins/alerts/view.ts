/** View of the alerts for administrators. */
import type { Alert, AlertState, Mute } from './alert.ts';
import type { AlertsOptions, Destination } from './options.ts';

/** An alert as administrators see it. */
export type AlertView = Omit<Alert, 'missed' | 'once' | 'notifiedSeverity'>;

/** A destination, with its last delivery. */
export interface DestinationView {
  readonly name: string;
  readonly type: Destination['type'];
  /** Number of messages that were not delivered yet. */
  readonly waiting: number;
  /** Absent before the first delivery. */
  readonly last?: { readonly at: number; readonly error?: string | undefined };
}

/** Everything that administrators see of the alerts. */
export interface AlertsView {
  /** Alerts, newest first. */
  readonly alerts: readonly AlertView[];
  readonly mutes: readonly Mute[];
  readonly destinations: readonly DestinationView[];
  /** Milliseconds for which an alert that was sent is not sent again. */
  readonly throttle: number;
}

/** Returns a function that makes the view of a state. */
export function createView({ destinations, throttle }: AlertsOptions): (state: AlertState) => AlertsView {
  return ({ alerts, deliveries, mutes, outbox }) => ({
    alerts: alerts
      .toSorted((one, other) => other.since - one.since)
      .map(({ missed: _missed, once: _once, notifiedSeverity: _severity, ...shown }) => shown),
    mutes,
    destinations: Object.entries(destinations).map(([name, { type }]) => ({
      name,
      type,
      waiting: outbox.filter(({ destination }) => destination === name).length,
      ...(deliveries[name] === undefined ? {} : { last: deliveries[name] }),
    })),
    throttle,
  });
}
