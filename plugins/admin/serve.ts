/** Runs the handlers of admin routes: authenticates the sender, checks access, CSRF token, query and body, and writes the response or the error. */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { GatewayError, toGatewayError, type RouteContext } from 'sluice';
import { type InternalTools } from 'sluice/internal';
import type { z } from 'zod';
import type { Actor } from './access/actor.ts';
import { notLoggedIn, type ActorOf, type Identified } from './access/identify.ts';
import { checkAccess } from './access/judge.ts';
import { needsOfPlugin, type RouteGroup } from './access/needs.ts';
import { scopeOf, type Scope } from './access/scope.ts';
import { setEtag } from './access/version.ts';
import type { Author } from './audit.ts';
import { IdempotentCreates } from './idempotent.ts';
import { JsonBytes } from './json-bytes.ts';
import { checkOrigin, createOutside, refuse, secure, type Outside } from './http.ts';
import { readBody, readQuery } from './read.ts';
import type { RouteName, RouteSpec, routes } from './routes.ts';
import { noQuery } from './schemas/index.ts';
import { provesIntent, type Session } from './sessions.ts';

/** A request to the admin API that may be answered. */
export interface AdminRequest<Query, Body> {
  readonly ctx: RouteContext;
  /** The `:id` of the path; empty if the path has none. */
  readonly id: string;
  readonly query: Query;
  readonly body: Body;
  /** The client's address. */
  readonly ip: string;
  readonly https: boolean;
  /** The sender. Throws 401 on a route that is open to all. */
  readonly actor: Actor;
  /** The part of the gateway that is the sender's. Throws 401 on a route that is open to all. */
  readonly scope: Scope;
  /** Absent where a token of the admin API proves who asks, and on a route that is open to all. */
  readonly session: Session | undefined;
}

type DeepReadonly<T> = T extends (infer Item)[]
  ? T extends [unknown, ...unknown[]]
    ? Readonly<T>
    : readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Member in keyof T]: DeepReadonly<T[Member]> }
    : T;

type Routes = typeof routes;
type OutputOf<Spec, Member extends string> = Spec extends {
  readonly [M in Member]: infer Schema extends z.ZodType;
}
  ? z.output<Schema>
  : unknown;
type RequestOf<Name extends RouteName> = AdminRequest<
  OutputOf<Routes[Name], 'query'>,
  OutputOf<Routes[Name], 'body'>
>;

/** Response of a route: JSON, as bytes where it is large, or a stream of another type. */
type AnswerOf<Name extends RouteName> = Routes[Name] extends { readonly type: string }
  ? Readable
  : DeepReadonly<z.output<Routes[Name]['answer']>> | (Name extends 'sumUsage' ? JsonBytes : never);

/** A function for each of these routes. */
export type Handlers<Name extends RouteName = RouteName> = {
  readonly [N in Name]: (request: RequestOf<N>) => Promise<AnswerOf<N>> | AnswerOf<N>;
};

/** A route's function as the table is walked through. */
type AnyHandler = (request: AdminRequest<unknown, unknown>) => Promise<object> | object;

/**
 * Groups of routes that look owners up, which another worker or gateway may have made or changed a moment ago. They read
 * owners anew first, so that an actor whose change was refused for a newer one sees that one.
 */
const aboutOwners: ReadonlySet<RouteGroup> = new Set<RouteGroup>(['owners', 'keys', 'users', 'tokens']);

/** Builds the route handlers. They check actor, intent, access, query and body before they call a route's function. */
export function createServe(
  {
    settings,
    log,
    apiKeys,
    ...tools
  }: Pick<
    InternalTools,
    'settings' | 'log' | 'apiKeys' | 'stores' | 'upkeep' | 'openSealer' | 'clientAddress'
  >,
  actorOf: ActorOf,
) {
  const creates = new IdempotentCreates(tools);
  const outside = createOutside(settings.trustedProxies);
  const { clientAddress } = tools;

  async function answerTo(
    name: RouteName,
    spec: RouteSpec,
    handler: AnyHandler,
    ctx: RouteContext,
  ): Promise<void> {
    const request = ctx.req;
    const from = outside(request);
    const { https } = from;
    const sender = spec.needs.who === 'open' ? undefined : await actorOf(ctx, https);
    if (spec.method !== 'GET') checkChange(ctx, from, sender);
    if (sender !== undefined) checkAccess(sender.actor, spec.needs);
    if (aboutOwners.has(spec.needs.group)) await apiKeys.owners.refresh();
    const query = readQuery(request, spec.query ?? noQuery);
    const body = spec.body === undefined ? undefined : await readBody(request, spec.body);
    const adminRequest: AdminRequest<unknown, unknown> = {
      ctx,
      id: ctx.params['id'] ?? '',
      query,
      body,
      ip: clientAddress(request).ip,
      https,
      session: sender?.session,
      get actor(): Actor {
        return sender?.actor ?? notLoggedIn();
      },
      get scope(): Scope {
        return scopeOf(sender?.actor ?? notLoggedIn(), apiKeys.owners);
      },
    };
    const value = await valueOf(creates, name, spec, handler, adminRequest);
    if (spec.versioned !== undefined) setEtag(ctx, value);
    ctx.status = spec.status ?? 200;
    if (spec.type !== undefined) ctx.type = spec.type;
    if (value instanceof JsonBytes) ctx.type = 'json';
    ctx.body = value instanceof JsonBytes ? value.bytes : value;
  }

  const serve = (name: RouteName, spec: RouteSpec, handler: AnyHandler) =>
    async function admin(ctx: RouteContext): Promise<void> {
      secure(ctx);
      try {
        await answerTo(name, spec, handler, ctx);
      } catch (error) {
        if (toGatewayError(error).code === 'client_closed_request') ctx.res.destroy();
        else refuse(ctx, error, log);
      }
    };

  /** Checks a request to another plugin's route as one to a route of the table. */
  const check = async (ctx: RouteContext): Promise<Author> => {
    const from = outside(ctx.req);
    const sender = await actorOf(ctx, from.https);
    const { actor, session } = sender;
    if (ctx.method !== 'GET') checkChange(ctx, from, sender);
    checkAccess(actor, needsOfPlugin(ctx.method));
    return { actor, session, ip: clientAddress(ctx.req).ip };
  };
  return { serve, check };
}

/** Runs a route's function; a creation that is repeated with its `idempotency-key` only once. */
async function valueOf(
  creates: IdempotentCreates,
  name: RouteName,
  spec: RouteSpec,
  handler: AnyHandler,
  request: AdminRequest<unknown, unknown>,
): Promise<object> {
  const key = spec.creates === true ? request.ctx.req.headers['idempotency-key'] : undefined;
  if (typeof key !== 'string') return handler(request);
  const { actor, body } = request;
  const { value, isRepeated } = await creates.run({ actor, operation: name, key, body }, () =>
    handler(request),
  );
  if (isRepeated) request.ctx.set('idempotent-replayed', 'true');
  return value;
}

/**
 * Throws 403 for a change that another origin's page asks for, or that does not carry the CSRF token of its session. No page sends a token of
 * the admin API by itself, so that a request with one needs neither.
 */
function checkChange({ req }: RouteContext, from: Outside, sender: Identified | undefined): void {
  if (sender !== undefined && sender.session === undefined) return;
  checkOrigin(req, from);
  if (sender?.session !== undefined) checkIntent(req, sender.session);
}

function checkIntent({ headers }: IncomingMessage, session: Session): void {
  const sent = headers['x-csrf-token'];
  if (provesIntent(session, typeof sent === 'string' ? sent : undefined)) return;
  throw new GatewayError(
    'forbidden',
    'The header x-csrf-token is missing or does not match your session. Get it from GET /api/admin/session.',
  );
}
