/**
 * Table of the routes of the admin API: method, path, required rights, and the schemas of query, body and response. The handlers and the OpenAPI
 * document are made from it.
 */
import type { z } from 'zod';
import type { Needs } from './access/needs.ts';
import { configRoutes } from './config/routes.ts';
import * as schemas from './schemas/index.ts';

/** One route of the admin API: input, output, and required access. */
export interface RouteSpec {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** `:id` is a parameter. */
  readonly path: string;
  readonly summary: string;
  /** Further words for the OpenAPI document. */
  readonly description?: string;
  /** Access that a request needs. */
  readonly needs: Needs;
  /** True: the header `idempotency-key` makes repeated requests create one thing. */
  readonly creates?: true;
  /**
   * `read`: the answer shows a thing with a version, which the header `etag` names too. `change`: beside that the header `if-match` names the
   * version that is meant, and 412 says that somebody else has changed the thing since.
   */
  readonly versioned?: 'read' | 'change';
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  readonly answer: z.ZodType;
  /** The answer's content type. Default: application/json. */
  readonly type?: 'text/event-stream' | 'text/csv';
  /** The status of success. Default: 200. */
  readonly status?: 201;
}

/**
 * Every route of the admin API but `GET /api/admin/openapi.json`, by the name of its operation. All but `login` need the cookie that a
 * login sets; those that are not GET also need the header `x-csrf-token`.
 */
export const routes = {
  login: {
    method: 'POST',
    path: '/api/admin/login',
    needs: { group: 'self', act: 'write', who: 'open' },
    summary: 'Logs in with the admin password',
    description:
      'Sets the session cookie. 401 for a wrong password, with an increasing delay after five from one IP address; 429 with retry-after if too many are waiting.',
    body: schemas.login,
    answer: schemas.session,
  },
  logout: {
    method: 'POST',
    path: '/api/admin/logout',
    needs: { group: 'self', act: 'write', who: 'self' },
    summary: 'Logs out',
    description:
      'For a session that began at a sign-in provider `location` is where the browser signs out there.',
    body: schemas.noBody,
    answer: schemas.loggedOut,
  },
  session: {
    method: 'GET',
    path: '/api/admin/session',
    needs: { group: 'self', act: 'read', who: 'self' },
    summary: 'Tells the CSRF token of a session',
    answer: schemas.session,
  },
  overview: {
    method: 'GET',
    path: '/api/admin/overview',
    needs: { group: 'usage', act: 'read', who: 'everyone' },
    summary: 'What the first view shows',
    query: schemas.overviewQuery,
    answer: schemas.overview,
  },
  live: {
    method: 'GET',
    path: '/api/admin/live',
    needs: { group: 'usage', act: 'read', who: 'everyone' },
    summary: 'Running calls as server-sent events',
    description: 'One event `snapshot`, then events `calls`; the data of both is described here.',
    answer: schemas.liveFrame,
    type: 'text/event-stream',
  },
  listKeys: {
    method: 'GET',
    path: '/api/admin/keys',
    needs: { group: 'keys', act: 'read', who: 'everyone' },
    summary: 'A page of the API keys with the state of their budgets, newest or most expensive first',
    query: schemas.keysQuery,
    answer: schemas.keyPage,
  },
  findKey: {
    method: 'GET',
    path: '/api/admin/keys/:id',
    needs: { group: 'keys', act: 'read', who: 'everyone' },
    versioned: 'read',
    summary: 'One API key with the state of its budgets',
    answer: schemas.key,
  },
  createKey: {
    method: 'POST',
    path: '/api/admin/keys',
    needs: { group: 'keys', act: 'write', who: 'everyone' },
    versioned: 'read',
    summary: 'Makes an API key',
    description: 'The full value is only in this response.',
    creates: true,
    body: schemas.newKey,
    answer: schemas.keyWithValue,
    status: 201,
  },
  updateKey: {
    method: 'PATCH',
    path: '/api/admin/keys/:id',
    needs: { group: 'keys', act: 'write', who: 'everyone' },
    versioned: 'change',
    summary: 'Changes an API key',
    description: 'Omitted fields stay unchanged; null removes a limit.',
    body: schemas.keyChanges,
    answer: schemas.changedKey,
  },
  rotateKey: {
    method: 'POST',
    path: '/api/admin/keys/:id/rotate',
    needs: { group: 'keys', act: 'write', who: 'everyone' },
    summary: 'Gives an API key a new secret; the old one becomes invalid, at once or after a grace period',
    description: 'The full value is only in this response.',
    body: schemas.keyRotation,
    answer: schemas.keyWithValue,
  },
  endOldSecret: {
    method: 'DELETE',
    path: '/api/admin/keys/:id/old-secret',
    needs: { group: 'keys', act: 'write', who: 'everyone' },
    summary: 'Ends the old secret of a rotated API key at once',
    description: '404 if there is no valid old secret.',
    answer: schemas.key,
  },
  enableKey: {
    method: 'POST',
    path: '/api/admin/keys/:id/enable',
    needs: { group: 'keys', act: 'write', who: 'everyone' },
    versioned: 'change',
    summary: 'Switches an API key on',
    body: schemas.noBody,
    answer: schemas.changedKey,
  },
  disableKey: {
    method: 'POST',
    path: '/api/admin/keys/:id/disable',
    needs: { group: 'keys', act: 'write', who: 'everyone' },
    versioned: 'change',
    summary: 'Switches an API key off',
    body: schemas.noBody,
    answer: schemas.changedKey,
  },
  deleteKey: {
    method: 'DELETE',
    path: '/api/admin/keys/:id',
    needs: { group: 'keys', act: 'write', who: 'everyone' },
    versioned: 'change',
    summary: 'Deletes an API key for good',
    answer: schemas.done,
  },
  changeKeys: {
    method: 'POST',
    path: '/api/admin/keys/bulk',
    needs: { group: 'keys', act: 'write', who: 'everyone' },
    summary: 'Switches several API keys on or off, deletes them, or moves them to a team',
    description:
      'Each key succeeds or fails by itself. 200 also if some failed: they are in `failed` with the reason.',
    body: schemas.keysChange,
    answer: schemas.keysChanged,
  },
  listOwners: {
    method: 'GET',
    path: '/api/admin/owners',
    needs: { group: 'owners', act: 'read', who: 'everyone' },
    summary:
      'A page of organisations, teams, members and service accounts with the state of their budgets, newest first',
    query: schemas.ownersQuery,
    answer: schemas.ownerPage,
  },
  findOwner: {
    method: 'GET',
    path: '/api/admin/owners/:id',
    needs: { group: 'owners', act: 'read', who: 'everyone' },
    versioned: 'read',
    summary: 'One of them with the state of its budgets',
    answer: schemas.owner,
  },
  createOwner: {
    method: 'POST',
    path: '/api/admin/owners',
    needs: { group: 'owners', act: 'write', who: 'administrators' },
    versioned: 'read',
    summary: 'Makes an organisation, a team, a member or a service account',
    creates: true,
    body: schemas.newOwner,
    answer: schemas.owner,
    status: 201,
  },
  updateOwner: {
    method: 'PATCH',
    path: '/api/admin/owners/:id',
    needs: { group: 'owners', act: 'write', who: 'administrators' },
    versioned: 'change',
    summary: 'Changes one of them',
    description:
      'Omitted fields stay unchanged; null removes a limit. With enabled false, none of its keys works.',
    body: schemas.ownerChanges,
    answer: schemas.owner,
  },
  deleteOwner: {
    method: 'DELETE',
    path: '/api/admin/owners/:id',
    needs: { group: 'owners', act: 'write', who: 'administrators' },
    versioned: 'change',
    summary: 'Deletes one of them permanently; its keys do not work until they have another owner',
    answer: schemas.done,
  },
  listUsage: {
    method: 'GET',
    path: '/api/admin/usage',
    needs: { group: 'usage', act: 'read', who: 'everyone' },
    summary: 'A page of the usage log, newest first',
    query: schemas.usageQuery,
    answer: schemas.usagePage,
  },
  sumUsage: {
    method: 'GET',
    path: '/api/admin/usage/sums',
    needs: { group: 'usage', act: 'read', who: 'everyone' },
    summary: 'Sums over the usage log',
    query: schemas.sumsQuery,
    answer: schemas.usageSumsList,
  },
  exportUsage: {
    method: 'GET',
    path: '/api/admin/usage.csv',
    needs: { group: 'usage', act: 'read', who: 'everyone' },
    summary: 'The usage log as a table, oldest first',
    query: schemas.usageFilter,
    answer: schemas.usageRecord,
    type: 'text/csv',
  },
  findUsage: {
    method: 'GET',
    path: '/api/admin/usage/:id',
    needs: { group: 'usage', act: 'read', who: 'everyone' },
    summary: 'One call',
    answer: schemas.usageRecord,
  },
  listChannels: {
    method: 'GET',
    path: '/api/admin/channels',
    needs: { group: 'channels', act: 'read', who: 'gateway' },
    summary: 'All channels with their state',
    answer: schemas.channelList,
  },
  testChannel: {
    method: 'POST',
    path: '/api/admin/channels/:id/test',
    needs: { group: 'channels', act: 'write', who: 'gateway' },
    summary: 'Sends a tiny chat call through a channel, also through one that is switched off',
    body: schemas.channelTest,
    answer: schemas.channelTestResult,
  },
  enableChannel: {
    method: 'POST',
    path: '/api/admin/channels/:id/enable',
    needs: { group: 'channels', act: 'write', who: 'gateway' },
    summary: 'Switches a channel on',
    body: schemas.noBody,
    answer: schemas.changedChannel,
  },
  disableChannel: {
    method: 'POST',
    path: '/api/admin/channels/:id/disable',
    needs: { group: 'channels', act: 'write', who: 'gateway' },
    summary: 'Switches a channel off: no new call goes to it',
    body: schemas.noBody,
    answer: schemas.changedChannel,
  },
  resetChannel: {
    method: 'POST',
    path: '/api/admin/channels/:id/reset',
    needs: { group: 'channels', act: 'write', who: 'gateway' },
    summary: 'Closes the circuit breakers of a channel, on all gateways: it gets calls again at once',
    body: schemas.noBody,
    answer: schemas.changedChannel,
  },
  listModels: {
    method: 'GET',
    path: '/api/admin/models',
    needs: { group: 'models', act: 'read', who: 'everyone' },
    summary: 'All models with who serves them and what they cost',
    description:
      'Administrators of an organisation get the models that it allows, other users those that their keys may call. Neither sees channels.',
    answer: schemas.modelList,
  },
  status: {
    method: 'GET',
    path: '/api/admin/status',
    needs: { group: 'processes', act: 'read', who: 'gateway' },
    summary: 'State of the processes: configuration in force, last reload, workers',
    description: 'The load is the current load of the process that responds.',
    answer: schemas.status,
  },
  reload: {
    method: 'POST',
    path: '/api/admin/reload',
    needs: { group: 'processes', act: 'write', who: 'gateway' },
    summary: 'Puts the configuration and the code as they are now in force',
    description:
      'Responds when the reload is done. 200 also if it failed: then `ok` is false, and the previous configuration stays in force.',
    body: schemas.noBody,
    answer: schemas.reloadOutcome,
  },
  listAudit: {
    method: 'GET',
    path: '/api/admin/audit',
    needs: { group: 'audit', act: 'read', who: 'administrators' },
    summary: 'A page of what was changed by whom, newest first',
    query: schemas.auditQuery,
    answer: schemas.auditPage,
  },
  listTokens: {
    method: 'GET',
    path: '/api/admin/tokens',
    needs: { group: 'tokens', act: 'read', who: 'administrators' },
    summary: 'All tokens of the admin API, newest first',
    answer: schemas.tokenList,
  },
  createToken: {
    method: 'POST',
    path: '/api/admin/tokens',
    needs: { group: 'tokens', act: 'write', who: 'administrators' },
    summary: 'Makes a token of the admin API',
    description:
      'The full value is only in this response. A token cannot have more than its creator: no further scope, role or organisation, and no later end.',
    creates: true,
    body: schemas.newToken,
    answer: schemas.tokenWithValue,
    status: 201,
  },
  revokeToken: {
    method: 'DELETE',
    path: '/api/admin/tokens/:id',
    needs: { group: 'tokens', act: 'write', who: 'administrators' },
    summary: 'Ends a token of the admin API at once, on all gateways',
    answer: schemas.done,
  },
  signInWays: {
    method: 'GET',
    path: '/api/admin/sign-in',
    needs: { group: 'self', act: 'read', who: 'open' },
    summary: 'The ways to sign in',
    description:
      'A browser signs in at a provider by GET /api/admin/sign-in/ID, with a path of the page as `returnTo`.',
    answer: schemas.signInWays,
  },
  signIn: {
    method: 'POST',
    path: '/api/admin/sign-in',
    needs: { group: 'self', act: 'write', who: 'open' },
    summary: 'Signs a user in by email and password',
    description:
      '401 second_factor_required if a code is missing. Wrong passwords are delayed as in a login.',
    body: schemas.signIn,
    answer: schemas.session,
  },
  acceptInvitation: {
    method: 'POST',
    path: '/api/admin/invitation',
    needs: { group: 'self', act: 'write', who: 'open' },
    summary: 'Sets the password of an invited user',
    description: 'An invitation can be used once, until it expires. Sign in afterwards.',
    body: schemas.acceptance,
    answer: schemas.done,
  },
  listUsers: {
    method: 'GET',
    path: '/api/admin/users',
    needs: { group: 'users', act: 'read', who: 'administrators' },
    summary: 'A page of the people who may sign in, newest first',
    query: schemas.usersQuery,
    answer: schemas.userPage,
  },
  findUser: {
    method: 'GET',
    path: '/api/admin/users/:id',
    needs: { group: 'users', act: 'read', who: 'administrators' },
    versioned: 'read',
    summary: 'One user',
    answer: schemas.user,
  },
  createUser: {
    method: 'POST',
    path: '/api/admin/users',
    needs: { group: 'users', act: 'write', who: 'administrators' },
    summary: 'Creates a user, with an invitation to set a password',
    body: schemas.newUser,
    answer: schemas.invitedUser,
    status: 201,
  },
  updateUser: {
    method: 'PATCH',
    path: '/api/admin/users/:id',
    needs: { group: 'users', act: 'write', who: 'administrators' },
    versioned: 'change',
    summary: 'Changes a user',
    description:
      'Omitted fields stay unchanged. Sessions end when the role, the organisation or enabled changes.',
    body: schemas.userChanges,
    answer: schemas.user,
  },
  deleteUser: {
    method: 'DELETE',
    path: '/api/admin/users/:id',
    needs: { group: 'users', act: 'write', who: 'administrators' },
    versioned: 'change',
    summary: 'Deletes a user for good and switches its member off',
    answer: schemas.done,
  },
  inviteUser: {
    method: 'POST',
    path: '/api/admin/users/:id/invitation',
    needs: { group: 'users', act: 'write', who: 'administrators' },
    summary: 'Creates an invitation in place of the previous one',
    body: schemas.noBody,
    answer: schemas.invitation,
  },
  resetSecondFactor: {
    method: 'DELETE',
    path: '/api/admin/users/:id/second-factor',
    needs: { group: 'users', act: 'write', who: 'administrators' },
    summary: 'Takes a second factor away that its user has lost',
    answer: schemas.user,
  },
  changePassword: {
    method: 'POST',
    path: '/api/admin/me/password',
    needs: { group: 'self', act: 'write', who: 'self' },
    summary: 'Changes your password and ends your other sessions',
    body: schemas.passwordChange,
    answer: schemas.session,
  },
  addSecondFactor: {
    method: 'POST',
    path: '/api/admin/me/second-factor',
    needs: { group: 'self', act: 'write', who: 'self' },
    summary: 'Makes a second factor, which must be confirmed',
    body: schemas.noBody,
    answer: schemas.secondFactor,
  },
  confirmSecondFactor: {
    method: 'POST',
    path: '/api/admin/me/second-factor/confirm',
    needs: { group: 'self', act: 'write', who: 'self' },
    summary: 'Confirms a second factor by a code, and returns the recovery codes',
    body: schemas.codeBody,
    answer: schemas.recoveryCodes,
  },
  removeSecondFactor: {
    method: 'POST',
    path: '/api/admin/me/second-factor/remove',
    needs: { group: 'self', act: 'write', who: 'self' },
    summary: 'Removes your second factor',
    body: schemas.codeBody,
    answer: schemas.done,
  },
  listOwnSessions: {
    method: 'GET',
    path: '/api/admin/me/sessions',
    needs: { group: 'self', act: 'read', who: 'self' },
    summary: 'Your sessions',
    answer: schemas.ownSessions,
  },
  endOwnSession: {
    method: 'DELETE',
    path: '/api/admin/me/sessions/:id',
    needs: { group: 'self', act: 'write', who: 'self' },
    summary: 'Ends one of your sessions',
    answer: schemas.done,
  },
  endOwnSessions: {
    method: 'DELETE',
    path: '/api/admin/me/sessions',
    needs: { group: 'self', act: 'write', who: 'self' },
    summary: 'Signs you out everywhere: ends all of your sessions, this one too',
    answer: schemas.done,
  },
  ownUser: {
    method: 'GET',
    path: '/api/admin/me',
    needs: { group: 'self', act: 'read', who: 'self' },
    summary: 'What the gateway holds of you as a user',
    description: '403 for the admin password and for tokens, which have no user.',
    answer: schemas.user,
  },
  updateOwnUser: {
    method: 'PATCH',
    path: '/api/admin/me',
    needs: { group: 'self', act: 'write', who: 'self' },
    summary: 'Changes your name',
    body: schemas.ownChanges,
    answer: schemas.user,
  },
  ...configRoutes,
} as const satisfies Readonly<Record<string, RouteSpec>>;

/** The names of the operations. */
export type RouteName = keyof typeof routes;
