/**
 * Sends HTTP requests to URLs given by clients or providers, to checked public addresses only (protection against SSRF and DNS rebinding).
 */
import { Resolver } from 'node:dns/promises';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { AddressList } from '../../model/addresses.ts';
import { request as requestHttp } from '../node-http.ts';
import { hostOf, isOpenAddress, mayConnect, readClientUrl } from './address.ts';

/** Resolves a host name to its addresses. */
export type ResolveName = (name: string) => {
  readonly addresses: Promise<readonly string[]>;
  cancel(): void;
};

/** Parts that tests replace. */
export interface GuardedParts {
  readonly resolve?: ResolveName;
  /** PEM text of a certificate authority that is trusted instead of the public ones. */
  readonly authority?: string;
}

/** Options of a request. */
export interface GuardedRequest extends GuardedParts {
  /** Addresses that are allowed although they are not public. */
  readonly allowed: AddressList;
  readonly headers: Readonly<Record<string, string>>;
  /** Default: GET. */
  readonly method?: string;
  readonly body?: Buffer;
  /** Maximum silence in milliseconds. Absent: no limit. */
  readonly idle?: number;
}

/** A response whose headers have come. The receiver destroys the request when it needs no more of it. */
export interface GuardedAnswer {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
}

/** A pending request. */
export interface GuardedQuestion {
  /** Rejects when the address is not allowed, and for all other failures. Clients must not see the reason. */
  readonly answer: Promise<GuardedAnswer>;
  /** Ends the request in any state. */
  cancel(): void;
}

/**
 * Sends a request. All requests to URLs of clients and providers must use this function. It resolves the name once and connects only to the
 * checked addresses. Uses no proxy and follows no redirect: see {@link redirectedTo}.
 */
export function requestGuarded(url: URL, wanted: GuardedRequest): GuardedQuestion {
  let stop: (() => void) | undefined;
  let cancelled = false;
  const send = async (): Promise<GuardedAnswer> => {
    if (!mayConnect(url, wanted.allowed)) throw notOpen();
    const host = hostOf(url);
    let addresses: readonly string[] = [host];
    if (isIP(host) === 0) {
      const resolving = (wanted.resolve ?? resolvePublicly)(host);
      stop = () => resolving.cancel();
      addresses = await resolving.addresses;
    }
    if (cancelled || addresses.length === 0) throw notOpen();
    if (!addresses.every((address) => isOpenAddress(address, wanted.allowed))) throw notOpen();
    return await new Promise((resolve, reject) => {
      const request = begin(url, addresses, wanted);
      stop = () => request.destroy();
      request.on('response', (response) => {
        // The listener stays: a socket that breaks later must not end the process.
        response.on('error', () => {});
        const remote = response.socket.remoteAddress;
        if (remote !== undefined && isOpenAddress(remote, wanted.allowed)) resolve({ request, response });
        else request.destroy(notOpen());
      });
      request.on('timeout', () => request.destroy(new Error('The time limit was reached.')));
      request.on('error', reject);
      request.on('close', () => reject(notOpen()));
      request.end(wanted.body);
    });
  };
  return {
    answer: send(),
    cancel() {
      cancelled = true;
      stop?.();
    },
  };
}

/** Returns the URL to which a response redirects: undefined for no redirect, `forbidden` for one that must not be followed. */
export function redirectedTo(
  from: URL,
  { statusCode = 0, headers }: IncomingMessage,
): URL | 'forbidden' | undefined {
  if (![301, 302, 303, 307, 308].includes(statusCode)) return undefined;
  const { location = '' } = headers;
  const resolved = location === '' ? null : URL.parse(location, from.href);
  const next = resolved === null ? '' : readClientUrl(resolved.href);
  if (typeof next === 'string') return 'forbidden';
  return from.protocol === 'https:' && next.protocol === 'http:' ? 'forbidden' : next;
}

function begin(
  url: URL,
  addresses: readonly string[],
  { headers, method = 'GET', body, idle, authority }: GuardedRequest,
): ClientRequest {
  const host = hostOf(url);
  const options: RequestOptions = {
    method,
    hostname: host,
    path: `${url.pathname}${url.search}`,
    headers: {
      ...headers,
      ...(body === undefined ? {} : { 'content-length': String(body.length) }),
      host: url.host,
      'accept-encoding': 'identity',
      'user-agent': 'sluice',
    },
    // A new connection for each request, closed after the response, because callers must not share one.
    agent: false,
    maxHeaderSize: 16 * 1024,
    lookup: onlyThese(addresses),
    ...(idle === undefined ? {} : { timeout: idle }),
    ...(url.port === '' ? {} : { port: url.port }),
  };
  if (url.protocol !== 'https:') return requestHttp(options);
  return requestHttps({
    ...options,
    rejectUnauthorized: true,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ...(authority === undefined ? {} : { ca: authority }),
  });
}

function notOpen(): Error {
  return new Error('The address is unreachable or not allowed.');
}

/** Returns a lookup function that always returns the checked addresses. */
function onlyThese(addresses: readonly string[]): LookupFunction {
  const entries = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) => {
    const [first] = entries;
    if (options.all === true) callback(null, entries);
    else if (first !== undefined) callback(null, first.address, first.family);
  };
}

/**
 * Queries the name servers, not the system's resolver, because the hosts file has private names and a slow name server would block one of the
 * few threads of the thread pool.
 */
const resolvePublicly: ResolveName = (name) => {
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  const both = [resolver.resolve4(name), resolver.resolve6(name)];
  return {
    addresses: Promise.allSettled(both).then((answers) =>
      answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : [])),
    ),
    cancel: () => resolver.cancel(),
  };
};
