/** The options of the plugin `alerts`. */
import { z } from 'zod';
import { secret, secretUrl } from 'sluice';
import { kinds, severities } from './alert.ts';

const address = z.url({ protocol: /^https?$/ });
const text = z.string().min(1).max(1_000);

/** Where alerts go. Addresses that chat services give out are secrets as a whole. */
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

/** Which alerts go to which destinations. */
const route = z.strictObject({
  to: z.array(text).min(1).max(20),
  kinds: z.array(z.enum(kinds)).min(1).optional(),
  /** The least severity. */
  severity: z.enum(severities).optional(),
  /** Ids or names of teams: alerts that concern one of them. */
  teams: z.array(text).min(1).max(100).optional(),
});
/** A checked route. */
export type Route = z.output<typeof route>;

const day = 86_400_000;

/** Schema of the options. */
export const options = z
  .strictObject({
    /** Destinations by names of your choice. */
    destinations: z.record(z.string().regex(/^[a-z][a-z0-9-]{0,39}$/), destination).default({}),
    /** An alert goes to the destinations of every route that it fits. Default: all alerts to all destinations. */
    routes: z.array(route).max(50).optional(),
    /** Base URL of the gateway as operators reach it, for links to the page. */
    url: secretUrl(address).optional(),
    /** Milliseconds between two looks at everything. */
    interval: z.int().min(100).max(300_000).default(10_000),
    /** Milliseconds for which an alert that was sent is not sent again. */
    throttle: z
      .int()
      .min(0)
      .max(30 * day)
      .default(3_600_000),
    /** Milliseconds that one delivery may take. */
    timeout: z.int().min(100).max(60_000).default(10_000),
    /** Maximum number of tries of a delivery. */
    attempts: z.int().min(1).max(20).default(8),
    /** Milliseconds before the second try; each further pause is twice as long, up to 30 minutes. */
    backoff: z.int().min(1).max(600_000).default(5_000),
    /** Percentages of budgets at which an alert is raised; none switches it off. */
    budgets: z.array(z.number().min(1).max(100)).max(10).default([50, 80, 100]),
    /** Alerts on the share of failures within a window; `false` switches them off. */
    errorRate: z
      .union([
        z.literal(false),
        z.strictObject({
          /** Milliseconds. */
          window: z.int().min(1_000).max(3_600_000).default(300_000),
          /** Share of calls that failed, from 0 to 1. */
          share: z.number().min(0.01).max(1).default(0.2),
          /** Fewer calls within the window raise nothing. */
          calls: z.int().min(1).max(1_000_000).default(20),
        }),
      ])
      .prefault({}),
    /** Days before an expiry at which an alert is raised; none switches it off. */
    expiryDays: z.array(z.number().min(0.01).max(365)).max(10).default([30, 7, 1]),
    /** Certificates that are watched: addresses (`https://gateway.example.com`), or paths of PEM files. */
    certificates: z.array(text).max(50).default([]),
    /** Credentials of providers whose end only you know, such as client secrets, by name, with the day on which they expire. */
    expiring: z.record(text, z.union([z.iso.date(), z.iso.datetime({ offset: true })])).default({}),
  })
  .superRefine(({ destinations, routes = [] }, context) => {
    for (const [index, { to }] of routes.entries())
      for (const name of to)
        if (!Object.hasOwn(destinations, name))
          context.addIssue({
            code: 'custom',
            path: ['routes', index, 'to'],
            message: `"${name}" is no destination`,
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
