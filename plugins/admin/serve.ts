import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from 'sluice';
import { createClientAddress, toGatewayError, type InternalTools } from 'sluice/internal';
import type { z } from 'zod';
import {
  answer,
  checkOrigin,
  createOutside,
  refuse,
  secure,
  sessionToken,
  setSessionCookie,
} from './http.ts';
import { readBody, readQuery } from './read.ts';
import type { RouteName, RouteSpec, routes } from './routes.ts';
import { noQuery } from './schemas.ts';
import { provesIntent, type Session, type Sessions } from './sessions.ts';

/** A request to the admin API that may be answered. */
export interface Asked<Query, Body> {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
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

/** What a route answers with; undefined where it writes its answer by itself. */
type AnswerOf<Name extends RouteName> = Routes[Name] extends { readonly type: string }
  ? undefined
  : DeepReadonly<z.output<Routes[Name]['answer']>>;

/** A function for each of these routes. */
export type Handlers<Name extends RouteName = RouteName> = {
  readonly [N in Name]: (asked: AskedOf<N>) => Promise<AnswerOf<N>> | AnswerOf<N>;
};

/** A route's function as the table is walked through. */
type AnyHandler = (asked: Asked<unknown, unknown>) => Promise<object | undefined> | object | undefined;

/** Makes the plain request handlers of routes: session, intent, query and body are checked before a route's function runs. */
export function createServe({ settings, log }: Pick<InternalTools, 'settings' | 'log'>, sessions: Sessions) {
  const outside = createOutside(settings.trustedProxies);
  const addressOf = createClientAddress(settings.trustedProxies);

  async function answerTo(
    spec: RouteSpec,
    handler: AnyHandler,
    request: IncomingMessage,
    response: ServerResponse,
    id: string,
  ): Promise<void> {
    const from = outside(request);
    const { https } = from;
    const session = spec.open === true ? undefined : await sessionFor(request, response, https);
    if (spec.method !== 'GET') {
      checkOrigin(request, from);
      if (session !== undefined) checkIntent(request, session);
    }
    const query = readQuery(request, spec.query ?? noQuery);
    const body = spec.body === undefined ? undefined : await readBody(request, spec.body);
    const asked: Asked<unknown, unknown> = {
      request,
      response,
      id,
      query,
      body,
      ip: addressOf(request),
      https,
      get session(): Session {
        return session ?? notLoggedIn();
      },
    };
    const value = await handler(asked);
    if (value !== undefined) answer(response, spec.status ?? 200, value);
  }

  async function sessionFor(
    request: IncomingMessage,
    response: ServerResponse,
    https: boolean,
  ): Promise<Session> {
    const token = sessionToken(request);
    const found = token === undefined ? undefined : await sessions.find(token);
    if (found === undefined) {
      if (token !== undefined) setSessionCookie(response, undefined, https);
      return notLoggedIn();
    }
    if (found.renewed) setSessionCookie(response, token, https);
    return found.session;
  }

  return (spec: RouteSpec, handler: AnyHandler) =>
    async function admin(
      request: IncomingMessage,
      response: ServerResponse,
      params: Readonly<Record<string, string>>,
    ): Promise<void> {
      response.on('error', () => {});
      secure(response);
      try {
        await answerTo(spec, handler, request, response, params['id'] ?? '');
      } catch (error) {
        const { code } = toGatewayError(error);
        if (code === 'client_closed_request') response.destroy();
        else refuse(request, response, error, log);
      }
    };
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
