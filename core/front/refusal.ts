import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Context } from 'koa';
import { STATUS_CODES } from '../upstream/node-http.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { Format } from '../sdk/format.ts';
import type { Front } from './front.ts';
import { writeHead } from './head.ts';
import { requestId } from './wire.ts';

/** Refuses a request that is no call, in the words of a format. */
export function refuse(ctx: Context, format: Format, error: GatewayError): void {
  const { status, headers, body } = format.errorReply(error, requestId());
  ctx.status = status;
  ctx.set({ ...error.headers, 'content-type': 'application/json', ...headers });
  ctx.body = body;
}

/** The end of the router: 405 where another method would do, else 404, in the format of the path's family. */
export function refuseUnknown(ctx: Context, front: Front): void {
  const layers = (ctx['matched'] ?? []) as readonly { readonly methods: readonly string[] }[];
  const allowed = [...new Set(layers.flatMap(({ methods }) => methods))];
  const where = `${ctx.method} ${ctx.path.slice(0, 200)}`;
  const error =
    allowed.length > 0
      ? new GatewayError(
          'method_not_allowed',
          `${ctx.method} is not allowed on ${ctx.path.slice(0, 200)}: use ${allowed.join(' or ')}.`,
          { headers: { allow: allowed.join(', ') } },
        )
      : new GatewayError('unknown_url', `There is nothing at ${where}.`);
  refuse(ctx, front.formatNamed(familyOf(ctx.path)), error);
}

/** Refuses a request whose first line is already wrong, and closes its connection. */
export function refuseLine(response: ServerResponse, front: Front, error: GatewayError): void {
  const id = requestId();
  const { status, headers, body } = front.formatNamed('chat-completions').errorReply(error, id);
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

/** Answers what Node's parser gave up on: by the reply that is being written, where there is one, else as plain bytes. */
export function refuseUnreadable(socket: Duplex, front: Front, error: NodeJS.ErrnoException): void {
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
  const { body } = front.formatNamed('chat-completions').errorReply(refusal, requestId());
  const text = JSON.stringify(body);
  socket.end(
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  );
  closeSoon(socket);
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
