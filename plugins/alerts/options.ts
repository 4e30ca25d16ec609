/** Options of the plugin `alerts`. */
import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import { kinds, severities } from './alert.ts';

const address = z.url({ protocol: /^https?$/ });
const text = z.string().min(1).max(1_000);

/** Schema of a destination of alerts. Webhook URLs of chat services are secrets as a whole. */
const destination = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('webhook'),
    url: secretUrl(address),
    /** The signing secret: `whsec_` and 24 to 64 bytes in base64. */
    secret: secret(
      z
        .string()
        .refine(isSigningSecret, 'must be "whsec_" and 24 to 64 bytes in base64: openssl rand -base64 32'),
    ),
  }),
  z.strictObject({ type: z.literal('slack'), url: secret(address) }),
  z.strictObject({ type: z.literal('discord'), url: secret(address) }),
  z.strictObject({ type: z.literal('teams'), url: secret(address) }),
  z.strictObject({
    type: z.literal('pagerduty'),
    /** The integration key of an Events API v2 integration. */
    key: secret(text),
    /** For accounts of the EU: `https://events.eu.pagerduty.com/v2/enqueue`. */
    url: secretUrl(address).default('https://events.pagerduty.com/v2/enqueue'),
  }),
  z.strictObject({
    type: z.literal('email'),
    host: text,
    port: z.int().min(1).max(65_535).default(587),
    /** `starttls` refuses a server without it; `tls` is encrypted from the first byte, usually at port 465; `none` sends in the clear. */
    security: z.enum(['starttls', 'tls', 'none']).default('starttls'),
    /** Certificates of your own authority, as PEM text. */
    ca: text.max(100_000).optional(),
    user: text.optional(),
    password: secret(text).optional(),
    from: text,
    to: z.array(text).min(1).max(50),
  }),
]);
/** Checked options of one destination. */
export type Destination = z.output<typeof destination>;

/** Schema of a route: destinations, and conditions that an alert must meet. */
const route = z.strictObject({
  to: z.array(text).min(1).max(20),
  kinds: z.array(z.enum(kinds)).min(1).optional(),
  /** Minimum severity. */
  severity: z.enum(severities).optional(),
  /** Ids or names of teams. Matches alerts that concern one of them. */
  teams: z.array(text).min(1).max(100).optional(),
});
/** A checked route. */
export type Route = z.output<typeof route>;

const day = 86_400_000;

/** Schema of the options. */
export const options = z
  .strictObject({
    /** Destinations of alerts, by a name of your choice. */
    destinations: z.record(z.string().regex(/^[a-z][a-z0-9-]{0,39}$/), destination).default({}),
    /** Routes of alerts. An alert goes to the destinations of every route that it matches. Default: all alerts go to all destinations. */
    routes: z.array(route).max(50).optional(),
    /** Base URL at which operators reach the gateway, for links to the dashboard. */
    url: secretUrl(address).optional(),
    /** Interval in milliseconds at which the conditions of alerts are checked. */
    interval: z.int().min(100).max(300_000).default(10_000),
    /** Milliseconds for which an alert is not repeated. */
    throttle: z
      .int()
      .min(0)
      .max(30 * day)
      .default(3_600_000),
    /** Timeout of one delivery attempt, in milliseconds. */
    timeout: z.int().min(100).max(60_000).default(10_000),
    /** Maximum number of attempts of a delivery. */
    attempts: z.int().min(1).max(20).default(8),
    /** Milliseconds before the second attempt. Each further pause is twice as long, up to 30 minutes. */
    backoff: z.int().min(1).max(600_000).default(5_000),
    /** Percentages of a budget at which an alert is sent. An empty list switches these alerts off. */
    budgets: z.array(z.number().min(1).max(100)).max(10).default([50, 80, 100]),
    /** Alerts about the share of failed calls within a window. `false` switches them off. */
    errorRate: z
      .union([
        z.literal(false),
        z.strictObject({
          /** Length of the window, in milliseconds. */
          window: z.int().min(1_000).max(3_600_000).default(300_000),
          /** Share of failed calls from which an alert is sent, from 0.01 to 1. */
          share: z.number().min(0.01).max(1).default(0.2),
          /** Minimum number of calls within the window for an alert. */
          calls: z.int().min(1).max(1_000_000).default(20),
        }),
      ])
      .prefault({}),
    /** Days before an expiry at which an alert is sent. An empty list switches these alerts off. */
    expiryDays: z.array(z.number().min(0.01).max(365)).max(10).default([30, 7, 1]),
    /** Certificates whose expiry is checked: URLs (`https://gateway.example.com`), or paths of PEM files. */
    certificates: z.array(text).max(50).default([]),
    /** Expiry dates of credentials that Sluice cannot read, such as client secrets of providers, by a name of your choice. */
    expiring: z.record(text, z.union([z.iso.date(), z.iso.datetime({ offset: true })])).default({}),
  })
  .superRefine(({ destinations, routes = [] }, context) => {
    for (const [index, { to }] of routes.entries())
      for (const name of to)
        if (!Object.hasOwn(destinations, name))
          context.addIssue({
            code: 'custom',
            path: ['routes', index, 'to'],
            message: `"${name}" is not a destination`,
          });
  });
/** Checked options. */
export type AlertsOptions = z.output<typeof options>;

function isSigningSecret(value: string): boolean {
  const digits = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(value)?.[1];
  if (digits === undefined) return false;
  const { length } = Buffer.from(digits, 'base64');
  return length >= 24 && length <= 64;
}
