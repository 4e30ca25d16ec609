/** Builds the HTTP listener of a gateway (Koa, fixed routes, WebSocket upgrades), and drains or ends its calls at shutdown. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import Koa from 'koa';
import { config as rxjs } from 'rxjs';
import type { Next } from '../sdk/define.ts';
import { GatewayError } from '../sdk/errors.ts';
import { reportObserverErrors } from '../sdk/followed-reply.ts';
import type { Settings } from '../settings/index.ts';
import { createAliasResolver, resolveAliases } from './aliases.ts';
import { Front, type FrontParts } from './front.ts';
import type { Gateway } from './gateway.ts';
import { refuseLine, refuseUnknown, refuseUnreadable } from './refusal.ts';
import { continueWhenRead, headerProblem, requestLineProblem } from './request-line.ts';
import { createRoutes } from './routes.ts';
import { createSockets, type Sockets } from './sockets.ts';
import { requestId } from './wire.ts';

/** Handlers for the events of Node's HTTP server, and the shutdown of their calls. */
export interface App {
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void;
  /** As `listener`, for a client that waits for `100 Continue` before it sends its body. */
  readonly continueListener: (request: IncomingMessage, response: ServerResponse) => void;
  /** True for a request that goes to `upgrade`; every other is for the listener, whatever its headers say. */
  readonly wantsSocket: (request: IncomingMessage) => boolean;
  /** Opens a WebSocket. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Refuses what Node cannot parse as HTTP. */
  readonly clientError: (error: NodeJS.ErrnoException, socket: Duplex) => void;
  /** Makes `/readyz` answer 503 from now on, and connections close after their call. New connections and WebSockets are still served. */
  announce(): void;
  /**
   * Closes connections after their call from now on. `stop`: the gateway ends, and `/readyz` answers 503. `replaced`: another process takes
   * the new connections, and requests over the old ones are served.
   */
  drain(why: 'stop' | 'replaced'): void;
  /** Ends every open call with an error in its format. */
  endAll(): void;
}

/** Builds the handlers of a gateway. */
export function createApp(gateway: Gateway, parts: FrontParts): App {
  const front = new Front(gateway, parts);
  const { log, notices } = gateway;
  notices.on('closing', reportObserverErrors(front.replyOptions.endErrors));
  rxjs.onUnhandledError = (error) => log.error({ error }, 'an error occurred after its stream had ended');
  const sockets = createSockets(
    { ...gateway, handle: socketCalls(front), bodyBudget: parts.overload.bodyBudget },
    requestId,
    front.clientAddress,
  );
  startTicking(front, sockets);
  const listener = createListener(front, sockets);
  let isDraining = false;
  const closeAfterCalls = (): void => {
    if (front.draining) return;
    front.draining = true;
    for (const reply of front.replies.values()) reply.closeAfterwards();
  };
  return {
    listener,
    continueListener(request, response) {
      continueWhenRead(request, response);
      listener(request, response);
    },
    wantsSocket: (request) => request.httpVersionMajor === 1 && sockets.wants(request),
    upgrade: (request, socket, head) => sockets.upgrade(request, socket, head),
    clientError: (error, socket) => refuseUnreadable(socket, front, error),
    announce() {
      front.announced = true;
      closeAfterCalls();
    },
    drain(why) {
      closeAfterCalls();
      if (!isDraining) {
        isDraining = true;
        notices.emit('draining');
        sockets.settle();
      }
      if (why === 'replaced' || front.stopping) return;
      front.stopping = true;
      sockets.drain();
    },
    endAll() {
      const error = new GatewayError('server_is_overloaded', 'The gateway is shutting down.', {
        retryAfter: 1,
      });
      for (const reply of front.replies.values()) reply.fail(error);
      sockets.endAll(error);
    },
  };
}

/** Returns the listener for requests: fixed routes first, all others through Koa. */
function createListener(front: Front, sockets: Sockets): App['listener'] {
  const { router, fixed } = createRoutes(front, sockets.paths);
  const koa = new Koa();
  koa.silent = true;
  koa.on('error', (error: NodeJS.ErrnoException) => {
    // A client that hangs up is no failure of the gateway's.
    if (!clientErrors.has(error.code ?? '')) front.gateway.log.error({ error }, 'HTTP server error');
  });
  koa.use(resolveAliases(createAliasResolver(front.gateway.formats)));
  koa.use(router.routes());
  koa.use((ctx) => refuseUnknown(ctx, front));
  const koaListener = koa.callback();
  const limit = front.gateway.settings.limits.header;
  return function listener(request, response) {
    if (front.draining) response.setHeader('connection', 'close');
    const { url = '', method = '' } = request;
    const refusal = headerProblem(request, limit);
    if (refusal !== undefined) {
      refuseLine(request, response, front, refusal);
      return;
    }
    const handler = request.httpVersionMajor === 1 ? fixed.find(url, method) : undefined;
    if (handler !== undefined) {
      handler(koa.createContext(request, response), url);
      return;
    }
    const problem = requestLineProblem(request);
    if (problem === undefined) void koaListener(request, response);
    else refuseLine(request, response, front, problem);
  };
}

/** Returns the pipeline for calls over WebSockets, which count toward the limit of running calls and wait as other calls do. */
function socketCalls({ gateway, parts: { overload } }: Front): Next {
  return async (call) => {
    if (!overload.enter()) await overload.wait(call, () => {});
    call.onEnd(() => overload.leave());
    return gateway.handle(call);
  };
}

/** Calls `tick` of all responses and WebSockets periodically, for keep-alives and stalled clients, until the gateway closes. */
function startTicking({ gateway, replies }: Front, sockets: Sockets): void {
  const ticker = setInterval(() => {
    const now = performance.now();
    for (const reply of replies.values()) reply.tick(now);
    sockets.tick(now);
  }, tickOf(gateway.settings));
  ticker.unref();
  gateway.notices.on('closing', () => clearInterval(ticker));
}

/** Returns a third of the shortest timeout, between 10 and 1000 milliseconds. */
function tickOf({ timeouts, realtime }: Settings): number {
  const { keepAlive, stalled, socket } = timeouts;
  const shortest = Math.min(
    keepAlive,
    stalled,
    socket,
    realtime.ping,
    realtime.stalled,
    realtime.idle,
    realtime.lifetime,
  );
  return Math.max(10, Math.min(1000, shortest / 3));
}

/** Error codes of sockets whose client has disconnected. */
const clientErrors: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
  'ERR_STREAM_PREMATURE_CLOSE',
]);
