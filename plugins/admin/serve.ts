import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { GatewayError, type RouteContext } from 'sluice';
import { createClientAddress, toGatewayError, type InternalTools } from 'sluice/internal';
import type { z } from 'zod';
import { checkOrigin, createOutside, refuse, secure, sessionToken, setSessionCookie } from './http.ts';
import { readBody, readQuery } from './read.ts';
import type { RouteName, RouteSpec, routes } from './routes.ts';
import { noQuery } from './schemas/index.ts';
import { provesIntent, type Session, type Sessions } from './sessions.ts';

/** A request to the admin API that may be answered. */
export interface Asked<Query, Body> {
  readonly ctx: RouteContext;
  /** The `:id` of the path; empty where there is none. */
  readonly id: string;
  readonly query: Query;
  readonly body: Body;
  /** The client's address. */
  readonly ip: string;
  readonly https: boolean;
  /** Throws 401 on a route that is open to all. */
  readonly session: Session;
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
type AskedOf<Name extends RouteName> = Asked<OutputOf<Routes[Name], 'query'>, OutputOf<Routes[Name], 'body'>>;

/** What a route answers with: JSON, or a stream where its type is another. */
type AnswerOf<Name extends RouteName> = Routes[Name] extends { readonly type: string }
  ? Readable
  : DeepReadonly<z.output<Routes[Name]['answer']>>;

/** A function for each of these routes. */
export type Handlers<Name extends RouteName = RouteName> = {
  readonly [N in Name]: (asked: AskedOf<N>) => Promise<AnswerOf<N>> | AnswerOf<N>;
};

/** A route's function as the table is walked through. */
type AnyHandler = (asked: Asked<unknown, unknown>) => Promise<object> | object;

/** Makes the handlers of routes: session, intent, query and body are checked before a route's function runs. */
export function createServe({ settings, log }: Pick<InternalTools, 'settings' | 'log'>, sessions: Sessions) {
  const outside = createOutside(settings.trustedProxies);
  const addressOf = createClientAddress(settings.trustedProxies);

  async function answerTo(spec: RouteSpec, handler: AnyHandler, ctx: RouteContext): Promise<void> {
    const request = ctx.req;
    const from = outside(request);
    const { https } = from;
    const session = spec.open === true ? undefined : await sessionFor(ctx, https);
    if (spec.method !== 'GET') {
      checkOrigin(request, from);
      if (session !== undefined) checkIntent(request, session);
    }
    const query = readQuery(request, spec.query ?? noQuery);
    const body = spec.body === undefined ? undefined : await readBody(request, spec.body);
    const asked: Asked<unknown, unknown> = {
      ctx,
      id: ctx.params['id'] ?? '',
      query,
      body,
      ip: addressOf(request),
      https,
      get session(): Session {
        return session ?? notLoggedIn();
      },
    };
    const value = await handler(asked);
    ctx.status = spec.status ?? 200;
    if (spec.type !== undefined) ctx.type = spec.type;
    ctx.body = value;
  }

  async function sessionFor(ctx: RouteContext, https: boolean): Promise<Session> {
    const token = sessionToken(ctx);
    const found = token === undefined ? undefined : await sessions.find(token);
    if (found === undefined) {
      if (token !== undefined) setSessionCookie(ctx, undefined, https);
      return notLoggedIn();
    }
    if (found.renewed) setSessionCookie(ctx, token, https);
    return found.session;
  }

  const serve = (spec: RouteSpec, handler: AnyHandler) =>
    async function admin(ctx: RouteContext): Promise<void> {
      secure(ctx);
      try {
        await answerTo(spec, handler, ctx);
      } catch (error) {
        if (toGatewayError(error).code === 'client_closed_request') ctx.res.destroy();
        else refuse(ctx, error, log);
      }
    };

  /** Checks a request to another plugin's route for whoever runs the gateway, as one to a route of the table. */
  const check = async (ctx: RouteContext): Promise<Checked> => {
    const from = outside(ctx.req);
    const session = await sessionFor(ctx, from.https);
    if (ctx.method !== 'GET') {
      checkOrigin(ctx.req, from);
      checkIntent(ctx.req, session);
    }
    return { session, ip: addressOf(ctx.req) };
  };
  return { serve, check };
}

/** Who has sent a request that may pass. */
export interface Checked {
  readonly session: Session;
  readonly ip: string;
}

function checkIntent({ headers }: IncomingMessage, session: Session): void {
  const sent = headers['x-csrf-token'];
  if (provesIntent(session, typeof sent === 'string' ? sent : undefined)) return;
  throw new GatewayError(
    'forbidden',
    'The header x-csrf-token is missing or not that of your session: GET /api/admin/session tells it.',
  );
}

function notLoggedIn(): never {
  throw new GatewayError('login_required', 'You are not logged in, or your session has expired.', {
    headers: { 'www-authenticate': 'Session' },
  });
}
