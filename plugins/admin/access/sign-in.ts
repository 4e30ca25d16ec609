/** Routes by which users sign in with a password and look after their passwords, second factors and sessions. */
import { GatewayError } from 'sluice';
import { UserMistake, type User } from 'sluice/internal';
import { setSessionCookie } from '../http.ts';
import type { Handlers } from '../serve.ts';
import { userActor, type Actor } from './actor.ts';
import { notLoggedIn } from './identify.ts';
import { sessionView, type SessionParts } from './session.ts';

/** The routes of users about their own sign-in. */
export function signInHandlers({
  tools: { users, credentials, log },
  sessions,
  audit,
  throttle,
}: SessionParts): Handlers<
  | 'signIn'
  | 'acceptInvitation'
  | 'changePassword'
  | 'addSecondFactor'
  | 'confirmSecondFactor'
  | 'removeSecondFactor'
  | 'listOwnSessions'
  | 'endOwnSession'
> {
  const ownUser = async ({ kind, id }: Actor): Promise<User> => {
    const user = kind === 'user' ? await users.current(id) : undefined;
    if (user === undefined)
      throw new GatewayError(
        'forbidden',
        'This is for users who have signed in: the admin password has no user.',
      );
    return user;
  };

  /** Runs a check of a password or code at the pace of the throttle. */
  const inTurn = async <Found>(
    ip: string,
    find: () => Promise<Found | undefined>,
  ): Promise<Found | undefined> => {
    let found: Found | undefined;
    await throttle.check(ip, async () => {
      found = await find();
      return found !== undefined;
    });
    return found;
  };

  /** Throws unless the code is right. */
  const checkCode = async (user: User, code: string, ip: string): Promise<void> => {
    const result = await inTurn(ip, async () => {
      const outcome = await credentials.checkCode(user.id, code);
      return outcome === 'wrong' ? undefined : outcome;
    });
    if (result === 'blocked')
      throw new GatewayError('rate_limit_exceeded', 'Too many codes were wrong. Try again in a while.', {
        retryAfter: 60,
      });
    if (result !== 'right')
      throw new GatewayError('wrong_password', 'This code is wrong, or was used already.', { param: 'code' });
  };

  return {
    async signIn({ ctx, body, ip, https }) {
      const user = await inTurn(ip, () => credentials.checkPassword(body.email, body.password));
      if (user === undefined) {
        log.warn({ ip }, 'a sign-in with a wrong email or password was refused');
        throw new GatewayError('wrong_password', 'The email or the password is wrong.', {
          param: 'password',
        });
      }
      if (user.hasSecondFactor) {
        if (body.code === undefined)
          throw new GatewayError('second_factor_required', 'Give the code of your authenticator app too.', {
            param: 'code',
          });
        await checkCode(user, body.code, ip);
      }
      const { token, session } = await sessions.start(user);
      await users.signedIn(user.id);
      await audit.note({ actor: userActor(user), ip, session }, { action: 'sign-in', target: user.id });
      setSessionCookie(ctx, token, https, session.expiresAt);
      return sessionView(session, userActor(user));
    },
    async acceptInvitation({ body, ip }) {
      const user = await inTurn(ip, () => orInvalidUser(credentials.accept(body.token, body.password)));
      if (user === undefined)
        throw new GatewayError(
          'not_found',
          'This invitation is unknown, was used or has expired. Ask for another.',
        );
      await audit.note({ actor: userActor(user), ip }, { action: 'user-accept', target: user.id });
      return { ok: true };
    },
    async changePassword(asked) {
      const { ctx, body, ip, https, actor } = asked;
      const user = await ownUser(actor);
      if ((await inTurn(ip, () => credentials.checkPassword(user.email, body.current))) === undefined)
        throw new GatewayError('wrong_password', 'This is not your password.', { param: 'current' });
      const changed = await orInvalidUser(credentials.setPassword(user.id, body.password));
      await audit.note(asked, { action: 'password-change', target: user.id });
      // All sessions are over: this one goes on as another.
      const { token, session } = await sessions.start(changed);
      setSessionCookie(ctx, token, https, session.expiresAt);
      return sessionView(session, userActor(changed));
    },
    async addSecondFactor({ actor }) {
      const { id } = await ownUser(actor);
      return orInvalidUser(credentials.startSecondFactor(id));
    },
    async confirmSecondFactor(asked) {
      const { id } = await ownUser(asked.actor);
      const codes = await inTurn(asked.ip, () => credentials.confirmSecondFactor(id, asked.body.code));
      if (codes === undefined)
        throw new GatewayError('wrong_password', 'This code is wrong. Look at the clock of your device.', {
          param: 'code',
        });
      await audit.note(asked, { action: 'second-factor-add', target: id });
      return { codes: [...codes] };
    },
    async removeSecondFactor(asked) {
      const user = await ownUser(asked.actor);
      await checkCode(user, asked.body.code, asked.ip);
      await credentials.removeSecondFactor(user.id);
      await audit.note(asked, { action: 'second-factor-remove', target: user.id });
      return { ok: true };
    },
    async listOwnSessions({ actor, session }) {
      const own = await sessions.ofUser(await ownUser(actor));
      return {
        sessions: own.map(({ id, createdAt, expiresAt }) => ({
          session: id,
          createdAt,
          expiresAt,
          current: id === session?.id,
        })),
      };
    },
    async endOwnSession(asked) {
      const user = await ownUser(asked.actor);
      if (asked.session === undefined) return notLoggedIn();
      if (!(await sessions.endOf(user, asked.id)))
        throw new GatewayError('not_found', `There is no session ${asked.id.slice(0, 100)} of yours.`);
      await audit.note(asked, { action: 'session-end', target: asked.id });
      return { ok: true };
    },
  };
}

/** Waits for a change of a user. What cannot be is 400. */
export async function orInvalidUser<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof UserMistake) throw new GatewayError('invalid_value', error.message);
    throw error;
  }
}
