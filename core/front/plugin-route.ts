import type { IncomingMessage } from 'node:http';
import { Stream } from 'node:stream';
import type { Context } from 'koa';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import { errorFormat } from './client-format.ts';
import type { Front } from './front.ts';
import type { PluginRoute } from './gateway.ts';
import { readUntil } from '../state/waiting-reader.ts';
import { linger, refuse } from './refusal.ts';
import { matchedParams } from './wire.ts';

/** Returns the handler of a plugin's own route: Koa writes what it leaves in its context, and what it throws is a refusal, or a 500. */
export function pluginRoute(front: Front, { plugin, handler }: PluginRoute): (ctx: Context) => Promise<void> {
  const { log } = front.gateway;
  return async function routePlugin(ctx) {
    ctx.params = matchedParams(ctx);
    // The plugin learns in another way that the client has left.
    ctx.res.on('error', () => {});
    const context = ctx as Context & { params: Record<string, string> };
    try {
      await (ctx.method === 'GET' ? readUntil(leaving(ctx), () => handler(context)) : handler(context));
    } catch (thrown) {
      const error = errorOf(thrown);
      if (error.code === 'internal_error')
        log.error({ plugin, error: error.cause ?? error }, 'a route of a plugin failed');
      if (ctx.headerSent) {
        ctx.res.destroy();
        return;
      }
      ctx.respond = true;
      refuse(ctx, front.formatNamed(errorFormat(ctx.url, ctx.headers)), error);
    }
    if (ctx.status >= 400 && sendsOn(ctx.req) && !(ctx.body instanceof Stream)) {
      ctx.set('connection', 'close');
      linger(ctx.req);
    }
  };
}

/** Returns a signal that is aborted when the client leaves before it has the whole response. */
function leaving({ res }: Context): AbortSignal {
  const controller = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished)
      controller.abort(new GatewayError('client_closed_request', 'The client has left.'));
  });
  return controller.signal;
}

/** Converts a thrown value to the error for the client. Keeps the message of an error of `ctx.throw`, unless it is a server error. */
function errorOf(thrown: unknown): GatewayError {
  if (!(thrown instanceof Error) || !('expose' in thrown) || thrown.expose !== true)
    return toGatewayError(thrown);
  const status = 'status' in thrown && typeof thrown.status === 'number' ? thrown.status : 400;
  return new GatewayError('invalid_request', thrown.message, { status });
}

/** Returns true while the client still sends a body that is not read completely. */
function sendsOn(request: IncomingMessage): boolean {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return !request.complete && (coding !== undefined || (length !== undefined && length !== '0'));
}
