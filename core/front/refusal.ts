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

/** Refuses a request that is no call, in the words of a format. */
export function refuse(ctx: Context, format: Format, error: GatewayError): void {
  const { status, headers, body } = format.errorReply(error, requestId());
  ctx.status = status;
  ctx.set({ ...error.headers, 'content-type': 'application/json', ...headers });
  ctx.body = body;
}

/** Refuses what no route has answered: 405 where another method would do, else 404, in the format of the client. */
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

/** The path as the client wrote it, before an alias was resolved. */
function clientPath({ originalUrl, path }: Context): string {
  return (originalUrl.startsWith('/') ? (originalUrl.split('?', 1)[0] ?? '') : path).slice(0, 200);
}

/** Refuses a request whose first line or headers are wrong, and closes its connection. */
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

/** An error of Node's parser. Its bytes are the last that came, which is the whole of most requests. */
interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}

/** Answers what Node's parser gave up on: by the reply that is being written, where there is one, else as plain bytes. */
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

/** Why Node's parser gave up on a request. */
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
export function linger(request: IncomingMessage): void {
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
