/** Reads and refuses HTTP upgrade requests for WebSockets, and detects clients that disconnect before their socket is open. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { ServerResponse } from '../upstream/node-http.ts';
import type { Wire } from '../sdk/call.ts';
import type { GatewayError } from '../sdk/errors.ts';
import type { Format } from '../sdk/format.ts';
import type { Log } from '../log.ts';
import { writeHead } from './head.ts';

/** Facts of an upgrade request that all calls over its WebSocket share. */
export interface Caller {
  readonly headers: IncomingHttpHeaders;
  readonly query: string;
  readonly path: string;
  readonly ip: string;
}

/** Returns the facts of an upgrade request; `ip` is the client's address. */
export function callerOf(request: IncomingMessage, ip: string): Caller {
  const { headers, url = '' } = request;
  const mark = url.indexOf('?');
  return {
    headers,
    query: mark < 0 ? '' : url.slice(mark + 1),
    path: pathOf(request),
    ip,
  };
}

/** Returns the path without query, and without the slash that some clients append. */
export function pathOf({ url = '' }: Pick<IncomingMessage, 'url'>): string {
  const path = url.split('?', 1)[0] ?? '';
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

const noBytes = Buffer.alloc(0);

/** Returns the wire of a call. The headers are copied, so that plugins can remove the key from one call and the next still has it. */
export function wireOf(method: string, { path, query, headers, ip }: Caller): Wire {
  return {
    method,
    path,
    query: new URLSearchParams(query),
    headers: { ...headers },
    params: {},
    ip,
    bytes: noBytes,
    body: undefined,
  };
}

/**
 * Runs `gone` once when the client leaves before its WebSocket is open. Node does not read from such a connection, and would not
 * see its end. Early bytes of the client stay in the connection. Returns a function that stops watching.
 */
export function watchClient(socket: Duplex, gone: () => void): () => void {
  const look = (): void => {
    // With an empty buffer, `read` returns nothing and detects the end of the connection.
    if (socket.readableLength === 0) socket.read();
  };
  const stop = (): void => {
    socket.off('readable', look);
    socket.off('end', leave);
    socket.off('close', leave);
  };
  const leave = (): void => {
    stop();
    gone();
  };
  socket.on('readable', look);
  socket.once('end', leave);
  socket.once('close', leave);
  return stop;
}

/** Sends an HTTP error in place of the WebSocket. `added` are headers of plugins. */
export function refuse(
  request: IncomingMessage,
  socket: Duplex,
  format: Format,
  error: GatewayError,
  id: string,
  log: Log,
  added: Readonly<Record<string, string>> = {},
): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  try {
    answer(request, socket, format.errorReply(error, id), id, log, added);
  } catch (thrown) {
    // Caught here, because no caller would catch it.
    log.error({ id, error: thrown }, 'failed to send an error response');
    socket.destroy();
  }
}

function answer(
  request: IncomingMessage,
  socket: Duplex,
  { status, headers, body }: ReturnType<Format['errorReply']>,
  id: string,
  log: Log,
  added: Readonly<Record<string, string>>,
): void {
  const text = JSON.stringify(body);
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Socket);
  response.once('finish', () => {
    response.detachSocket(socket as Socket);
    (socket as Socket).destroySoon();
  });
  const head = {
    'content-type': 'application/json',
    ...added,
    ...headers,
    'content-length': String(Buffer.byteLength(text)),
  };
  writeHead(response, status, head, id, log);
  response.end(text);
}
