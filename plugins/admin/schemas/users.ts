/** Schemas of the admin endpoints for people who sign in. */
import { z } from 'zod';
import { userFields } from 'sluice/internal';
import { page, searched, time } from './values.ts';

const fields = userFields;

const teams = fields.teams.describe('teams of the user, and those that the user leads');

/** Fields of a new user. Only the email is required. */
export const newUser = z.strictObject({
  email: fields.email,
  name: fields.name.exactOptional(),
  role: fields.role.exactOptional().describe('role of the user. Default: member'),
  organisation: fields.organisation
    .exactOptional()
    .describe('id of the organisation to which the user is restricted'),
  teams: teams.exactOptional(),
  member: fields.member
    .exactOptional()
    .describe('id of the member whose keys belong to the user. Default: a new member'),
  enabled: z.boolean().exactOptional(),
});

/** Fields to change; null removes the organisation. */
export const userChanges = z.strictObject({
  email: fields.email.exactOptional(),
  name: fields.name.exactOptional(),
  role: fields.role.exactOptional(),
  organisation: fields.organisation.nullable().exactOptional(),
  teams: teams.exactOptional(),
  enabled: z.boolean().exactOptional(),
});

/** A user as administrators see it. */
export const user = z.object({
  id: z.string(),
  version: z.string().describe('version for the header if-match of a change'),
  email: z.string(),
  name: z.string(),
  role: fields.role,
  organisation: z.string().optional(),
  teams: z.array(z.object({ team: z.string(), lead: z.boolean() })),
  member: z.string(),
  enabled: z.boolean(),
  identities: z.array(z.object({ issuer: z.string(), subject: z.string() })),
  externalId: z.string().optional(),
  hasPassword: z.boolean(),
  hasSecondFactor: z.boolean(),
  createdAt: time,
  lastSignInAt: time.optional(),
});

/** Filter and page of users. */
export const usersQuery = z.strictObject({
  organisation: z.string().max(100).exactOptional(),
  team: z.string().max(100).exactOptional(),
  role: fields.role.exactOptional(),
  search: searched.describe('part of an email, name or id, case-insensitive'),
  ...page,
});

/** A page of users, newest first. */
export const userPage = z.object({
  users: z.array(user),
  next: z.string().optional().describe('cursor of the next page; absent on the last'),
});

/** An invitation by which a user sets a password. */
export const invitation = z.object({
  token: z.string().describe('token for the page /dashboard/#/invitation/TOKEN; it cannot be shown again'),
  expiresAt: time,
});

/** A new user, with its invitation. */
export const invitedUser = z.object({ user, invitation });

const password = z
  .string('must be a text')
  .min(1, 'must not be empty')
  .max(1024, 'must be at most 1024 characters');
const code = z
  .string('must be a text')
  .min(1, 'must not be empty')
  .max(100, 'must be at most 100 characters');

/** A sign-in by email and password. */
export const signIn = z.strictObject({
  email: z.string('must be a text').min(1, 'must not be empty').max(254, 'must be at most 254 characters'),
  password,
  code: code
    .exactOptional()
    .describe(
      'code of the second factor, or a recovery code. Required if the response without it is second_factor_required',
    ),
});

/** Password of an invited user. */
export const acceptance = z.strictObject({
  token: z.string('must be a text').min(1, 'must not be empty').max(200, 'must be at most 200 characters'),
  password,
});

/** Change of the user's own password. */
export const passwordChange = z.strictObject({ current: password, password });

/** Fields that users may change of their own account. */
export const ownChanges = z.strictObject({
  name: fields.name.min(1, 'must not be empty'),
});

/** A code that confirms a second factor, or proves it before it is removed. */
export const codeBody = z.strictObject({ code });

/** A second factor for an app. */
export const secondFactor = z.object({
  secret: z.string().describe('secret in base 32'),
  uri: z.string().describe('URI for a QR code'),
});

/** Recovery codes for a lost app, each for one sign-in. */
export const recoveryCodes = z.object({ codes: z.array(z.string()) });

/** Sessions of the user who sends the request. */
export const ownSessions = z.object({
  sessions: z.array(
    z.object({
      session: z.string().describe('first characters of the session id'),
      createdAt: time,
      expiresAt: time,
      current: z.boolean(),
    }),
  ),
});

/** Types of these schemas, for the dashboard. */
export type UserView = z.output<typeof user>;
export type UserPage = z.output<typeof userPage>;
export type SecondFactorView = z.output<typeof secondFactor>;
export type RecoveryCodes = z.output<typeof recoveryCodes>;
export type OwnSessions = z.output<typeof ownSessions>;
export type InvitedUser = z.output<typeof invitedUser>;
