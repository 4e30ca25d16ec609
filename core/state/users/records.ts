/** Users as they are stored. */
import { z } from 'zod';
import type { PasswordHash } from '../password-hash.ts';
import type { User } from './index.ts';

/** Maximum number of users: each process holds them all, at about a kilobyte each. */
export const maxUsers = 100_000;

const id = z.string().min(1).max(100, 'is too long');

/** Schemas of the fields that people set of a user. */
export const userFields = {
  email: z
    .string('must be a text')
    .trim()
    .toLowerCase()
    .max(254, 'must be at most 254 characters')
    .regex(/^[^\s@,;:<>"\\]+@[^\s@,;:<>"\\]+$/, 'must be an email address'),
  name: z.string('must be a text').trim().max(200, 'must be at most 200 characters'),
  role: z.enum(['admin', 'auditor', 'member'], 'must be admin, auditor or member'),
  organisation: id,
  teams: z
    .array(z.strictObject({ team: id, lead: z.boolean('must be true or false') }))
    .max(50, 'must have at most 50 entries')
    .refine(
      (teams) => new Set(teams.map(({ team }) => team)).size === teams.length,
      'must not name a team twice',
    ),
  member: id,
  identities: z
    .array(z.strictObject({ issuer: z.string().min(1).max(1000), subject: z.string().min(1).max(255) }))
    .max(10, 'must have at most 10 entries'),
  externalId: z.string().min(1).max(500),
} as const;

const passwordHash: z.ZodType<PasswordHash> = z.object({
  salt: z.string(),
  hash: z.string(),
  cost: z.int(),
});

/** Credentials of a user. They never leave this folder. */
const secrets = z.object({
  password: passwordHash.exactOptional(),
  /** A link by which the user sets a password; SHA-256 of its token. */
  invitation: z.object({ hash: z.string(), expiresAt: z.int() }).exactOptional(),
  factor: z
    .object({
      /** The sealed secret. */
      sealed: z.string(),
      confirmed: z.boolean(),
      /** Last step whose code was taken: it and those before it are refused. */
      step: z.int(),
      /** SHA-256 of the recovery codes that are left. */
      recovery: z.array(z.string()),
      /** Wrong codes in a row, and until when no code is looked at. */
      failures: z.int(),
      blockedUntil: z.int(),
    })
    .exactOptional(),
});
/** See `secrets`. */
export type UserSecrets = z.output<typeof secrets>;

/** A user as it is stored. */
const recordSchema = z.object({
  id: z.string(),
  email: userFields.email,
  name: userFields.name,
  role: userFields.role,
  organisation: userFields.organisation.exactOptional(),
  teams: userFields.teams,
  member: userFields.member,
  enabled: z.boolean(),
  identities: userFields.identities,
  externalId: userFields.externalId.exactOptional(),
  createdAt: z.int(),
  lastSignInAt: z.int().exactOptional(),
  stamp: z.string(),
  secrets,
});
/** A stored user with its secrets, which only this folder sees. */
export type UserRecord = z.output<typeof recordSchema>;

/** Reads a stored record, or one that is to be stored. */
export function parseRecord(value: unknown): z.ZodSafeParseResult<UserRecord> {
  return recordSchema.safeParse(value);
}

/** Returns the user of a record, without what it signs in with. */
export function userOf({ secrets: { password, factor }, ...rest }: UserRecord): User {
  return { ...rest, hasPassword: password !== undefined, hasSecondFactor: factor?.confirmed === true };
}

/** Returns an email as users have it; undefined for a text that is none. */
export function normalEmail(text: string): string | undefined {
  return userFields.email.safeParse(text).data;
}
