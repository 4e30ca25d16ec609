/** Requests to the admin API, as the views of the dashboard make them. */
import type {
  AuditPage,
  ChangedKey,
  ChannelList,
  ChannelTestResult,
  EntryProblem,
  Failure,
  KeyChanges,
  KeyPage,
  KeyView,
  KeyWithValue,
  KeysChange,
  InvitedUser,
  KeysChanged,
  LoggedOut,
  ModelList,
  NewKey,
  NewOwner,
  NewToken,
  Overview,
  OverviewRange,
  OwnerChanges,
  OwnSessions,
  OwnerPage,
  OwnerView,
  RecoveryCodes,
  ReloadOutcome,
  SecondFactorView,
  Session,
  SignInWays,
  Status,
  TokenList,
  TokenWithValue,
  UsagePageView,
  UsageRecordView,
  UsageSumsList,
  UserPage,
  UserView,
} from '../../../admin/schemas/index.ts';

/** A refusal of the admin API; `status` is 0 when the gateway could not be reached. */
export class ApiError extends Error {
  readonly status: number;
  /** The field that is wrong: `budgets[0].amount`. */
  readonly param: string | undefined;
  /** Problems of a configuration entry, each by itself. */
  readonly problems: readonly EntryProblem[];

  constructor(status: number, message: string, param?: string, problems: readonly EntryProblem[] = []) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.param = param;
    this.problems = problems;
  }
}

/** Which calls of the log are wanted; empty members do not narrow. */
export type UsageQuery = Readonly<Record<string, string | undefined>>;

/** Filter of API keys, and the length of a page. */
interface KeysQuery {
  readonly search?: string | undefined;
  readonly owner?: string | undefined;
  readonly limit?: number | undefined;
  readonly spend?: 'true';
  readonly sort?: 'created' | 'spend';
}

/** Fields of the login. An empty email stands for the admin password, an empty code for none. */
export interface Credentials {
  readonly email: string;
  readonly password: string;
  readonly code: string;
}

/** Fields of a user that the page sets; null takes the organisation away. */
interface UserFields {
  readonly name?: string;
  readonly role?: UserView['role'];
  readonly organisation?: string | null;
  readonly teams?: UserView['teams'];
}

/** Fields of a new user. */
type NewUserFields = Omit<UserFields, 'organisation'> & {
  readonly email: string;
  readonly organisation?: string;
};

let csrfToken = '';
let onSignedOut = (): void => {};

/** Says what to do when a session has ended. */
export function whenSignedOut(job: () => void): void {
  onSignedOut = job;
}

async function send(
  method: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(path.startsWith('/') ? path : `/api/admin/${path}`, {
    method,
    credentials: 'same-origin',
    ...(method !== 'GET' && {
      headers: {
        ...headers,
        'x-csrf-token': csrfToken,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
    }),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((): never => {
    throw new ApiError(0, 'The gateway cannot be reached.');
  });
}

/** Paths whose 401 means a wrong password, not the end of the session. */
const signingIn: ReadonlySet<string> = new Set([
  'login',
  'sign-in',
  'me/password',
  'me/second-factor/confirm',
  'me/second-factor/remove',
]);

/** Sends a request to the admin API: `path` is below `/api/admin/`, or begins with a slash. Rejects with an {@link ApiError}. */
export async function sendRequest<T>(
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
): Promise<T> {
  let response = await send(method, path, body, headers);
  if (response.status === 403 && method !== 'GET') {
    // A login in another window has replaced the cookie, and the token with it.
    await remember(sendRequest<Session>('GET', 'session'));
    response = await send(method, path, body, headers);
  }
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.ok) return answer as T;
  const error = (answer as Partial<Failure> | undefined)?.error;
  if (response.status === 401 && !signingIn.has(path)) onSignedOut();
  throw new ApiError(
    response.status,
    error?.message ?? `The gateway answered ${response.status}.`,
    error?.param,
    error?.problems,
  );
}

async function remember(pending: Promise<Session>): Promise<Session> {
  const session = await pending;
  ({ csrfToken } = session);
  return session;
}

/** A query string of what is set, with its question mark. */
export function queryOf(query: Readonly<Record<string, string | number | undefined>>): string {
  const entries = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, String(value)]],
  );
  return entries.length === 0 ? '' : `?${new URLSearchParams(entries).toString()}`;
}

/** Encodes a part of a path. */
export const at = encodeURIComponent;
const ifMatch = (version: string) => ({ 'if-match': `"${version}"` });

/** The admin API. Every function rejects with an {@link ApiError}. */
export const api = {
  /** Null without a session. */
  session: (): Promise<Session | null> =>
    remember(sendRequest<Session>('GET', 'session')).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 401) return null;
      throw error;
    }),
  signInWays: () => sendRequest<SignInWays>('GET', 'sign-in'),
  /** By the admin password where there is no email, else as a user, with a code where there is a second factor. */
  login: ({ password, email, code }: Credentials) =>
    remember(
      email === ''
        ? sendRequest<Session>('POST', 'login', { password })
        : sendRequest<Session>('POST', 'sign-in', { email, password, ...(code !== '' && { code }) }),
    ),
  acceptInvitation: (token: string, password: string) =>
    sendRequest<unknown>('POST', 'invitation', { token, password }),
  users: (query: { readonly search?: string; readonly after?: string | undefined }) =>
    sendRequest<UserPage>('GET', `users${queryOf(query)}`),
  createUser: (user: NewUserFields) => sendRequest<InvitedUser>('POST', 'users', user),
  user: (id: string) => sendRequest<UserView>('GET', `users/${at(id)}`),
  /** 412 if the user was changed since this version. */
  updateUser: (id: string, changes: UserFields, version: string) =>
    sendRequest<UserView>('PATCH', `users/${at(id)}`, changes, ifMatch(version)),
  switchUser: (id: string, on: boolean) => sendRequest<UserView>('PATCH', `users/${at(id)}`, { enabled: on }),
  deleteUser: (id: string) => sendRequest<unknown>('DELETE', `users/${at(id)}`),
  inviteUser: (id: string) =>
    sendRequest<InvitedUser['invitation']>('POST', `users/${at(id)}/invitation`, {}),
  resetSecondFactor: (id: string) => sendRequest<UserView>('DELETE', `users/${at(id)}/second-factor`),
  /** One's own user. */
  me: () => sendRequest<UserView>('GET', 'me'),
  changeMe: (name: string) => sendRequest<UserView>('PATCH', 'me', { name }),
  changePassword: (current: string, password: string) =>
    remember(sendRequest<Session>('POST', 'me/password', { current, password })),
  addSecondFactor: () => sendRequest<SecondFactorView>('POST', 'me/second-factor', {}),
  confirmSecondFactor: (code: string) =>
    sendRequest<RecoveryCodes>('POST', 'me/second-factor/confirm', { code }),
  removeSecondFactor: (code: string) => sendRequest<unknown>('POST', 'me/second-factor/remove', { code }),
  ownSessions: () => sendRequest<OwnSessions>('GET', 'me/sessions'),
  endOwnSession: (id: string) => sendRequest<unknown>('DELETE', `me/sessions/${at(id)}`),
  endOwnSessions: () => sendRequest<unknown>('DELETE', 'me/sessions'),
  logout: () => sendRequest<LoggedOut>('POST', 'logout', {}),
  overview: (range: OverviewRange) => sendRequest<Overview>('GET', `overview?range=${range}`),
  keys: (query: KeysQuery, after: string | undefined) =>
    sendRequest<KeyPage>('GET', `keys${queryOf({ ...query, after })}`),
  key: (id: string) => sendRequest<KeyView>('GET', `keys/${at(id)}`),
  createKey: (key: NewKey) => sendRequest<KeyWithValue>('POST', 'keys', key),
  updateKey: (id: string, changes: KeyChanges, version: string) =>
    sendRequest<ChangedKey>('PATCH', `keys/${at(id)}`, changes, ifMatch(version)),
  rotateKey: (id: string, graceSeconds: number) =>
    sendRequest<KeyWithValue>('POST', `keys/${at(id)}/rotate`, { graceSeconds }),
  endOldSecret: (id: string) => sendRequest<KeyView>('DELETE', `keys/${at(id)}/old-secret`),
  changeKeys: (change: KeysChange) => sendRequest<KeysChanged>('POST', 'keys/bulk', change),
  switchKey: (id: string, on: boolean) =>
    sendRequest<ChangedKey>('POST', `keys/${at(id)}/${on ? 'enable' : 'disable'}`, {}),
  deleteKey: (id: string) => sendRequest<unknown>('DELETE', `keys/${at(id)}`),
  tokens: () => sendRequest<TokenList>('GET', 'tokens'),
  createToken: (token: NewToken) => sendRequest<TokenWithValue>('POST', 'tokens', token),
  revokeToken: (id: string) => sendRequest<unknown>('DELETE', `tokens/${at(id)}`),
  owners: (query: {
    readonly kind?: OwnerView['kind'] | undefined;
    readonly organisation?: string | undefined;
    readonly search?: string | undefined;
    readonly limit?: number;
    readonly after?: string | undefined;
  }) => sendRequest<OwnerPage>('GET', `owners${queryOf(query)}`),
  owner: (id: string) => sendRequest<OwnerView>('GET', `owners/${at(id)}`),
  createOwner: (owner: NewOwner) => sendRequest<OwnerView>('POST', 'owners', owner),
  updateOwner: (id: string, changes: OwnerChanges, version: string) =>
    sendRequest<OwnerView>('PATCH', `owners/${at(id)}`, changes, ifMatch(version)),
  switchOwner: (id: string, on: boolean) =>
    sendRequest<OwnerView>('PATCH', `owners/${at(id)}`, { enabled: on }),
  deleteOwner: (id: string) => sendRequest<unknown>('DELETE', `owners/${at(id)}`),
  usage: (query: UsageQuery, after: string | undefined) =>
    sendRequest<UsagePageView>('GET', `usage${queryOf({ limit: 50, ...query, after })}`),
  sums: (query: UsageQuery) => sendRequest<UsageSumsList>('GET', `usage/sums${queryOf(query)}`),
  call: (id: string) => sendRequest<UsageRecordView>('GET', `usage/${at(id)}`),
  channels: () => sendRequest<ChannelList>('GET', 'channels'),
  testChannel: (id: string) => sendRequest<ChannelTestResult>('POST', `channels/${at(id)}/test`, {}),
  switchChannel: (id: string, on: boolean) =>
    sendRequest<unknown>('POST', `channels/${at(id)}/${on ? 'enable' : 'disable'}`, {}),
  resetChannel: (id: string) => sendRequest<unknown>('POST', `channels/${at(id)}/reset`, {}),
  models: () => sendRequest<ModelList>('GET', 'models'),
  status: () => sendRequest<Status>('GET', 'status'),
  reload: () => sendRequest<ReloadOutcome>('POST', 'reload', {}),
  audit: (after: string | undefined) => sendRequest<AuditPage>('GET', `audit${queryOf({ after })}`),
};
