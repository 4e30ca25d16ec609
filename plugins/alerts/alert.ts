/** Types of alerts, of the messages about them and of the entry that keeps both. */
import { z } from 'zod';

/** Kinds of alerts. Their names are permanent. */
export const kinds = [
  'budget',
  'channel-down',
  'error-rate',
  'expiry',
  'reload-refused',
  'database-lost',
  'shared-store-lost',
  'upkeep-behind',
  'worker-died',
  'test',
] as const;
/** The name of a kind of alerts. */
export type Kind = (typeof kinds)[number];

/** From the least to the most urgent. */
export const severities = ['info', 'warning', 'critical'] as const;
/** Severity of an alert. */
export type Severity = (typeof severities)[number];

const conditionFields = {
  /** Identity of the alert: its kind, its subject, and further parts. */
  id: z.string(),
  kind: z.enum(kinds),
  /** Subject of the alert: a budget, a channel, a gateway. */
  subject: z.string(),
  severity: z.enum(severities),
  /** Description in one sentence. */
  text: z.string(),
  /** The view of the page that shows more. */
  view: z.string(),
  /** Ids and names of the teams that it concerns. */
  teams: z.array(z.string()).optional(),
  /** True when the alert is sent only once, even if it opens again, and its end is not sent. */
  once: z.boolean().optional(),
};
/** Something that an operator should know, as one look has found it. Its alert is open for as long as looks find it. */
export const condition = z.object(conditionFields);
/** A checked {@link condition}. */
export type Condition = z.output<typeof condition>;

const time = z.number();

/** An alert, with what became of it. Times are in milliseconds since 1970. */
export const alert = z.object({
  ...conditionFields,
  state: z.enum(['firing', 'resolved']),
  /** Time at which the condition was first found after it was last resolved. */
  since: time,
  resolvedAt: time.optional(),
  /** Number of times that the alert has fired. */
  count: z.int(),
  /** Consecutive checks that did not find the condition. */
  missed: z.int(),
  /** Time and state of the last notification. */
  notifiedAt: time.optional(),
  notified: z.enum(['firing', 'resolved']).optional(),
  /** Severity in the last message to destinations. */
  notifiedSeverity: z.enum(severities).optional(),
  acknowledgedAt: time.optional(),
  /** Name of the administrator who did. */
  acknowledgedBy: z.string().optional(),
});
/** A checked {@link alert}. */
export type Alert = z.output<typeof alert>;

/** One alert in a message. */
const item = z.object({ ...conditionFields, state: z.enum(['firing', 'resolved']), at: time });
/** One alert in a message. */
export type Item = z.output<typeof item>;

/** A message to one destination that was not delivered yet. */
const message = z.object({
  /** Stays the same over all tries, so that a receiver can tell a repetition. */
  id: z.string(),
  destination: z.string(),
  items: z.array(item),
  /** Further alerts that had no room in the message. */
  more: z.int(),
  tries: z.int(),
  nextAt: time,
  createdAt: time,
});
/** A message to one destination that was not delivered yet. */
export type Message = z.output<typeof message>;

/** Suppression of the notifications of an alert, or of a kind, until a time. */
const mute = z.object({ id: z.string().optional(), kind: z.enum(kinds).optional(), until: time });
/** Alerts of which nothing is sent until a time. */
export type Mute = z.output<typeof mute>;

/** Knowledge that all processes share: one entry in the database. */
export const stateSchema = z.object({
  /** The process that may send. Whoever takes the lease writes its name here, and nobody else's changes count from then on. */
  writer: z.string(),
  alerts: z.array(alert),
  outbox: z.array(message),
  mutes: z.array(mute),
  /** Last deliveries by destination. */
  deliveries: z.record(z.string(), z.object({ at: time, error: z.string().optional() })),
});
/** A checked {@link stateSchema}. */
export type AlertState = z.output<typeof stateSchema>;

/** Initial state, without alerts. */
export const emptyState: AlertState = { writer: '', alerts: [], outbox: [], mutes: [], deliveries: {} };

/** Maximum numbers of things that are kept. */
export const limits = {
  alerts: 500,
  outbox: 200,
  perDestination: 50,
  items: 20,
  mutes: 100,
  conditions: 500,
};

/** Returns the item of a message for an alert. */
export function itemOf(
  { id, kind, subject, severity, text, view, teams, once, state }: Alert,
  at: number,
): Item {
  return {
    id,
    kind,
    subject,
    severity,
    text,
    view,
    state,
    at,
    ...(teams === undefined ? {} : { teams }),
    ...(once === undefined ? {} : { once }),
  };
}
