/**
 * Opens WebSocket sessions that pass through to a provider: checks the handshake, runs the call, and upgrades the client once the provider is
 * connected.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { createEndErrorReporter } from '../call/end-errors.ts';
import { Exchange } from '../call/exchange.ts';
import { firstView } from '../call/view.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { Format, TunnelRoute } from '../sdk/format.ts';
import type { Gateway } from './gateway.ts';
import { bodyReader } from './body.ts';
import { addedHeaders } from './head.ts';
import { compression } from '../upstream/socket-close.ts';
import { openSocketServer, shuttingDown, type SocketPath, type SocketPaths } from './socket-server.ts';
import { Tunnel } from './tunnel.ts';
import { callerOf, pathOf, refuse, watchClient, wireOf, type Caller } from './upgrade.ts';

/** The WebSockets that pass through to a provider. */
export interface Tunnels {
  /** Paths at which one can be opened, with the format that is spoken there. */
  readonly paths: ReadonlyMap<string, Format>;
  /** Asks a channel, and opens the client's socket once the provider's is open; or answers as plain HTTP would be. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  tick(now: number): void;
  /** Refuses new sessions; each that runs is closed after the answer that is being given. */
  drain(): void;
  /** Ends every session with the error. */
  endAll(error: GatewayError): void;
}

/** Builds the tunnels of a gateway. `requestId` makes the id of each session, `clientAddress` knows who sent a request. */
export function createTunnels(
  gateway: Gateway,
  requestId: () => string,
  clientAddress: (request: IncomingMessage) => string,
): Tunnels {
  const { log, notices } = gateway;
  const endErrors = createEndErrorReporter(log, notices);
  const settings = gateway.settings.realtime;
  const paths = pathsOf(gateway.formats);
  const open = new Set<Tunnel>();
  let draining = false;
  const server = openSocketServer(paths, gateway, requestId, {
    perMessageDeflate: settings.compress.clients ? compression : false,
    maxPayload: settings.frame,
    autoPong: false,
  });
  /** Headers of the response that accepts a handshake. */
  const fields = new WeakMap<IncomingMessage, Readonly<Record<string, string>>>();
  server.on('headers', (headers, request) => {
    for (const [name, value] of Object.entries(fields.get(request) ?? {})) headers.push(`${name}: ${value}`);
  });

  const connect = async (
    path: SocketPath<TunnelRoute>,
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
  ) => {
    const exchange = exchangeOf(path, callerOf(request, clientAddress(request)), requestId());
    exchange.endErrors = endErrors;
    const tunnel = new Tunnel(exchange, {
      route: path.route,
      settings,
      log,
      done: () => open.delete(tunnel),
    });
    open.add(tunnel);
    const stopWatching = watchClient(socket, () => tunnel.leave());
    try {
      if (draining) throw shuttingDown();
      checkHandshake(request);
      const events = await gateway.handle(firstView(exchange));
      stopWatching();
      tunnel.carry(events);
      fields.set(request, { ...addedHeaders(exchange, log), ...path.format.replyHeaders(exchange.id) });
      server.handleUpgrade(request, socket, head, (websocket) => tunnel.accept(websocket));
      // `handleUpgrade` reports nothing when the client has disconnected meanwhile or its handshake is invalid.
      if (!tunnel.accepted) tunnel.leave();
    } catch (thrown) {
      const error = exchange.failure ?? thrown;
      stopWatching();
      if (!(error instanceof GatewayError))
        log.error({ id: exchange.id, error }, 'a call failed inside the gateway');
      tunnel.leave();
      const added = addedHeaders(exchange, log);
      refuse(request, socket, path.format, toGatewayError(error), exchange.id, log, added);
    }
  };

  return {
    paths: new Map([...paths].map(([address, { format }]) => [address, format])),
    upgrade(request, socket, head) {
      const path = paths.get(pathOf(request));
      if (path === undefined) socket.destroy();
      else void connect(path, request, socket, head);
    },
    tick(now) {
      for (const one of open) one.tick(now);
    },
    drain() {
      draining = true;
      for (const one of open) one.retire(shuttingDown());
    },
    endAll(error) {
      for (const one of open) one.cut(error);
    },
  };
}

function exchangeOf({ format, route, codec }: SocketPath<TunnelRoute>, caller: Caller, id: string): Exchange {
  const wire = wireOf('WS', caller);
  const exchange = new Exchange(id, codec.operation, format, codec, wire);
  exchange.values.set(bodyReader, async () => {
    const body = route.body(wire.query, flat(wire.headers));
    exchange.understand(Buffer.from(JSON.stringify(body)), body);
    exchange.decoded = codec.validate(body, wire.params);
  });
  return exchange;
}

function pathsOf(formats: Gateway['formats']): SocketPaths<TunnelRoute> {
  const paths = new Map<string, SocketPath<TunnelRoute>>();
  for (const format of formats) {
    for (const route of format.tunnels ?? []) {
      const codec = format.codecs[route.operation];
      if (codec === undefined) throw new Error(`${format.name} has no codec for its tunnel ${route.path}.`);
      paths.set(route.path, { format, route, codec });
    }
  }
  return paths;
}

/** Throws 400 for an invalid handshake, so that no request is sent to a provider for it. */
function checkHandshake({ headers }: IncomingMessage): void {
  const version = headers['sec-websocket-version'];
  if (version !== '13' && version !== '8')
    throw new GatewayError('invalid_request', 'Send this request with Sec-WebSocket-Version: 13.', {
      headers: { 'sec-websocket-version': '13, 8' },
    });
  if (!/^[+/0-9A-Za-z]{22}==$/.test(headers['sec-websocket-key'] ?? ''))
    throw new GatewayError('invalid_request', 'The Sec-WebSocket-Key header is missing or invalid.');
}

/** Returns the headers with one value each. */
function flat(headers: IncomingMessage['headers']): Record<string, string | undefined> {
  const values: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(headers))
    values[name] = Array.isArray(value) ? value.join(', ') : value;
  return values;
}
