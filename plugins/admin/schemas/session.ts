/** Schemas of the admin endpoints for login, logout, the current session and the ways to sign in. */
import { z } from 'zod';
import { time } from './values.ts';

/** Body of a login. */
export const login = z.strictObject({
  password: z
    .string('must be a text')
    .min(1, 'must not be empty')
    .max(1024, 'must be at most 1024 characters'),
});

/** A session: response to a login, and to the dashboard when it is loaded again. */
export const session = z.object({
  /** First characters of its id, as in the audit log. */
  session: z.string(),
  /** Value for the header `x-csrf-token`, which every request with a change needs. */
  csrfToken: z.string(),
  /** Extended with each use. */
  expiresAt: time,
  actor: z
    .object({
      kind: z.enum(['password', 'user', 'token']),
      id: z.string(),
      name: z.string(),
      role: z.enum(['admin', 'auditor', 'member']),
      organisation: z.string().optional(),
      teams: z.array(z.object({ team: z.string(), lead: z.boolean() })),
      member: z.string().optional(),
    })
    .describe('signed-in actor'),
  may: z
    .array(z.string())
    .describe(
      'allowed operations, and routes of plugins as `GET /api/alerts`. Lists and objects are restricted to those of the actor',
    ),
});

/** Response to a logout. */
export const loggedOut = z.object({
  ok: z.literal(true),
  location: z
    .string()
    .optional()
    .describe('URL at which the browser also signs out of the identity provider'),
});

/** Ways to sign in. */
export const signInWays = z.object({
  password: z.boolean().describe('true: sign-in with the admin password'),
  users: z.boolean().describe('true: sign-in with email and password'),
  providers: z
    .array(z.object({ id: z.string(), label: z.string() }))
    .describe('identity providers (OpenID Connect)'),
});

/** Types of these schemas, for the dashboard. */
export type Session = z.output<typeof session>;
export type SignInWays = z.output<typeof signInWays>;
export type LoggedOut = z.output<typeof loggedOut>;
