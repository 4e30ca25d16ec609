/** Accepts the WebSockets of a gateway: checks upgrades, identifies callers, and opens connections or tunnels. */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { EMPTY, lastValueFrom } from 'rxjs';
import type { WebSocketServer } from 'ws';
import { createEndErrorReporter } from '../call/end-errors.ts';
import { Exchange, KeyedValues } from '../call/exchange.ts';
import { firstView } from '../call/view.ts';
import { connection, type Connection } from '../sdk/connection.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { Next } from '../sdk/define.ts';
import type { Format, SocketRoute } from '../sdk/format.ts';
import type { Gateway } from './gateway.ts';
import type { JsonObject } from '../model/json.ts';
import { createAliasResolver, resolvedUrl } from './aliases.ts';
import { bodyReader } from './body.ts';
import { BudgetShare, type ByteBudget } from './byte-budget.ts';
import { endpointCodec } from './endpoints.ts';
import { errorFormat } from './client-format.ts';
import { SocketConnection } from './socket-connection.ts';
import { openSocketServer, shuttingDown, type SocketPath, type SocketPaths } from './socket-server.ts';
import { createTunnels, type Tunnels } from './tunnels.ts';
import { callerOf, pathOf, refuse, wireOf, type Caller } from './upgrade.ts';

/** The WebSockets of a gateway. */
export interface Sockets {
  /** Paths at which a WebSocket can be opened, with the format that is spoken there. */
  readonly paths: ReadonlyMap<string, Format>;
  /** Returns true for a request to open a WebSocket at one of the paths. All other requests are plain HTTP. */
  wants(request: IncomingMessage): boolean;
  /** Opens a WebSocket, or answers with the status that plain HTTP would have given. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  tick(now: number): void;
  /** Closes each connection once it has been silent for a while, because another process takes new connections. */
  settle(): void;
  /** Refuses new connections and calls; those without a call are closed, the others after their last. */
  drain(): void;
  /** Ends every open call with the error, and every connection. */
  endAll(error: GatewayError): void;
}

/** Builds the sockets of a gateway. `requestId` makes the id of each call, `clientAddress` knows who sent a request. */
export function createSockets(
  gateway: SocketGateway,
  requestId: () => string,
  clientAddress: (request: IncomingMessage) => string,
): Sockets {
  return new GatewaySockets(gateway, requestId, clientAddress);
}

type SocketGateway = Gateway & { readonly bodyBudget: ByteBudget };

class GatewaySockets implements Sockets {
  readonly paths: ReadonlyMap<string, Format>;
  readonly #gateway: SocketGateway;
  readonly #requestId: () => string;
  readonly #clientAddress: (request: IncomingMessage) => string;
  readonly #resolveAlias: ReturnType<typeof createAliasResolver>;
  readonly #endErrors: ReturnType<typeof createEndErrorReporter>;
  readonly #socketPaths: SocketPaths<SocketRoute>;
  readonly #tunnels: Tunnels;
  readonly #server: WebSocketServer;
  readonly #admitted: Next;
  readonly #open = new Set<SocketConnection>();
  #draining = false;
  #settling = false;

  constructor(
    gateway: SocketGateway,
    requestId: () => string,
    clientAddress: (request: IncomingMessage) => string,
  ) {
    this.#gateway = gateway;
    this.#requestId = requestId;
    this.#clientAddress = clientAddress;
    this.#resolveAlias = createAliasResolver(gateway.formats);
    this.#endErrors = createEndErrorReporter(gateway.log, gateway.notices);
    this.#socketPaths = pathsOf(gateway.formats);
    this.#tunnels = createTunnels(gateway, requestId, clientAddress);
    this.#server = openSocketServer(this.#socketPaths, gateway, requestId, {
      perMessageDeflate: false,
      maxPayload: gateway.settings.limits.body,
    });
    this.#admitted = gateway.identified(() => Promise.resolve(EMPTY));
    this.paths = new Map([
      ...[...this.#socketPaths].map(([path, { format }]) => [path, format] as const),
      ...this.#tunnels.paths,
    ]);
  }

  wants(request: IncomingMessage): boolean {
    return (
      request.method === 'GET' &&
      request.headers.upgrade?.toLowerCase() === 'websocket' &&
      this.#isServed(resolvedUrl(this.#resolveAlias, request.url ?? ''))
    );
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => {});
    request.url = resolvedUrl(this.#resolveAlias, request.url ?? '');
    const path = this.#socketPaths.get(pathOf(request));
    if (this.#tunnels.paths.has(pathOf(request))) this.#tunnels.upgrade(request, socket, head);
    else if (path !== undefined) void this.#connect(path, request, socket, head);
    else this.#refuseOther(request, socket);
  }

  tick(now: number): void {
    for (const one of this.#open) {
      one.tick(now);
      if (this.#settling && one.isQuiet(now)) one.retire(shuttingDown(), 1001, false);
    }
    this.#tunnels.tick(now);
  }

  settle(): void {
    this.#settling = true;
  }

  drain(): void {
    this.#draining = true;
    for (const one of this.#open) one.retire(shuttingDown(), 1001, false);
    this.#tunnels.drain();
  }

  endAll(error: GatewayError): void {
    for (const one of this.#open) one.endAll(error);
    this.#tunnels.endAll(error);
  }

  #exchangeOf(
    { format, codec }: SocketPath<SocketRoute>,
    caller: Caller,
    own: Connection,
    body: JsonObject,
  ): Exchange {
    const wire = wireOf('WS', caller);
    const exchange = new Exchange(this.#requestId(), codec.operation, format, codec, wire);
    exchange.endErrors = this.#endErrors;
    exchange.values.set(connection, own);
    exchange.values.set(bodyReader, async () => {
      const bytes = Buffer.from(JSON.stringify(body));
      const held = new BudgetShare(this.#gateway.bodyBudget);
      exchange.hold(held);
      held.grow(bytes.length);
      exchange.understand(bytes, body);
      exchange.decoded = codec.validate(body, wire.params);
    });
    return exchange;
  }

  /** Runs the identify and admit stages for the handshake. Throws the error that refuses the caller. */
  async #identify(
    { format }: SocketPath<SocketRoute>,
    caller: Caller,
    own: Connection,
    id: string,
    socket: Duplex,
  ) {
    if (this.#draining) throw shuttingDown();
    const wire = wireOf('GET', caller);
    wire.body = {};
    const exchange = new Exchange(id, 'state', format, endpointCodec(format), wire);
    exchange.endErrors = this.#endErrors;
    exchange.values.set(connection, own);
    const end = (): void => exchange.end();
    socket.once('close', end);
    try {
      await lastValueFrom(await this.#admitted(firstView(exchange)), { defaultValue: undefined });
    } finally {
      socket.off('close', end);
      exchange.end();
    }
  }

  async #connect(path: SocketPath<SocketRoute>, request: IncomingMessage, socket: Duplex, head: Buffer) {
    const caller = callerOf(request, this.#clientAddress(request));
    const own = new KeyedValues();
    const id = this.#requestId();
    try {
      await this.#identify(path, caller, own, id, socket);
    } catch (error) {
      if (!(error instanceof GatewayError))
        this.#gateway.log.error({ id, error }, 'a call failed inside the gateway');
      refuse(request, socket, path.format, toGatewayError(error), id, this.#gateway.log);
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (websocket) => {
      const one: SocketConnection = new SocketConnection(websocket, socket, {
        route: path.route,
        log: this.#gateway.log,
        limits: this.#gateway.settings.limits,
        keepAlive: this.#gateway.settings.timeouts.keepAlive,
        stalled: this.#gateway.settings.timeouts.stalled,
        lifetime: this.#gateway.settings.timeouts.socket,
        exchange: (body) => this.#exchangeOf(path, caller, own, body),
        handle: this.#gateway.handle,
        closed: () => this.#open.delete(one),
      });
      this.#open.add(one);
      if (this.#draining) one.retire(shuttingDown(), 1001, false);
    });
  }

  /** Refuses upgrades that {@link wants} would reject. Node before 22.21 and 24.9 does not call `wants`, and passes every upgrade on. */
  #refuseOther(request: IncomingMessage, socket: Duplex): void {
    const name = errorFormat(request.url ?? '', request.headers);
    const format = this.#gateway.formats.find((one) => one.name === name);
    const error = new GatewayError('invalid_request', 'Send this request without an Upgrade header.');
    if (format === undefined) socket.destroy();
    else refuse(request, socket, format, error, this.#requestId(), this.#gateway.log);
  }

  #isServed(url: string): boolean {
    return this.#socketPaths.has(pathOf({ url })) || this.#tunnels.paths.has(pathOf({ url }));
  }
}

function pathsOf(formats: Gateway['formats']): SocketPaths<SocketRoute> {
  const paths = new Map<string, SocketPath<SocketRoute>>();
  for (const format of formats) {
    for (const route of format.sockets ?? []) {
      const codec = format.codecs[route.operation];
      if (codec?.encodeStream === undefined)
        throw new Error(
          `${format.name} has a socket at ${route.path}, but no stream for ${route.operation}.`,
        );
      paths.set(route.path, { format, route, codec });
    }
  }
  return paths;
}
