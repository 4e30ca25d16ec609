/** Handles the HTTP endpoints of the formats: makes the exchange of a call, and reads its JSON body or form. */
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { Exchange } from '../call/exchange.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { Codec, Format, ResolvedAlias, Route } from '../sdk/format.ts';
import { accept } from './accept.ts';
import { aliasOf, resolvedBody, resolvedForm } from './aliases.ts';
import { bodyReader, checkJsonType, readBytes } from './body.ts';
import { measure, understandJson, withoutMark } from './json-body.ts';
import { BudgetShare, type ByteBudget } from './byte-budget.ts';
import { isForm, readForm, type FormLimits } from './form.ts';
import type { Front } from './front.ts';
import { applySampling } from './sampling.ts';
import { headersOf, noBytes, requestId, routeParams, wireOf } from './wire.ts';

/** Handler of a route; `path` is the whole URL of the request, where that is known to have no query. */
export type RouteCall = (ctx: Context, path?: string) => void;

/** Returns the handler of a format's route. */
export function callRoute(front: Front, format: Format, route: Route, codec: Codec): RouteCall {
  return function routeCall(ctx, path) {
    const wire = wireOf(ctx, front.clientAddress(ctx.req), path);
    const exchange = new Exchange(requestId(), codec.operation, format, codec, wire);
    exchange.values.set(bodyReader, () => readCall(ctx, front, exchange, route));
    accept(ctx, front, exchange, front.gateway.handle);
  };
}

/** Reads and validates the request, between the identify and admit stages. Throws the errors of the client. */
function readCall(ctx: Context, front: Front, exchange: Exchange, route: Route): Promise<void> {
  const { gateway, parts } = front;
  const { limits, sampling } = gateway.settings;
  const { wire } = exchange;
  const alias = aliasOf(ctx);
  // A header that an alias has in its body is checked once the body is read.
  if (alias?.header === undefined) route.checkHeaders?.(headersOf(ctx));
  wire.params = routeParams(ctx, route);
  if (route.accepts !== undefined && takesForm(ctx.req, route.accepts)) {
    const file = limits[route.files ?? 'image'];
    return understandForm(ctx.req, exchange, { ...limits, file }, parts.overload.bodyBudget, alias);
  }
  if (route.untyped !== true || ctx.req.headers['content-type'] !== untypedJson) checkJsonType(ctx.req);
  const held = new BudgetShare(parts.overload.bodyBudget);
  exchange.hold(held);
  const resolved = (bytes: Buffer): Buffer => {
    if (alias === undefined) return bytes;
    measure(bytes, limits);
    const body = resolvedBody(bytes, alias, wire);
    if (alias.header !== undefined) route.checkHeaders?.(headersOf(ctx));
    return body;
  };
  return readBytes(ctx.req, limits.body, held).then((read) => {
    understandJson(exchange, resolved(withoutMark(read)), { limits, held });
    applySampling(exchange, sampling, { limits, held });
  });
}

/** Content type that some clients send with JSON, for routes that accept it. */
const untypedJson = 'application/octet-stream';

/** Returns true for a form where the route accepts forms. Throws 415 for any other body where the route accepts forms only. */
function takesForm(request: IncomingMessage, accepts: NonNullable<Route['accepts']>): boolean {
  if (accepts.includes('form') && isForm(request)) return true;
  if (accepts.includes('json')) return false;
  throw new GatewayError('unsupported_media_type', 'Content-Type must be multipart/form-data.');
}

/** Reads a form as the body of a call, and closes its files when the call ends. */
async function understandForm(
  request: IncomingMessage,
  exchange: Exchange,
  limits: FormLimits,
  budget: ByteBudget,
  alias: ResolvedAlias | undefined,
): Promise<void> {
  const read = await readForm(request, limits, budget);
  exchange.onEnd(read.close);
  const { form, fields } = alias === undefined ? read : resolvedForm(read, alias);
  const { wire, codec } = exchange;
  wire.params = { ...wire.params, form };
  exchange.understand(noBytes, fields);
  exchange.decoded = codec.validate(fields, wire.params);
}
