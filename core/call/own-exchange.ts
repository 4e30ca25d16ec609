/** Builds exchanges for calls of the gateway itself, without a client. */
import { randomUUID } from 'node:crypto';
import type { Codec, Format, Operation } from '../sdk/format.ts';
import type { Wire } from '../sdk/call.ts';
import { Exchange } from './exchange.ts';

/** Returns the exchange of a call that no client has made. `wire`: what differs from a GET of this machine without headers and body. */
export function ownExchange(
  operation: Operation,
  format: Format,
  codec: Codec,
  wire: Partial<Wire> = {},
): Exchange {
  return new Exchange(`req_${randomUUID().replaceAll('-', '')}`, operation, format, codec, {
    method: 'GET',
    path: '/',
    query: new URLSearchParams(),
    headers: {},
    params: {},
    ip: '127.0.0.1',
    bytes: Buffer.alloc(0),
    body: {},
    ...wire,
  });
}

/** Returns what a POST of this machine to the first path of an operation has of its own. Its body is yet to be read. */
export function ownPost(format: Format, operation: Operation): Partial<Wire> {
  return {
    method: 'POST',
    path: format.routes.find((route) => route.operation === operation)?.path ?? '/',
    headers: { 'content-type': 'application/json' },
    body: undefined,
  };
}
