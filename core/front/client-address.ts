/** Finds the address of a client behind proxies. */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { ClientAddress } from '../sdk/author/routes.ts';
import { addressList, plainAddress, type AddressList } from '../model/addresses.ts';

/*
 * proxy-addr is not used because it reads `X-Forwarded-For` alone and takes any text in it for the address of the client, also an address with a
 * port. Ranges are compared by `BlockList` of Node instead of ipaddr.js.
 */

/** Longest header that is read: a chain of proxies is a few addresses long. */
const longest = 4_096;

/**
 * Returns a function that finds the client address of a request. Uses the `X-Forwarded-For` or `Forwarded` header of a trusted proxy. Each proxy
 * appends the address of its own client, so that the client is the last address that is not a trusted proxy; everything before it can be forged.
 * If both headers exist and contradict each other, one of them came from the client, and both are ignored.
 */
export function createClientAddress(
  trustedProxies: readonly string[],
): (request: Pick<IncomingMessage, 'headers' | 'socket'>) => string {
  if (trustedProxies.length === 0) return ({ socket }) => plainAddress(socket.remoteAddress ?? '');
  const trusted = addressList(trustedProxies);
  return ({ headers, socket }) => {
    const peer = plainAddress(socket.remoteAddress ?? '');
    if (!trusted.has(peer)) return peer;
    const listed = headers['x-forwarded-for'];
    const { forwarded } = headers;
    const first = listed === undefined ? undefined : lastStranger(peer, hopsOf(listed), trusted);
    const second =
      forwarded === undefined ? undefined : lastStranger(peer, forwardedHops(forwarded), trusted);
    if (first !== undefined && second !== undefined && first !== second) return peer;
    return first ?? second ?? peer;
  };
}

/** Headers in which a proxy sends the address of its client. */
const forwarding = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'via'] as const;

/** Returns the address of the sender of a request, and whether a proxy that is not trusted may hide somebody else. */
export function createRequestAddress(
  trustedProxies: readonly string[],
): (request: Pick<IncomingMessage, 'headers' | 'socket'>) => ClientAddress {
  const trusted = addressList(trustedProxies);
  const addressOf = createClientAddress(trustedProxies);
  return (request) => {
    const { headers, socket } = request;
    const isForwarded = forwarding.some((name) => headers[name] !== undefined);
    return {
      ip: addressOf(request),
      isCertain: !isForwarded || trusted.has(socket.remoteAddress ?? ''),
    };
  };
}

/** Returns the last address that is not a trusted proxy. Stops at an invalid address, because the proxy before it is not reliable. */
function lastStranger(peer: string, hops: readonly (string | undefined)[], trusted: AddressList): string {
  let address = peer;
  for (const hop of hops.toReversed()) {
    if (hop === undefined) return address;
    address = hop;
    if (!trusted.has(hop)) return address;
  }
  return address;
}

function hopsOf(header: string | readonly string[]): (string | undefined)[] {
  const text = typeof header === 'string' ? header : header.join(',');
  return text.length > longest ? [undefined] : text.split(',').map(addressIn);
}

/** Returns the addresses in a header such as `for=192.0.2.43, for="[2001:db8::1]:4711";proto=https`. */
function forwardedHops(header: string): (string | undefined)[] {
  if (header.length > longest) return [undefined];
  return header.split(',').map((element) => {
    for (const pair of element.split(';')) {
      const [, quoted, token] = /^\s*for\s*=\s*(?:"([^"\\]*)"|([^\s"]+))\s*$/i.exec(pair) ?? [];
      const value = quoted ?? token;
      if (value !== undefined) return addressIn(value);
    }
    return undefined;
  });
}

/** Returns the address without its port, such as `192.0.2.1:80` or `[2001:db8::1]:80`. Undefined for anything else, such as `unknown` and `_hidden`. */
function addressIn(text: string): string | undefined {
  const trimmed = text.trim();
  const [, inBrackets] = /^\[([^\]]+)\](?::\d+)?$/.exec(trimmed) ?? [];
  const [, beforePort] = /^([\d.]+):\d+$/.exec(trimmed) ?? [];
  const address = plainAddress(inBrackets ?? beforePort ?? trimmed);
  return isIP(address) === 0 ? undefined : address;
}
