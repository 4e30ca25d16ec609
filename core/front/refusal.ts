/** Answers requests that become no call: unknown endpoints, wrong methods, and requests that are not valid HTTP. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Context } from 'koa';
import { STATUS_CODES } from '../upstream/node-http.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { Format } from '../sdk/format.ts';
import { errorFormat, errorFormatOfBytes } from './client-format.ts';
import type { Front } from './front.ts';
import { writeHead } from './head.ts';
import { headersTooLarge } from './request-line.ts';
import { requestId } from './wire.ts';

/** Responds to a request that is no call with an error in a format. */
export function refuse(ctx: Context, format: Format, error: GatewayError): void {
  const { status, headers, body } = format.errorReply(error, requestId());
  ctx.status = status;
  ctx.set({ ...error.headers, 'content-type': 'application/json', ...headers });
  ctx.body = body;
}

/** Responds to a request that no route has answered, in the client's format: 405 where the path has another method, else 404. */
export function refuseUnknown(ctx: Context, front: Front): void {
  const layers = (ctx['matched'] ?? []) as readonly { readonly methods: readonly string[] }[];
  const allowed = [...new Set(layers.flatMap(({ methods }) => methods))];
  const path = clientPath(ctx);
  const error =
    allowed.length > 0
      ? new GatewayError(
          'method_not_allowed',
          `${ctx.method} is not allowed on ${path}: use ${allowed.join(' or ')}.`,
          { headers: { allow: allowed.join(', ') } },
        )
      : new GatewayError('unknown_url', `Unknown endpoint: ${ctx.method} ${path}.`);
  refuse(ctx, front.formatNamed(errorFormat(ctx.url, ctx.headers)), error);
}

/** Returns the path as the client wrote it, before an alias was resolved. */
function clientPath({ originalUrl, path }: Context): string {
  return (originalUrl.startsWith('/') ? (originalUrl.split('?', 1)[0] ?? '') : path).slice(0, 200);
}

/** Responds with an error to a request whose first line or headers are invalid, and closes its connection. */
export function refuseLine(
  { url = '', headers: given }: IncomingMessage,
  response: ServerResponse,
  front: Front,
  error: GatewayError,
): void {
  const id = requestId();
  const format = front.formatNamed(errorFormat(url, given));
  const { status, headers, body } = format.errorReply(error, id);
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
    front.gateway.log,
  );
  response.end(text);
}

/** An error of Node's parser. `rawPacket` has the last bytes received, which for most requests is the whole request. */
interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}

/** Responds where Node's parser failed: through the open response of the connection, where there is one, else with raw bytes. */
export function refuseUnreadable(socket: Duplex, front: Front, error: ParseError): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const refusal = unreadable(error);
  const open = front.replies.values().find((reply) => reply.writesTo(socket));
  if (open !== undefined) {
    open.breakOff(refusal);
    return;
  }
  const format = front.formatNamed(errorFormatOfBytes(error.rawPacket));
  const { status, headers, body } = format.errorReply(refusal, requestId());
  const text = JSON.stringify(body);
  const lines = Object.entries({
    'content-type': 'application/json',
    ...headers,
    'content-length': String(Buffer.byteLength(text)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`);
  closeSoon(socket);
}

/** Returns the error for the client from the error of Node's parser. */
function unreadable({ code }: NodeJS.ErrnoException): GatewayError {
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge();
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new GatewayError('request_timeout', 'The request was not sent in time.');
  }
  // The client has closed its side in the middle of a request. It left, which is no mistake; 400 for one that still reads.
  if (code === 'HPE_INVALID_EOF_STATE')
    return new GatewayError(
      'client_closed_request',
      'The connection was closed before the request was complete.',
      {
        status: 400,
      },
    );
  return new GatewayError('invalid_request', 'The request is not valid HTTP.');
}

/** Closes the connection after {@link lingerTime}, because a client may never close its side. */
function closeSoon(socket: Duplex): void {
  const timer = setTimeout(() => socket.destroy(), lingerTime).unref();
  socket.once('close', () => clearTimeout(timer));
}

/** Time before the connection of a refused client is closed, in milliseconds. */
const lingerTime = 2000;

/**
 * Reads and drops the rest of an upload that was refused; closes the connection after two seconds. Closing it at once would reset it, and the
 * client would lose the response.
 */
export function linger(request: IncomingMessage): void {
  const { socket } = request;
  // Node detaches a request whose response is written: code that still reads it would not see that the connection is closed.
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
