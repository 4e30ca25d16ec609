import { GatewayError } from 'sluice';
import {
  definePlugin,
  openAdminPassword,
  openAdminTokens,
  tokenDays,
  type Call,
  type InternalTools,
} from 'sluice/internal';
import { z } from 'zod';
import { bearerOf, createTokenActorOf } from './access/by-token.ts';
import { createActorOf } from './access/identify.ts';
import { followUsers } from './access/follow-users.ts';
import { mayUse } from './access/judge.ts';
import { scopeOf } from './access/scope.ts';
import { sessionHandlers } from './access/session.ts';
import { signInHandlers } from './access/sign-in.ts';
import { userHandlers } from './access/users.ts';
import { inScope, usageToolsIn } from './access/scoped-usage.ts';
import { Audit } from './audit.ts';
import { channelHandlers } from './channels.ts';
import { refuse, secure, sessionToken } from './http.ts';
import { configHandlers } from './config/index.ts';
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
import { openSignIn } from './sign-in/index.ts';
import { signInOptions } from './sign-in/options.ts';
import { Sessions } from './sessions.ts';
import { ChannelSwitches } from './switches.ts';
import { LoginThrottle } from './throttle.ts';
import { tokenHandlers } from './tokens/index.ts';
import { usageHandlers } from './usage.ts';

/**
 * Serves the admin API under `/api/admin`: keys, usage, channels, models, running calls and an audit log of changes. It requires a sign-in
 * or a token. `/api/admin/openapi.json` describes it.
 */
export default definePlugin({
  name: 'admin',
  stage: 'observe',
  options: z.strictObject({
    /** Default lifetime of a new token of the admin API, in days. */
    tokenDays: z.int().min(1).max(tokenDays.longest).default(tokenDays.default),
    /** Sign-in through identity providers, by OpenID Connect. */
    signIn: signInOptions.prefault({}),
    /** Provisioning of users and teams by a directory, by SCIM 2.0. Default: off. */
    scim: scimOptions.optional(),
  }),
  async setup({ tokenDays: defaultDays, ...options }, tools: InternalTools) {
    const { settings, stores, users, catalog, log, notices, processes, rates, onClose } = tools;
    const password = openAdminPassword(stores);
    if (settings.adminPassword !== undefined) await password.set(settings.adminPassword);
    const sessions = new Sessions(stores, password, tools.users, settings.members);
    const audit = new Audit(stores, tools.apiKeys.owners);
    onClose(await followUsers(tools.users, log));
    const tokens = openAdminTokens(stores, (error) => log.error({ error }, error.message));
    const byToken = createTokenActorOf(tools, tokens);
    const actorOf = createActorOf(sessions, byToken);
    const throttle = new LoginThrottle(rates);
    const live = new LiveCalls(processes.peers);
    const switches = new ChannelSwitches({ stores, catalog, log, notices });
    await switches.follow();
    onClose(() => switches.stop());
    onClose(notices.on('draining', () => live.letGo()));
    onClose(() => live.close());

    const keys = keyHandlers(tools, audit);
    const signIn = await openSignIn({ options: options.signIn, sessions, audit, users }, tools);
    if (options.scim !== undefined)
      addScim({ options: options.scim, users, audit, byToken, publicUrl: options.signIn.publicUrl }, tools);

    const handlers: Handlers = {
      ...sessionHandlers({ tools, password, sessions, audit, throttle, signIn }),
      ...signInHandlers({ tools, sessions, audit, throttle }),
      ...userHandlers(tools, audit),
      signInWays: () => ({
        password: true,
        users: users.hasPasswords(),
        providers: signIn.providers,
      }),
      ...keys,
      ...keysBulkHandler(keys, log),
      ...ownerHandlers(tools, audit),
      ...inScope(['listUsage', 'findUsage', 'sumUsage', 'exportUsage', 'overview'], (scope) =>
        usageHandlers(usageToolsIn(tools, scope), audit, () => live.running(scope.keys)),
      ),
      ...channelHandlers(tools, switches, audit),
      ...processHandlers(tools, audit),
      ...tokenHandlers({ tokens, owners: tools.apiKeys.owners, defaultDays }, audit),
      ...configHandlers(tools, audit),
      live: liveHandler({ live, sessions, tokens, owners: tools.apiKeys.owners }),
      async listAudit({ query: { limit, after }, scope }) {
        return audit.page(limit, after, scope.keys?.organisation);
      },
    };
    const { serve, check } = createServe(tools, actorOf);
    addRoutes(tools, handlers, serve);
    tools.administer(async (ctx, { plugin, records }) => {
      const author = await check(ctx);
      if (ctx.method !== 'GET' && !records)
        await audit.note(author, { action: 'plugin-route', target: `${ctx.method} ${ctx.path}` });
      const { kind, id, name } = author.actor;
      return {
        actor: { kind, id, name },
        record: ({ action, ...change }) => audit.note(author, { action: `${plugin}.${action}`, ...change }),
      };
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

/** Services of the stream of running calls. */
interface LiveParts {
  readonly live: LiveCalls;
  readonly sessions: Sessions;
  readonly tokens: ReturnType<typeof openAdminTokens>;
  readonly owners: InternalTools['apiKeys']['owners'];
}

/** Streams running calls to the client, for as long as its session or token is valid. */
function liveHandler({ live, sessions, tokens, owners }: LiveParts): Handlers<'live'>['live'] {
  return ({ ctx, session, scope, actor }) => {
    const token = sessionToken(ctx) ?? '';
    const bearer = bearerOf(ctx.req.headers.authorization) ?? '';
    ctx.set('x-accel-buffering', 'no');
    // The visible calls are determined when the stream starts, so a change of the role ends the stream.
    const whose = JSON.stringify(scope.keys);
    const mayWatch = async (): Promise<boolean> => {
      if (session === undefined) return ((await tokens.find(bearer))?.expiresAt ?? 0) > Date.now();
      const found = await sessions.find(token, true);
      return found !== undefined && JSON.stringify(scopeOf(found.actor, owners).keys) === whose;
    };
    const { kind, id, organisation } = actor;
    return live.watch(scope.keys, mayWatch, {
      actor: kind === 'password' ? undefined : `${kind} ${id}`,
      organisation,
    });
  };
}

/** Adds all routes of the table, the document that describes them, and a 404 for everything else below `/api/admin`. */
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
