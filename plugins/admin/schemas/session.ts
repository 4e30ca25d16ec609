/** Schemas of the admin endpoints for login, logout, the current session and the ways to sign in. */
import { z } from 'zod';
import { time } from './values.ts';

/** The body of a login. */
export const login = z.strictObject({
  password: z
    .string('must be a text')
    .min(1, 'must not be empty')
    .max(1024, 'must be at most 1024 characters'),
});

/** A session: what a login gives, and what a page asks when it is loaded again. */
export const session = z.object({
  /** The first characters of its id, as the audit shows them. */
  session: z.string(),
  /** Goes into the header `x-csrf-token` of every request that changes something. */
  csrfToken: z.string(),
  /** Moves on while it is used. */
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
    .describe('who has signed in'),
  may: z
    .array(z.string())
    .describe(
      'operations that are allowed, and routes of plugins as `GET /api/alerts`; of lists and single things each actor finds what is its own',
    ),
});

/** Answer to a logout. */
export const loggedOut = z.object({
  ok: z.literal(true),
  location: z.string().optional().describe('where the browser signs out of the sign-in provider too'),
});

/** The ways to sign in. */
export const signInWays = z.object({
  password: z.boolean().describe('the admin password'),
  users: z.boolean().describe('email and password of a user'),
  providers: z
    .array(z.object({ id: z.string(), label: z.string() }))
    .describe('sign-in providers by OpenID Connect'),
});

/** The types of what stands above, as a page takes them. */
export type Session = z.output<typeof session>;
export type SignInWays = z.output<typeof signInWays>;
export type LoggedOut = z.output<typeof loggedOut>;
