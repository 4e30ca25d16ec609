import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { EMPTY, lastValueFrom } from 'rxjs';
import { WebSocketServer } from 'ws';
import { createEndErrorReporter } from '../call/end-errors.ts';
import { Exchange, KeyedValues } from '../call/exchange.ts';
import { firstView } from '../call/view.ts';
import { connection, type Connection } from '../sdk/connection.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { Codec, Format, SocketRoute } from '../sdk/format.ts';
import type { Gateway } from './gateway.ts';
import type { JsonObject } from '../model/json.ts';
import { createAliasResolver, resolvedUrl } from './aliases.ts';
import { bodyReader } from './body.ts';
import { BudgetShare, type ByteBudget } from './byte-budget.ts';
import { endpointCodec } from './endpoints.ts';
import { errorFormat } from './client-format.ts';
import { SocketConnection } from './socket-connection.ts';
import { createTunnels } from './tunnels.ts';
import { callerOf, pathOf, refuse, wireOf, type Caller } from './upgrade.ts';

/** The WebSockets of a gateway: what the formats' socket routes are served with. */
export interface Sockets {
  /** Paths at which a WebSocket can be opened, with the format that is spoken there. */
  readonly paths: ReadonlyMap<string, Format>;
  /** True for a request that asks for a WebSocket at one of the paths. Everything else is plain HTTP. */
  wants(request: IncomingMessage): boolean;
  /** Opens a WebSocket, or answers with the status that plain HTTP would have given. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  tick(now: number): void;
  /** Another process takes new connections: each of ours is closed when nothing has come over it for a while. */
  settle(): void;
  /** Refuses new connections and calls; those without a call are closed, the others after their last. */
  drain(): void;
  /** Ends every open call with the error, and every connection. */
  endAll(error: GatewayError): void;
}

/** One path that is served. */
interface Door {
  readonly format: Format;
  readonly route: SocketRoute;
  readonly codec: Codec;
}

/** Builds the sockets of a gateway. `requestId` makes the id of each call, `clientAddress` knows who sent a request. */
export function createSockets(
  gateway: Gateway & { readonly bodyBudget: ByteBudget },
  requestId: () => string,
  clientAddress: (request: IncomingMessage) => string,
): Sockets {
  const { settings, log, notices } = gateway;
  const endErrors = createEndErrorReporter(log, notices);
  const { timeouts, limits } = settings;
  const resolveAlias = createAliasResolver(gateway.formats);
  const doors = new Map<string, Door>();
  for (const format of gateway.formats) {
    for (const route of format.sockets ?? []) {
      const codec = format.codecs[route.operation];
      if (codec?.encodeStream === undefined)
        throw new Error(
          `${format.name} has a socket at ${route.path}, but no stream for ${route.operation}.`,
        );
      doors.set(route.path, { format, route, codec });
    }
  }
  const tunnels = createTunnels(gateway, requestId, clientAddress);
  const open = new Set<SocketConnection>();
  const admitted = gateway.identified(() => Promise.resolve(EMPTY));
  let draining = false;
  let settling = false;

  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.body,
    handleProtocols: (offered, request) =>
      doors.get(pathOf(request))?.route.protocols.find((name) => offered.has(name)) ?? false,
  });
  server.on('wsClientError', (error, socket, request) => {
    const { format } = doors.get(pathOf(request)) ?? {};
    if (format === undefined) socket.destroy();
    else
      refuse(
        request,
        socket,
        format,
        new GatewayError('invalid_request', `${error.message}.`),
        requestId(),
        log,
      );
  });

  const exchangeOf =
    ({ format, codec }: Door, caller: Caller, own: Connection) =>
    (body: JsonObject): Exchange => {
      const wire = wireOf('WS', caller);
      const exchange = new Exchange(requestId(), codec.operation, format, codec, wire);
      exchange.endErrors = endErrors;
      exchange.values.set(connection, own);
      exchange.values.set(bodyReader, async () => {
        const bytes = Buffer.from(JSON.stringify(body));
        const held = new BudgetShare(gateway.bodyBudget);
        exchange.hold(held);
        held.grow(bytes.length);
        exchange.understand(bytes, body);
        exchange.decoded = codec.validate(body, wire.params);
      });
      return exchange;
    };

  /** Throws what refuses the caller. */
  const identify = async ({ format }: Door, caller: Caller, own: Connection, id: string, socket: Duplex) => {
    if (draining)
      throw new GatewayError('server_is_overloaded', 'The gateway is shutting down.', { retryAfter: 1 });
    const wire = wireOf('GET', caller);
    wire.body = {};
    const exchange = new Exchange(id, 'state', format, endpointCodec(format), wire);
    exchange.endErrors = endErrors;
    exchange.values.set(connection, own);
    const end = (): void => exchange.end();
    socket.once('close', end);
    try {
      await lastValueFrom(await admitted(firstView(exchange)), { defaultValue: undefined });
    } finally {
      socket.off('close', end);
      exchange.end();
    }
  };

  const connect = async (door: Door, request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const caller = callerOf(request, clientAddress(request));
    const own = new KeyedValues();
    const id = requestId();
    try {
      await identify(door, caller, own, id, socket);
    } catch (error) {
      if (!(error instanceof GatewayError)) log.error({ id, error }, 'a call failed inside the gateway');
      refuse(request, socket, door.format, toGatewayError(error), id, log);
      return;
    }
    server.handleUpgrade(request, socket, head, (websocket) => {
      const one: SocketConnection = new SocketConnection(websocket, socket, {
        route: door.route,
        log,
        limits,
        keepAlive: timeouts.keepAlive,
        stalled: timeouts.stalled,
        lifetime: timeouts.socket,
        exchange: exchangeOf(door, caller, own),
        handle: gateway.handle,
        closed: () => open.delete(one),
      });
      open.add(one);
      if (draining) retire(one);
    });
  };

  /** Node before 22.21 and 24.9 does not ask `wants`: every wish for another protocol comes here, also those that are best passed over. */
  const refuseOther = (request: IncomingMessage, socket: Duplex): void => {
    const name = errorFormat(request.url ?? '', request.headers);
    const format = gateway.formats.find((one) => one.name === name);
    const error = new GatewayError('invalid_request', 'Send this request without an Upgrade header.');
    if (format === undefined) socket.destroy();
    else refuse(request, socket, format, error, requestId(), log);
  };

  const isServed = (url: string): boolean => doors.has(pathOf({ url })) || tunnels.paths.has(pathOf({ url }));

  const retire = (one: SocketConnection): void =>
    one.retire(
      new GatewayError('server_is_overloaded', 'The gateway is shutting down.', { retryAfter: 1 }),
      1001,
      false,
    );

  return {
    paths: new Map([...[...doors].map(([path, { format }]) => [path, format] as const), ...tunnels.paths]),
    wants: (request) =>
      request.method === 'GET' &&
      request.headers.upgrade?.toLowerCase() === 'websocket' &&
      isServed(resolvedUrl(resolveAlias, request.url ?? '')),
    upgrade(request, socket, head) {
      socket.on('error', () => {});
      request.url = resolvedUrl(resolveAlias, request.url ?? '');
      const door = doors.get(pathOf(request));
      if (tunnels.paths.has(pathOf(request))) tunnels.upgrade(request, socket, head);
      else if (door !== undefined) void connect(door, request, socket, head);
      else refuseOther(request, socket);
    },
    tick(now) {
      for (const one of open) {
        one.tick(now);
        if (settling && one.isQuiet(now)) retire(one);
      }
      tunnels.tick(now);
    },
    settle() {
      settling = true;
    },
    drain() {
      draining = true;
      for (const one of open) retire(one);
      tunnels.drain();
    },
    endAll(error) {
      for (const one of open) one.endAll(error);
      tunnels.endAll(error);
    },
  };
}
