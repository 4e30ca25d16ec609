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
import { createRouter } from './router.ts';
import { queryOf } from './wire.ts';
import { FixedRoutes } from './fixed-routes.ts';

/** Every path that the gateway answers. */
export interface Routes {
  readonly router: Router;
  /** The route of a call, by the whole of its URL and its method: see {@link FixedRoutes}. */
  readonly fixed: FixedRoutes;
}

/** The routes of health, of the formats and their sockets, and of plugins. */
export function createRoutes(front: Front, sockets: ReadonlyMap<string, Format>): Routes {
  const { gateway } = front;
  const router = createRouter();
  const fixed = new FixedRoutes();
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  router.get('/readyz', readinessRoute(front));
  addFormats(front, router, fixed);
  for (const endpoint of gateway.endpoints)
    router.register(endpoint.path, [endpoint.method], endpointRoute(front, endpoint));
  for (const route of gateway.routes) router.register(route.path, [route.method], pluginRoute(front, route));
  for (const [path, format] of sockets) router.get(path, (ctx) => askForUpgrade(ctx, format, path));
  return { router, fixed };
}

function addFormats(front: Front, router: Router, fixed: FixedRoutes): void {
  const list = listRoutes(front);
  const listByHeaders = (one: boolean) => (ctx: Context) =>
    list(front.formatNamed(listFormat(ctx.headers, queryOf(ctx))), one)(ctx);
  router.get('/v1/models', listByHeaders(false));
  router.get('/v1/models/*model', listByHeaders(true));
  for (const format of front.gateway.formats) {
    for (const route of format.routes) {
      const { operation, method, path, query } = route;
      if (operation === 'list-models' || operation === 'get-model') {
        router.register(path, [method], list(format, operation === 'get-model'));
        continue;
      }
      const handler = callRoute(front, format, route, codecOf(format, route, operation));
      if (query === undefined) {
        router.register(path, [method], (ctx: Context) => handler(ctx));
        fixed.add(route, handler);
      } else router.register(path, [method], whereQuery(query, handler));
    }
  }
}

function codecOf(format: Format, { path }: Route, operation: Operation): Codec {
  const codec: Codec | undefined = format.codecs[operation];
  if (codec === undefined)
    throw new Error(`${format.name} routes ${path} to ${operation} but has no codec for it.`);
  return codec;
}

/** The route for requests whose query says these things; others may fit another route of the same path. */
function whereQuery(query: NonNullable<Route['query']>, handler: RouteCall) {
  const wanted = Object.entries(query);
  return (ctx: Context, next: () => Promise<unknown>): unknown =>
    wanted.every(([name, value]) => queryOf(ctx).get(name) === value) ? handler(ctx) : next();
}

/** 426 for a plain request to the path of a WebSocket. */
function askForUpgrade(ctx: Context, format: Format, path: string): void {
  refuse(
    ctx,
    format,
    new GatewayError(
      'invalid_request',
      `GET ${path} opens a WebSocket: ask for it with Upgrade: websocket.`,
      {
        status: 426,
        headers: { upgrade: 'websocket' },
      },
    ),
  );
}
