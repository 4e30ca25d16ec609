/** Routes by which the operator logs in with the admin password, and by which everybody learns who they are and logs out. */
import { GatewayError } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { AdminPassword } from '../core-types.ts';
import type { Audit } from '../audit.ts';
import { sessionToken, setSessionCookie } from '../http.ts';
import { routes, type RouteSpec } from '../routes.ts';
import type { Session as SessionView } from '../schemas/index.ts';
import type { Handlers } from '../serve.ts';
import type { Session, Sessions } from '../sessions.ts';
import type { SignIn } from '../sign-in/index.ts';
import type { LoginThrottle } from '../throttle.ts';
import { passwordActor, type Actor } from './actor.ts';
import { notLoggedIn } from './identify.ts';
import { mayUse } from './judge.ts';
import { needsOfPlugin } from './needs.ts';

/** Parts that the handlers of sessions work with. */
export interface SessionParts {
  readonly tools: Pick<InternalTools, 'users' | 'credentials' | 'log' | 'adminRoutes'>;
  readonly sessions: Sessions;
  readonly audit: Audit;
  readonly throttle: LoginThrottle;
}

/** Returns the routes about the session of the admin password, and of sessions in general. */
export function sessionHandlers({
  tools: { log, adminRoutes },
  password,
  sessions,
  audit,
  throttle,
  signIn,
}: SessionParts & { readonly password: AdminPassword; readonly signIn: SignIn }): Handlers<
  'login' | 'logout' | 'session'
> {
  return {
    async login({ ctx, body, ip, https }) {
      if (!(await throttle.check(ip, () => password.check(body.password)))) {
        log.warn({ ip }, 'a login with a wrong admin password was refused');
        throw new GatewayError('wrong_password', 'Wrong admin password.', { param: 'password' });
      }
      const { token, session } = await sessions.start();
      await audit.note({ actor: passwordActor, ip, session }, { action: 'login' });
      setSessionCookie(ctx, token, https, session.expiresAt);
      return sessionView(session, passwordActor, adminRoutes());
    },
    async logout(request) {
      const { ctx, https, session } = request;
      await sessions.end(sessionToken(ctx) ?? '');
      await audit.note(request, { action: 'logout' });
      setSessionCookie(ctx, undefined, https);
      const location = session === undefined ? undefined : await signIn.leave(session.id);
      return { ok: true, ...(location === undefined ? {} : { location }) };
    },
    session: ({ session, actor }) => sessionView(session ?? notLoggedIn(), actor, adminRoutes()),
  };
}

/** Returns a session, whose it is, and what its actor may do. */
export function sessionView(
  { id, csrfToken, expiresAt }: Session,
  actor: Actor,
  pluginRoutes: ReturnType<InternalTools['adminRoutes']>,
): SessionView {
  const { kind, id: actorId, name, role, organisation, teams, member } = actor;
  return {
    session: id,
    csrfToken,
    expiresAt,
    actor: {
      kind,
      id: actorId,
      name,
      role,
      teams: teams.map((one) => ({ ...one })),
      ...(organisation === undefined ? {} : { organisation }),
      ...(member === undefined ? {} : { member }),
    },
    may: [
      ...Object.entries<RouteSpec>(routes)
        .filter(([, { needs }]) => needs.who !== 'open' && mayUse(actor, needs))
        .map(([operation]) => operation),
      ...pluginRoutes
        .filter(({ method }) => mayUse(actor, needsOfPlugin(method)))
        .map(({ method, path }) => `${method} ${path}`),
    ],
  };
}
