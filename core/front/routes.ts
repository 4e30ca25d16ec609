/** Registers all HTTP routes: health, formats, model lists, plugins' endpoints, and 426 at the paths of WebSockets. */
import type { Router } from '@koa/router';
import type { Context } from 'koa';
import { GatewayError } from '../sdk/errors.ts';
import type { Codec, Format, Operation, Route } from '../sdk/format.ts';
import { callRoute, type RouteCall } from './call-route.ts';
import { listFormat } from './client-format.ts';
import { endpointRoute } from './endpoints.ts';
import type { Front } from './front.ts';
import { listRoutes } from './models.ts';
import { pluginRoute } from './plugin-route.ts';
import { readinessRoute } from './readiness.ts';
import { refuse } from './refusal.ts';
import { addRoute, createRouter } from './router.ts';
import { queryOf } from './wire.ts';
import { FixedRoutes } from './fixed-routes.ts';

/** All routes of the gateway. */
export interface Routes {
  readonly router: Router;
  /** Routes of calls without path parameters or a query: see {@link FixedRoutes}. */
  readonly fixed: FixedRoutes;
}

/** Builds the routes. `sockets`: the formats of WebSockets by their paths. */
export function createRoutes(front: Front, sockets: ReadonlyMap<string, Format>): Routes {
  const { gateway } = front;
  const router = createRouter();
  const fixed = new FixedRoutes();
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  router.get('/readyz', readinessRoute(front));
  addFormats(front, router, fixed);
  for (const endpoint of gateway.endpoints) addRoute(router, endpoint, endpointRoute(front, endpoint));
  for (const route of gateway.routes) addRoute(router, route, pluginRoute(front, route));
  for (const [path, format] of sockets) router.get(path, (ctx) => requireUpgrade(ctx, format, path));
  return { router, fixed };
}

function addFormats(front: Front, router: Router, fixed: FixedRoutes): void {
  const list = listRoutes(front);
  const listByHeaders = (one: boolean) => (ctx: Context) =>
    list(front.formatNamed(listFormat(ctx.headers, queryOf(ctx))), one)(ctx);
  router.get('/v1/models', listByHeaders(false));
  router.get('/v1/models/*model', listByHeaders(true));
  const all = front.gateway.formats.flatMap((format) => format.routes.map((route) => ({ format, route })));
  const chosen = all.filter(({ route }) => route.isFor !== undefined);
  // Headers choose among the routes of these paths. The router asks routes with a condition first.
  const shared = new Set(chosen.map(({ route }) => keyOf(route)));
  for (const { format, route } of new Set([...chosen, ...all])) {
    const { operation } = route;
    if (operation === 'list-models' || operation === 'get-model') {
      addRoute(router, route, list(format, operation === 'get-model'));
      continue;
    }
    const handler = callRoute(front, format, route, codecOf(format, route, operation));
    addRoute(router, route, isConditional(route) ? where(route, handler) : (ctx) => handler(ctx));
    if (route.query === undefined && !shared.has(keyOf(route))) fixed.add(route, handler);
  }
}

function keyOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

function codecOf(format: Format, { path }: Route, operation: Operation): Codec {
  const codec: Codec | undefined = format.codecs[operation];
  if (codec === undefined)
    throw new Error(`${format.name} routes ${path} to ${operation} but has no codec for it.`);
  return codec;
}

function isConditional({ query, isFor }: Route): boolean {
  return query !== undefined || isFor !== undefined;
}

/** Wraps the handler of a conditional route: requests without its query and headers go to the next route of the same path. */
function where({ query = {}, isFor }: Route, handler: RouteCall) {
  const wanted = Object.entries(query);
  return (ctx: Context, next: () => Promise<unknown>): unknown =>
    isFor?.(ctx.headers) !== false && wanted.every(([name, value]) => queryOf(ctx).get(name) === value)
      ? handler(ctx)
      : next();
}

/** Responds with 426 to a plain request to the path of a WebSocket. */
function requireUpgrade(ctx: Context, format: Format, path: string): void {
  refuse(
    ctx,
    format,
    new GatewayError('invalid_request', `GET ${path} is a WebSocket endpoint: send Upgrade: websocket.`, {
      status: 426,
      headers: { upgrade: 'websocket' },
    }),
  );
}
