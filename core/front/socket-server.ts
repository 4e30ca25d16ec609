/** WebSocket servers at the paths of formats. */
import type { IncomingMessage } from 'node:http';
import { WebSocketServer, type ServerOptions } from 'ws';
import { GatewayError } from '../sdk/errors.ts';
import type { Codec, Format } from '../sdk/format.ts';
import type { Gateway } from './gateway.ts';
import { pathOf, refuse } from './upgrade.ts';

/** Path at which clients can open a WebSocket. */
export interface SocketPath<Route> {
  readonly format: Format;
  readonly route: Route;
  readonly codec: Codec;
}

/** The paths of a gateway by their addresses. */
export type SocketPaths<Route> = ReadonlyMap<string, SocketPath<Route>>;

/** Options of the package that differ between servers. */
type Own = Pick<ServerOptions, 'perMessageDeflate' | 'maxPayload' | 'autoPong'>;

/** Opens a server for handshakes at these paths. One that is malformed is refused in the format of its path. */
export function openSocketServer<Route extends { readonly protocols: readonly string[] }>(
  paths: SocketPaths<Route>,
  { log }: Pick<Gateway, 'log'>,
  requestId: () => string,
  own: Own,
): WebSocketServer {
  const server = new WebSocketServer({
    ...own,
    noServer: true,
    clientTracking: false,
    handleProtocols: (offered, request: IncomingMessage) =>
      paths.get(pathOf(request))?.route.protocols.find((name) => offered.has(name)) ?? false,
  });
  server.on('wsClientError', (error, socket, request) => {
    const { format } = paths.get(pathOf(request)) ?? {};
    const refusal = new GatewayError('invalid_request', `${error.message}.`);
    if (format === undefined) socket.destroy();
    else refuse(request, socket, format, refusal, requestId(), log);
  });
  return server;
}

/** Returns the error that new and open WebSockets get while the gateway stops. */
export function shuttingDown(): GatewayError {
  return new GatewayError('server_is_overloaded', 'The gateway is shutting down.', { retryAfter: 1 });
}
