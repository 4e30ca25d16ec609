import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import type { Wire } from '../sdk/call.ts';
import type { Route, RouteParams } from '../sdk/format.ts';

/** Random once for the process, counted from there: an id must be unique, it is no secret. */
const idPrefix = `req_${randomUUID().replaceAll('-', '').slice(0, 16)}`;

let ids = 0;

/** A new `req_…`. */
export function requestId(): string {
  ids += 1;
  return idPrefix + ids.toString(36).padStart(8, '0');
}

/** The bytes of what has none. */
export const noBytes = Buffer.alloc(0);

/** A request as it came in. `path`: the whole of the request's URL, where it is known to be a path alone. */
export function wireOf(ctx: Context, ip: string, path?: string): Wire {
  return {
    method: ctx.method,
    path: path ?? ctx.path,
    query: path === undefined ? queryOf(ctx) : new URLSearchParams(),
    headers: ctx.req.headers,
    params: {},
    ip,
    bytes: noBytes,
    body: undefined,
  };
}

/** The query alone: a whole URL would need a host that makes sense, and strangers send any. */
export function queryOf(ctx: Context): URLSearchParams {
  return new URLSearchParams(ctx.querystring);
}

/** Headers with one value each; a repeated one is joined as HTTP says. */
export function headersOf(ctx: Context): Readonly<Record<string, string | undefined>> {
  const { headers } = ctx.req;
  const flat: Record<string, string | undefined> = {};
  for (const name in headers) {
    const value = headers[name];
    flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

/** What a path, its query and its headers say besides the body. */
export function routeParams(ctx: Context, route: Route): RouteParams {
  return route.params?.(matchedParams(ctx), queryOf(ctx), headersOf(ctx)) ?? {};
}

/** What the router matched, nothing where it was passed by: wildcards joined by slashes, decoded. */
export function matchedParams(ctx: Context): Record<string, string> {
  const matched: Record<string, string> = {};
  for (const [name, value] of Object.entries((ctx.params ?? {}) as Record<string, string | string[]>)) {
    matched[name] = Array.isArray(value) ? value.join('/') : value;
  }
  return matched;
}

/** The model that the path of a list names. */
export function modelOf(ctx: Context): string {
  return (matchedParams(ctx).model ?? '').replace(/^models\//, '');
}
