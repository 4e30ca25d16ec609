/** Reads path, query, headers and route parameters of a Koa request, and makes request ids. */
import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import type { Wire } from '../sdk/call.ts';
import type { Route, RouteParams } from '../sdk/format.ts';

/** Random prefix of the process, followed by a counter: an id must be unique, but is no secret. */
const idPrefix = `req_${randomUUID().replaceAll('-', '').slice(0, 16)}`;

let ids = 0;

/** Returns a new `req_…`. */
export function requestId(): string {
  ids += 1;
  return idPrefix + ids.toString(36).padStart(8, '0');
}

/** Empty body. */
export const noBytes = Buffer.alloc(0);

/** Returns the wire of a request without its body. `path`: the whole URL of the request, where it is known to have no query. */
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

/** Returns the query. Does not parse the whole URL, because that fails for an invalid host. */
export function queryOf(ctx: Context): URLSearchParams {
  return new URLSearchParams(ctx.querystring);
}

/** Returns headers with one value each; repeated ones are joined by commas (RFC 9110, section 5.3). */
export function headersOf(ctx: Context): Readonly<Record<string, string | undefined>> {
  const { headers } = ctx.req;
  const flat: Record<string, string | undefined> = {};
  for (const name in headers) {
    const value = headers[name];
    flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

/** Returns the parameters of a call in path, query and headers. */
export function routeParams(ctx: Context, route: Route): RouteParams {
  return route.params?.(matchedParams(ctx), queryOf(ctx), headersOf(ctx)) ?? {};
}

/** Returns the decoded path parameters that the router matched; a wildcard's segments are joined by slashes. Empty for fixed routes. */
export function matchedParams(ctx: Context): Record<string, string> {
  const matched: Record<string, string> = {};
  for (const [name, value] of Object.entries((ctx.params ?? {}) as Record<string, string | string[]>)) {
    matched[name] = Array.isArray(value) ? value.join('/') : value;
  }
  return matched;
}

/** Returns the model in the path of a model list's endpoint. */
export function modelOf(ctx: Context): string {
  return (matchedParams(ctx).model ?? '').replace(/^models\//, '');
}
