/** Routes by which users sign in with a password and look after their passwords, second factors and sessions. */
import { GatewayError } from 'sluice';
import { UserMistake } from 'sluice/internal';
import type { CodeCheck, User } from '../core-types.ts';
import { setSessionCookie } from '../http.ts';
import { orInvalid } from '../or-invalid.ts';
import type { Handlers } from '../serve.ts';
import { userActor, type Actor } from './actor.ts';
import { notLoggedIn } from './identify.ts';
import { sessionView, type SessionParts } from './session.ts';
import { viewOf } from './users.ts';

/** Result of a check of an email, a password and a code. */
interface Proof {
  /** The user with this email and password. */
  readonly user: User | undefined;
  /** Present where a second factor is needed and a code was given. */
  readonly outcome?: CodeCheck | undefined;
}

/** Returns the routes of users about their own sign-in. */
export function signInHandlers(
  parts: SessionParts,
): Handlers<
  | 'signIn'
  | 'acceptInvitation'
  | 'changePassword'
  | 'addSecondFactor'
  | 'confirmSecondFactor'
  | 'removeSecondFactor'
  | 'listOwnSessions'
  | 'endOwnSession'
  | 'endOwnSessions'
  | 'ownUser'
  | 'updateOwnUser'
> {
  const {
    tools: { users, credentials, log, adminRoutes },
    sessions,
    audit,
  } = parts;
  const own = new SignIn(parts);
  return {
    async signIn({ ctx, body, ip, https }) {
      const { user, outcome } = await own.prove(ip, body);
      if (user === undefined) {
        log.warn({ ip }, 'a sign-in with a wrong email or password was refused');
        throw new GatewayError('wrong_password', 'Wrong email or password.', {
          param: 'password',
        });
      }
      if (user.hasSecondFactor) {
        if (outcome === undefined)
          throw new GatewayError('second_factor_required', 'Give the code of your authenticator app too.', {
            param: 'code',
          });
        checkOutcome(outcome);
      }
      const { token, session } = await sessions.start(user);
      await users.signedIn(user.id);
      await audit.note({ actor: userActor(user), ip, session }, { action: 'sign-in', target: user.id });
      setSessionCookie(ctx, token, https, session.expiresAt);
      return sessionView(session, userActor(user), adminRoutes());
    },
    async acceptInvitation({ body, ip }) {
      const user = await own.throttled(ip, () =>
        orInvalid(UserMistake, credentials.accept(body.token, body.password)),
      );
      if (user === undefined)
        throw new GatewayError(
          'not_found',
          'This invitation is unknown, was used or has expired. Ask for another.',
        );
      await audit.note({ actor: userActor(user), ip }, { action: 'user-accept', target: user.id });
      return { ok: true };
    },
    async changePassword(request) {
      const { ctx, body, ip, https, actor } = request;
      const user = await own.ownUser(actor);
      if ((await own.throttled(ip, () => credentials.checkPassword(user.email, body.current))) === undefined)
        throw new GatewayError('wrong_password', 'Wrong password.', { param: 'current' });
      const changed = await orInvalid(UserMistake, credentials.setPassword(user.id, body.password));
      await audit.note(request, { action: 'password-change', target: user.id });
      // All sessions have ended. This one continues with a new token.
      const { token, session } = await sessions.start(changed);
      setSessionCookie(ctx, token, https, session.expiresAt);
      return sessionView(session, userActor(changed), adminRoutes());
    },
    ...factorHandlers(parts, own),
    ...sessionHandlers(parts, own),
    ...accountHandlers(parts, own),
  };
}

/** Returns the routes of users about their own account. */
function accountHandlers(
  { tools: { users }, audit }: SessionParts,
  own: SignIn,
): Handlers<'ownUser' | 'updateOwnUser'> {
  return {
    ownUser: async ({ actor }) => viewOf(await own.ownUser(actor)),
    async updateOwnUser(request) {
      const before = await own.ownUser(request.actor);
      const after = await orInvalid(UserMistake, users.update(before.id, { name: request.body.name }));
      await audit.note(request, {
        action: 'user-update',
        target: before.id,
        before: { name: before.name },
        after: { name: after.name },
      });
      return viewOf(after);
    },
  };
}

/** Returns the routes of users about their second factor. */
function factorHandlers(
  { tools: { credentials }, audit, throttle }: SessionParts,
  own: SignIn,
): Handlers<'addSecondFactor' | 'confirmSecondFactor' | 'removeSecondFactor'> {
  return {
    async addSecondFactor({ actor }) {
      const { id } = await own.ownUser(actor);
      return orInvalid(UserMistake, credentials.startSecondFactor(id));
    },
    async confirmSecondFactor(request) {
      const { id } = await own.ownUser(request.actor);
      const codes = await own.throttled(request.ip, () =>
        credentials.confirmSecondFactor(id, request.body.code),
      );
      if (codes === undefined)
        throw new GatewayError('wrong_password', 'This code is wrong. Look at the clock of your device.', {
          param: 'code',
        });
      await audit.note(request, { action: 'second-factor-add', target: id });
      return { codes: [...codes] };
    },
    async removeSecondFactor(request) {
      const user = await own.ownUser(request.actor);
      let outcome: CodeCheck = 'wrong';
      await throttle.check(request.ip, async () => {
        outcome = await credentials.checkCode(user.id, request.body.code);
        return outcome === 'right';
      });
      checkOutcome(outcome);
      await credentials.removeSecondFactor(user.id);
      await audit.note(request, { action: 'second-factor-remove', target: user.id });
      return { ok: true };
    },
  };
}

/** Returns the routes of users about their own sessions. */
function sessionHandlers(
  { sessions, audit }: SessionParts,
  own: SignIn,
): Handlers<'listOwnSessions' | 'endOwnSession' | 'endOwnSessions'> {
  return {
    async listOwnSessions({ actor, session }) {
      const found = await sessions.ofUser(await own.ownUser(actor));
      return {
        sessions: found.map(({ id, createdAt, expiresAt }) => ({
          session: id,
          createdAt,
          expiresAt,
          current: id === session?.id,
        })),
      };
    },
    async endOwnSession(request) {
      const user = await own.ownUser(request.actor);
      if (request.session === undefined) return notLoggedIn();
      if (!(await sessions.endOf(user, request.id)))
        throw new GatewayError('not_found', `There is no session ${request.id.slice(0, 100)} of yours.`);
      await audit.note(request, { action: 'session-end', target: request.id });
      return { ok: true };
    },
    async endOwnSessions(request) {
      const user = await own.ownUser(request.actor);
      await sessions.endAllOf(user);
      await audit.note(request, { action: 'session-end', target: 'all' });
      setSessionCookie(request.ctx, undefined, request.https);
      return { ok: true };
    },
  };
}

/** Finds who asks, and checks passwords and codes at the pace of the throttle. */
class SignIn {
  readonly #users: SessionParts['tools']['users'];
  readonly #credentials: SessionParts['tools']['credentials'];
  readonly #throttle: SessionParts['throttle'];

  constructor({ tools: { users, credentials }, throttle }: SessionParts) {
    this.#users = users;
    this.#credentials = credentials;
    this.#throttle = throttle;
  }

  async ownUser({ kind, id }: Actor): Promise<User> {
    const user = kind === 'user' ? await this.#users.current(id) : undefined;
    if (user === undefined)
      throw new GatewayError(
        'forbidden',
        'This endpoint is for signed-in users. The admin password has no user.',
      );
    return user;
  }

  /** Runs a check of a password or code at the pace of the throttle. */
  async throttled<Found>(ip: string, find: () => Promise<Found | undefined>): Promise<Found | undefined> {
    let found: Found | undefined;
    await this.#throttle.check(ip, async () => {
      found = await find();
      return found !== undefined;
    });
    return found;
  }

  /** Checks what somebody signs in with, in one turn: only the whole of it is a success. */
  async prove(
    ip: string,
    { email, password, code }: { readonly email: string; readonly password: string; readonly code?: string },
  ): Promise<Proof> {
    let proof: Proof = { user: undefined };
    await this.#throttle.check(ip, async () => {
      const user = await this.#credentials.checkPassword(email, password);
      if (user?.hasSecondFactor !== true) {
        proof = { user };
        return user !== undefined;
      }
      const outcome = code === undefined ? undefined : await this.#credentials.checkCode(user.id, code);
      proof = { user, outcome };
      return outcome === undefined ? 'half' : outcome === 'right';
    });
    return proof;
  }
}

/** Throws unless the code was right. */
function checkOutcome(outcome: CodeCheck): void {
  if (outcome === 'blocked')
    throw new GatewayError('rate_limit_exceeded', 'Too many codes were wrong. Try again in a while.', {
      retryAfter: 60,
    });
  if (outcome === 'wrong')
    throw new GatewayError('wrong_password', 'This code is wrong, or was used already.', { param: 'code' });
}
