import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import Koa, { type Context } from 'koa';
import { Router } from '@koa/router';
import { EMPTY, lastValueFrom, config as rxjs } from 'rxjs';
import { Exchange, firstView, type Wire } from '../call/call.ts';
import type { Channel } from '../sdk/channel.ts';
import type { Endpoint, Next } from '../sdk/define.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { Codec, Format, Operation, Route, RouteParams } from '../sdk/format.ts';
import type { Gateway } from '../gateway.ts';
import { InFlight } from '../call/in-flight.ts';
import { channelStanding, type Health } from '../routing/health/index.ts';
import type { Stores } from '../state/stores.ts';
import type { Surroundings } from '../config/surroundings.ts';
import {
  bodyReader,
  checkJsonType,
  BudgetShare,
  readBytes,
  parseJsonBody,
  understandJson,
  withoutMark,
  type ByteBudget,
} from './body.ts';
import { createClientAddress } from './client-address.ts';
import { endpointCodec } from './endpoints.ts';
import { isForm, readForm, type FormLimits } from './form.ts';
import { writeHead } from './head.ts';
import { listFormat, listingCodec, listModels } from './models.ts';
import { Reply } from './reply.ts';
import { continueWhenRead, requestLineProblem } from './request-line.ts';
import { createSockets } from './sockets.ts';
import { callerOf, wireOf as socketWire } from './upgrade.ts';

/** The gateway as Node's HTTP server wants it. */
export interface App {
  readonly listener: (request: IncomingMessage, response: ServerResponse) => void;
  /** As `listener`, for a client that waits for a word before it sends its body. */
  readonly continueListener: (request: IncomingMessage, response: ServerResponse) => void;
  /** True for a request that goes to `upgrade`; every other is for the listener, whatever its headers say. */
  readonly wantsSocket: (request: IncomingMessage) => boolean;
  /** Opens a WebSocket. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Answers what is not even HTTP. */
  readonly clientError: (error: NodeJS.ErrnoException, socket: Duplex) => void;
  /**
   * Closes connections after their call from now on. `stop`: nobody follows, and it says `not ready`. `replaced`: another process takes
   * the new connections, and whatever comes over the old ones is served.
   */
  drain(why: 'stop' | 'replaced'): void;
  /** Ends every open call with an error in its format. */
  endAll(): void;
}

/** Builds the Koa application: the formats' routes, the model lists, health, and the plugins' own routes. */
export function createApp(
  gateway: Gateway,
  { stores, rates, health, overload }: Pick<Surroundings, 'stores' | 'rates' | 'health' | 'overload'>,
): App {
  const { settings, log } = gateway;
  const { timeouts, realtime } = settings;
  const replies = new InFlight<Reply>();
  const clientAddress = createClientAddress(settings.trustedProxies);
  /** Calls that come over sockets. */
  const handleSocketCall: Next = async (call) => {
    if (!overload.enter()) await overload.wait(call, () => {});
    call.onEnd(() => overload.leave());
    return gateway.handle(call);
  };
  const sockets = createSockets(
    { ...gateway, handle: handleSocketCall, bodyBudget: overload.bodyBudget },
    requestId,
    clientAddress,
  );
  let draining = false;
  let stopping = false;

  rxjs.onUnhandledError = (error) => log.error({ error }, 'an error came after its stream had ended');

  const ticker = setInterval(
    () => {
      const now = performance.now();
      for (const reply of replies.values()) reply.tick(now);
      sockets.tick(now);
    },
    Math.max(
      10,
      Math.min(
        1000,
        timeouts.keepAlive / 3,
        timeouts.stalled / 3,
        timeouts.socket / 3,
        realtime.ping / 3,
        realtime.stalled / 3,
        realtime.idle / 3,
        realtime.lifetime / 3,
      ),
    ),
  );
  ticker.unref();
  gateway.notices.on('closing', () => clearInterval(ticker));

  const formatNamed = (name: string): Format => {
    const found = gateway.formats.find((format) => format.name === name);
    if (found === undefined) throw new Error(`There is no format ${name}.`);
    return found;
  };
  const handleList = gateway.around(listModels(gateway.catalog));

  /** One call: from the request to the subscription that writes its reply. */
  const run = (ctx: Context, exchange: Exchange, pipeline: Next): void => {
    ctx.respond = false;
    const { res } = ctx;
    let entered = overload.enter();
    const reply = new Reply(exchange, res, replyOptions, () => {
      replies.remove(place);
      if (entered) overload.leave();
      if (!ctx.req.complete) linger(ctx.req);
    });
    const place = replies.add(reply);
    const call = firstView(exchange);
    const granted = (): void => {
      entered = true;
    };
    // Without `await`: it would keep a frame and two more promises for each call until its provider answers.
    const answered = entered ? pipeline(call) : overload.wait(call, granted).then(() => pipeline(call));
    answered.then(
      (events) => {
        try {
          reply.send(events);
        } catch (error) {
          reply.fail(error);
        }
      },
      (error: unknown) => reply.fail(error),
    );
  };
  const replyOptions = { log, keepAlive: timeouts.keepAlive, stalled: timeouts.stalled };

  const hold = (exchange: Exchange): BudgetShare => {
    const held = new BudgetShare(overload.bodyBudget);
    exchange.hold(held);
    return held;
  };

  /** False for a request that is translated wherever it goes, as far as its model tells. */
  const mayPass = ({ model, operation, format }: Exchange): boolean => {
    const candidates = gateway.catalog.candidates(model, operation);
    return (
      candidates.length === 0 ||
      candidates.some(({ channel, targets }) =>
        targets.some(({ traits }) => (traits.formats ?? channel.speaks.chat)?.includes(format.name) === true),
      )
    );
  };

  const operate =
    (format: Format, route: Route, codec: Codec) =>
    (ctx: Context, path?: string): void => {
      const wire = wireOf(ctx, clientAddress(ctx.req), path);
      const exchange = new Exchange(requestId(), codec.operation, format, codec, wire);
      exchange.values.set(bodyReader, () => {
        route.checkHeaders?.(headersOf(ctx));
        wire.params = routeParams(ctx, route);
        if (route.accepts !== undefined && takesForm(ctx.req, route.accepts)) {
          const file = settings.limits[route.files ?? 'image'];
          return understandForm(ctx.req, exchange, { ...settings.limits, file }, overload.bodyBudget);
        }
        checkJsonType(ctx.req);
        const held = hold(exchange);
        return readBytes(ctx.req, settings.limits.body, held).then((read) => {
          understandJson(exchange, withoutMark(read), { limits: settings.limits, held, mayPass });
          if (settings.sampling === 'exclusive') codec.checkSampling?.(wire.body ?? {});
        });
      });
      return run(ctx, exchange, gateway.handle);
    };

  const list = (format: Format, one: boolean) => (ctx: Context) => {
    const wanted = one ? modelOf(ctx) : undefined;
    const wire = wireOf(ctx, clientAddress(ctx.req));
    const codec = listingCodec(format, wanted, wire.query);
    return run(ctx, new Exchange(requestId(), 'list-models', format, codec, wire), handleList);
  };
  const listByHeaders = (one: boolean) => (ctx: Context) =>
    list(formatNamed(listFormat(ctx.headers, queryOf(ctx))), one)(ctx);

  const answer = (endpoint: Endpoint) => {
    const format = formatNamed(endpoint.format);
    const codec = endpointCodec(format);
    return (ctx: Context): void => {
      const wire = wireOf(ctx, clientAddress(ctx.req));
      const exchange = new Exchange(requestId(), 'state', format, codec, wire);
      wire.body = {};
      if (endpoint.streams?.(wire.query) === true) {
        exchange.stream = true;
        exchange.framing = 'sse';
      }
      exchange.values.set(bodyReader, async () => {
        const bytes = withoutMark(await readBytes(ctx.req, settings.limits.body, hold(exchange)));
        if (bytes.length === 0) return;
        checkJsonType(ctx.req);
        wire.bytes = bytes;
        wire.body = parseJsonBody(bytes, settings.limits);
      });
      const matched = matchedParams(ctx);
      return run(
        ctx,
        exchange,
        gateway.identified((call) => endpoint.handle(call, matched)),
      );
    };
  };

  const identify = gateway.identified(() => Promise.resolve(EMPTY));
  /** True for a caller with a valid key, and for the operator. Nobody is asked about a request that shows neither. */
  const knows = async ({ req, path }: Context): Promise<boolean> => {
    const operators = await Promise.all(
      gateway.operators.map((isOperator) => isOperator(req).catch(() => false)),
    );
    if (operators.includes(true)) return true;
    const { headers, url = '' } = req;
    if (!credentials.some((name) => headers[name] !== undefined) && !/[?&]key=/.test(url)) return false;
    const format = formatNamed('chat-completions');
    const caller = callerOf(req, clientAddress(req));
    const wire = socketWire('GET', { ...caller, path });
    const exchange = new Exchange(requestId(), 'state', format, endpointCodec(format), wire);
    try {
      await lastValueFrom(await identify(firstView(exchange)), { defaultValue: undefined });
      return true;
    } catch {
      return false;
    } finally {
      exchange.end();
    }
  };

  const router = new Router();
  /**
   * Routes without parameters, which most calls take. They get their Koa context at once: the router, the middleware chain and Koa's own
   * listener for the end of each response would show in what a small call costs.
   */
  const fixed = new Map<string, Map<string, ReturnType<typeof operate>>>();
  router.get('/healthz', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  router.get('/readyz', async (ctx) => {
    const [database, isKnown] = await Promise.all([databaseState(stores), knows(ctx)]);
    const ready = !stopping && database === 'ok';
    ctx.status = ready ? 200 : 503;
    ctx.body = {
      status: ready ? 'ready' : stopping ? 'draining' : 'not ready',
      database,
      shared: rates.state,
      ...(isKnown ? { channels: standings(gateway.catalog.channels, health) } : {}),
    };
  });
  router.get('/v1/models', listByHeaders(false));
  router.get('/v1/models/*model', listByHeaders(true));
  for (const format of gateway.formats) {
    for (const route of format.routes) {
      const { operation } = route;
      if (operation === 'list-models' || operation === 'get-model') {
        router.register(route.path, [route.method], list(format, operation === 'get-model'));
        continue;
      }
      const codec: Codec | undefined = format.codecs[operation satisfies Operation];
      if (codec === undefined)
        throw new Error(`${format.name} routes ${route.path} to ${operation} but has no codec for it.`);
      const handler = operate(format, route, codec);
      if (route.query !== undefined) {
        const wanted = Object.entries(route.query);
        router.register(route.path, [route.method], (ctx, next) =>
          wanted.every(([name, value]) => queryOf(ctx).get(name) === value) ? handler(ctx) : next(),
        );
        continue;
      }
      router.register(route.path, [route.method], (ctx: Context) => handler(ctx));
      if (/[*:{(\\]/.test(route.path)) continue;
      const methods = fixed.get(route.path);
      if (methods === undefined) fixed.set(route.path, new Map([[route.method, handler]]));
      else methods.set(route.method, handler);
    }
  }
  for (const endpoint of gateway.endpoints) {
    router.register(endpoint.path, [endpoint.method], answer(endpoint));
  }
  for (const { method, path, handler } of gateway.routes) {
    router.register(path, [method], async (ctx: Context) => {
      ctx.respond = false;
      await handler(ctx.req, ctx.res, ctx.params as Record<string, string>);
    });
  }

  const refuse = (ctx: Context, format: Format, error: GatewayError): void => {
    const { status, headers, body } = format.errorReply(error, requestId());
    ctx.status = status;
    ctx.set({ ...error.headers, 'content-type': 'application/json', ...headers });
    ctx.body = body;
  };
  for (const [path, format] of sockets.paths) {
    router.get(path, (ctx) =>
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
      ),
    );
  }

  const koa = new Koa();
  koa.silent = true;
  koa.on('error', (error: NodeJS.ErrnoException) => {
    // A client that hangs up is no failure of the gateway's.
    if (!clientErrors.has(error.code ?? '')) log.error({ error }, 'the front end failed');
  });
  koa.use(router.routes());
  koa.use((ctx) => {
    const allowed = [
      ...new Set((ctx.matched ?? []).flatMap((layer: { methods: string[] }) => layer.methods)),
    ];
    const format = formatNamed(familyOf(ctx.path));
    const error =
      allowed.length > 0
        ? new GatewayError(
            'method_not_allowed',
            `${ctx.method} is not allowed on ${ctx.path.slice(0, 200)}: use ${allowed.join(' or ')}.`,
            {
              headers: { allow: allowed.join(', ') },
            },
          )
        : new GatewayError('unknown_url', `There is nothing at ${ctx.method} ${ctx.path.slice(0, 200)}.`);
    refuse(ctx, format, error);
  });

  const koaListener = koa.callback();
  const refuseLine = (response: ServerResponse, error: GatewayError): void => {
    const id = requestId();
    const { status, headers, body } = formatNamed('chat-completions').errorReply(error, id);
    const text = JSON.stringify(body);
    writeHead(
      response,
      status,
      {
        ...headers,
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(text)),
        connection: 'close',
      },
      id,
      log,
    );
    response.end(text);
  };
  const listener: App['listener'] = (request, response) => {
    if (draining) response.setHeader('connection', 'close');
    const { url = '', method = '' } = request;
    const handler = request.httpVersionMajor === 1 ? fixed.get(url)?.get(method) : undefined;
    if (handler !== undefined) {
      handler(koa.createContext(request, response), url);
      return;
    }
    const problem = requestLineProblem(request);
    if (problem === undefined) void koaListener(request, response);
    else refuseLine(response, problem);
  };
  return {
    listener,
    continueListener(request, response) {
      continueWhenRead(request, response);
      listener(request, response);
    },
    wantsSocket: (request) => request.httpVersionMajor === 1 && sockets.wants(request),
    upgrade: sockets.upgrade,
    clientError: (error, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) {
        socket.destroy();
        return;
      }
      const refusal = unreadable(error);
      const open = replies.values().find((reply) => reply.writesTo(socket));
      if (open !== undefined) {
        open.breakOff(refusal);
        return;
      }
      const { body } = formatNamed('chat-completions').errorReply(refusal, requestId());
      const text = JSON.stringify(body);
      socket.end(
        `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
      );
      closeSoon(socket);
    },
    drain: (why) => {
      const first = !draining;
      draining = true;
      if (first) {
        for (const reply of replies.values()) reply.closeAfterwards();
        gateway.notices.emit('draining');
        sockets.settle();
      }
      if (why === 'replaced' || stopping) return;
      stopping = true;
      sockets.drain();
    },
    endAll: () => {
      const error = new GatewayError('server_is_overloaded', 'The gateway is shutting down.', {
        retryAfter: 1,
      });
      for (const reply of replies.values()) reply.fail(error);
      sockets.endAll(error);
    },
  };
}

/** Headers that may carry a key. */
const credentials = ['authorization', 'x-api-key', 'x-goog-api-key', 'x-g-api-key'] as const;

/** What sockets tell when a client has hung up. */
const clientErrors: ReadonlySet<string> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ECONNABORTED',
  'ERR_STREAM_PREMATURE_CLOSE',
]);

/** True for a form where one may come; 415 where nothing else may. */
function takesForm(request: IncomingMessage, accepts: NonNullable<Route['accepts']>): boolean {
  if (accepts.includes('form') && isForm(request)) return true;
  if (accepts.includes('json')) return false;
  throw new GatewayError('unsupported_media_type', 'Content-Type must be multipart/form-data.');
}

/** Reads a form as the body of a call, which keeps its files until it has ended. */
async function understandForm(
  request: IncomingMessage,
  exchange: Exchange,
  limits: FormLimits,
  budget: ByteBudget,
): Promise<void> {
  const { form, fields, close } = await readForm(request, limits, budget);
  exchange.onEnd(close);
  const { wire, codec } = exchange;
  wire.params = { ...wire.params, form };
  exchange.understand(noBytes, fields);
  exchange.decoded = codec.validate(fields, wire.params);
}

/** Why Node's parser gave up on a request. */
function unreadable({ code }: NodeJS.ErrnoException): GatewayError {
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new GatewayError('invalid_request', 'The headers of the request are too large.', { status: 431 });
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new GatewayError('request_timeout', 'The request was not sent in time.');
  }
  return new GatewayError('invalid_request', 'The request is not valid HTTP.');
}

/** Where an unknown path belongs, so that even a 404 speaks the caller's format. */
export function familyOf(path: string): string {
  if (path.startsWith('/v1beta') || /^\/v1\/models\/.+:/.test(path)) return 'generate-content';
  if (path.startsWith('/model/')) return 'converse';
  return path.startsWith('/v1/messages') ? 'messages' : 'chat-completions';
}

/** Random once for the process, counted from there: an id must be unique, it is no secret. */
const idPrefix = `req_${randomUUID().replaceAll('-', '').slice(0, 16)}`;
let ids = 0;

function requestId(): string {
  ids += 1;
  return idPrefix + ids.toString(36).padStart(8, '0');
}

const noBytes = Buffer.alloc(0);

/** `path`: the whole of the request's URL, where it is known to be a path alone. */
function wireOf(ctx: Context, ip: string, path?: string): Wire {
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
function queryOf(ctx: Context): URLSearchParams {
  return new URLSearchParams(ctx.querystring);
}

/** Headers with one value each; a repeated one is joined as HTTP says. */
function headersOf(ctx: Context): Readonly<Record<string, string | undefined>> {
  const { headers } = ctx.req;
  const flat: Record<string, string | undefined> = {};
  for (const name in headers) {
    const value = headers[name];
    flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return flat;
}

function routeParams(ctx: Context, route: Route): RouteParams {
  return route.params?.(matchedParams(ctx), queryOf(ctx), headersOf(ctx)) ?? {};
}

/** What the router matched, nothing where it was passed by: wildcards joined by slashes, decoded. */
function matchedParams(ctx: Context): Record<string, string> {
  const matched: Record<string, string> = {};
  for (const [name, value] of Object.entries((ctx.params ?? {}) as Record<string, string | string[]>)) {
    matched[name] = Array.isArray(value) ? value.join('/') : value;
  }
  return matched;
}

function modelOf(ctx: Context): string {
  return (matchedParams(ctx).model ?? '').replace(/^models\//, '');
}

/** A channel stands as its best key does; `worst` tells that not all of them serve. */
function standings(channels: readonly Channel[], health: Health): readonly object[] {
  const report = health.report();
  return channels.map((channel) => {
    const { best, worst } = channelStanding(report, channel);
    return { id: channel.id, kind: channel.kind, standing: best, ...(worst === best ? {} : { worst }) };
  });
}

async function databaseState(stores: Stores): Promise<'ok' | 'failed'> {
  try {
    await stores.health();
    return 'ok';
  } catch {
    return 'failed';
  }
}

/** A client that never closes its side would keep the connection for ever. */
function closeSoon(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), lingerTime).unref();
  socket.once('close', () => clearTimeout(timer));
}

/** For what a client still sends, or does not fetch, after it was refused, in milliseconds. */
const lingerTime = 2000;

/**
 * Node reads and drops the rest of an upload that was refused; after two seconds the connection is closed instead. Closing at once would
 * reset it and take the answer with it.
 */
function linger(request: IncomingMessage): void {
  const { socket } = request;
  // Node forgets a request whose answer is written: who still reads it would never learn that its connection is gone.
  const gone = (): void => void request.destroy();
  const timer = setTimeout(() => socket.destroy(), lingerTime).unref();
  const settled = (): void => {
    clearTimeout(timer);
    socket.off('close', gone);
  };
  request.once('end', settled);
  request.once('close', settled);
  socket.once('close', gone);
  if (socket.destroyed) gone();
  else request.resume();
}
