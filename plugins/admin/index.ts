import { definePlugin, GatewayError } from 'sluice';
import { z } from 'zod';
import {
  openAdminPassword,
  openAdminTokens,
  tokenDays,
  type AdminPassword,
  type Call,
  type InternalTools,
  type Log,
} from 'sluice/internal';
import { passwordActor } from './access/actor.ts';
import { bearerOf, createTokenActorOf } from './access/by-token.ts';
import { createActorOf, notLoggedIn } from './access/identify.ts';
import { followUsers } from './access/follow-users.ts';
import { mayUse } from './access/judge.ts';
import { Audit } from './audit.ts';
import { channelHandlers } from './channels.ts';
import { refuse, secure, sessionToken, setSessionCookie } from './http.ts';
import { keysBulkHandler } from './keys-bulk.ts';
import { keyHandlers } from './keys.ts';
import { LiveCalls } from './live.ts';
import { ownerHandlers } from './owners.ts';
import { openapiDocument } from './openapi.ts';
import { processHandlers } from './processes.ts';
import { routes, type RouteName } from './routes.ts';
import { createServe, type Handlers } from './serve.ts';
import { addScim } from './scim/index.ts';
import { scimOptions } from './scim/options.ts';
import { openSignIn, type SignIn } from './sign-in/index.ts';
import { signInOptions } from './sign-in/options.ts';
import { Sessions, type Session } from './sessions.ts';
import { ChannelSwitches } from './switches.ts';
import { LoginThrottle } from './throttle.ts';
import { tokenHandlers } from './tokens/index.ts';
import { usageHandlers } from './usage.ts';

/**
 * The operator finds the admin API under `/api/admin`: keys, usage, channels, models, running calls and an audit of changes, behind the
 * admin password. `/api/admin/openapi.json` describes it. Callers of models notice nothing.
 */
export default definePlugin({
  name: 'admin',
  stage: 'observe',
  options: z.strictObject({
    /** Number of days for which a new token of the admin API works unless whoever makes it says otherwise. At most 365. */
    tokenDays: z.int().min(1).max(tokenDays.longest).default(tokenDays.default),
    /** Signing in at providers of identities, by OpenID Connect. */
    signIn: signInOptions.prefault({}),
    /** Provisioning of users and teams by a directory, by SCIM 2.0. Absent: off. */
    scim: scimOptions.optional(),
  }),
  async setup({ tokenDays: defaultDays, ...options }, tools: InternalTools) {
    const { settings, stores, users, catalog, log, notices, processes, rates, onClose } = tools;
    const password = openAdminPassword(stores);
    if (settings.adminPassword !== undefined) await password.set(settings.adminPassword);
    const sessions = new Sessions(stores, password, tools.users);
    const audit = new Audit(stores);
    onClose(await followUsers(tools.users, log));
    const tokens = openAdminTokens(stores, (error) => log.error({ error }, error.message));
    const byToken = createTokenActorOf(tools, tokens);
    const actorOf = createActorOf(sessions, byToken);
    const live = new LiveCalls(processes.peers);
    const switches = new ChannelSwitches(stores, catalog, log);
    await switches.follow();
    onClose(() => switches.stop());
    onClose(notices.on('draining', () => live.letGo()));
    onClose(() => live.close());

    const keys = keyHandlers(tools, audit);
    const signIn = await openSignIn({ options: options.signIn, sessions, audit, users }, tools);
    if (options.scim !== undefined)
      addScim({ options: options.scim, users, audit, byToken, publicUrl: options.signIn.publicUrl }, tools);

    const handlers: Handlers = {
      ...sessionHandlers(password, sessions, audit, log, new LoginThrottle(rates), signIn),
      signInWays: () => ({
        password: true,
        users: users.list().some(({ hasPassword }) => hasPassword),
        providers: signIn.providers,
      }),
      ...keys,
      ...keysBulkHandler(keys, log),
      ...ownerHandlers(tools, audit),
      ...usageHandlers(tools, audit, () => live.running()),
      ...channelHandlers(tools, switches, audit),
      ...processHandlers(tools, audit),
      ...tokenHandlers({ tokens, owners: tools.apiKeys.owners, defaultDays }, audit),
      live({ ctx, session }) {
        const token = sessionToken(ctx) ?? '';
        const bearer = bearerOf(ctx.req.headers.authorization) ?? '';
        ctx.set('x-accel-buffering', 'no');
        return live.watch(async () =>
          session === undefined
            ? ((await tokens.find(bearer))?.expiresAt ?? 0) > Date.now()
            : (await sessions.find(token, true)) !== undefined,
        );
      },
      async listAudit({ query: { limit, after } }) {
        return audit.page(limit, after);
      },
    };
    const { serve, check } = createServe(tools, actorOf);
    addRoutes(tools, handlers, serve);
    tools.administer(async (ctx) => {
      const author = await check(ctx);
      if (ctx.method === 'GET') return;
      await audit.note(author, { action: 'plugin-route', target: `${ctx.method} ${ctx.path}` });
    });
    tools.operator(async (ctx) => {
      const token = sessionToken(ctx);
      const found = token === undefined ? undefined : await sessions.find(token, true);
      return found !== undefined && mayUse(found.actor, { group: 'processes', act: 'read', who: 'gateway' });
    });

    return function admin(call: Call, next) {
      return live.follow(call, next);
    };
  },
});

function sessionHandlers(
  password: AdminPassword,
  sessions: Sessions,
  audit: Audit,
  log: Log,
  throttle: LoginThrottle,
  signIn: SignIn,
): Handlers<'login' | 'logout' | 'session'> {
  return {
    async login({ ctx, body, ip, https }) {
      if (!(await throttle.check(ip, () => password.check(body.password)))) {
        log.warn({ ip }, 'a login with a wrong admin password was refused');
        throw new GatewayError('wrong_password', 'This is not the admin password.', { param: 'password' });
      }
      const { token, session } = await sessions.start();
      await audit.note({ actor: passwordActor, ip, session }, { action: 'login' });
      setSessionCookie(ctx, token, https);
      return told(session);
    },
    async logout(asked) {
      const { ctx, https, session } = asked;
      await sessions.end(sessionToken(ctx) ?? '');
      await audit.note(asked, { action: 'logout' });
      setSessionCookie(ctx, undefined, https);
      const location = session === undefined ? undefined : await signIn.leave(session.id);
      return { ok: true, ...(location === undefined ? {} : { location }) };
    },
    session: ({ session }) => told(session ?? notLoggedIn()),
  };
}

function told({ id, csrfToken, expiresAt }: Session) {
  return { session: id, csrfToken, expiresAt };
}

/** Every route of the table, the document that describes them, and an answer of our own for everything else below `/api/admin`. */
function addRoutes(
  { route, log }: Pick<InternalTools, 'route' | 'log'>,
  handlers: Handlers,
  serve: ReturnType<typeof createServe>['serve'],
): void {
  for (const name of Object.keys(routes) as RouteName[]) {
    const spec = routes[name];
    // Each function fits its own route: the table as a whole cannot say so.
    route(spec.method, spec.path, serve(name, spec, handlers[name] as Parameters<typeof serve>[2]));
  }
  let document: object | undefined;
  route('GET', '/api/admin/openapi.json', (ctx) => {
    secure(ctx);
    ctx.body = document ??= openapiDocument();
  });
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const) {
    route(method, '/api/admin{/*rest}', (ctx) => {
      secure(ctx);
      const path = ctx.path.slice(0, 200);
      refuse(ctx, new GatewayError('unknown_url', `There is nothing at ${method} ${path}.`), log);
    });
  }
}
