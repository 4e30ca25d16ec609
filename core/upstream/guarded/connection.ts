import { Resolver } from 'node:dns/promises';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import type { AddressList } from '../../model/addresses.ts';
import { request as requestHttp } from '../node-http.ts';
import { hostOf, isOpenAddress, mayConnect, readClientUrl } from './address.ts';

/** What a name resolves to. */
export type ResolveName = (name: string) => {
  readonly addresses: Promise<readonly string[]>;
  cancel(): void;
};

/** What tests put in place of the world. */
export interface GuardedParts {
  readonly resolve?: ResolveName;
  /** PEM text of a certificate authority that is trusted instead of the public ones. */
  readonly authority?: string;
}

/** What is asked for, and of whom it may be. */
export interface GuardedRequest extends GuardedParts {
  /** Addresses that are open although they are not public. */
  readonly allowed: AddressList;
  readonly headers: Readonly<Record<string, string>>;
  /** Default: GET. */
  readonly method?: string;
  readonly body?: Buffer;
  /** Longest silence, in milliseconds. Without it there is none. */
  readonly idle?: number;
}

/** The beginning of an answer. Whoever has it destroys the request when nothing more is wanted of it. */
export interface GuardedAnswer {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
}

/** A question on its way. */
export interface GuardedQuestion {
  /** Rejects when the address is not open, and with whatever else goes wrong: none of it is for the ears of a client. */
  readonly answer: Promise<GuardedAnswer>;
  /** Ends it, however far it has come. */
  cancel(): void;
}

/**
 * Asks for what is at a URL that a client or a provider gave: the one way to such addresses. It connects to addresses that were checked,
 * and to no other: the name is resolved once, and not again by whoever connects. No proxy is asked, and no redirect is followed: see
 * {@link redirectedTo}.
 */
export function askGuarded(url: URL, wanted: GuardedRequest): GuardedQuestion {
  let stop: (() => void) | undefined;
  let cancelled = false;
  const ask = async (): Promise<GuardedAnswer> => {
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
      request.on('timeout', () => request.destroy(new Error('The time is over.')));
      request.on('error', reject);
      request.on('close', () => reject(notOpen()));
      request.end(wanted.body);
    });
  };
  return {
    answer: ask(),
    cancel() {
      cancelled = true;
      stop?.();
    },
  };
}

/** Where an answer sends us: undefined when it is to be read, `forbidden` when it is not to be followed. */
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
    // A connection of its own, closed behind the answer: none is shared between callers.
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
  return new Error('The address is not open, or it does not answer.');
}

/** Answers every question with the addresses that were checked. */
function onlyThese(addresses: readonly string[]): LookupFunction {
  const entries = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) => {
    const [first] = entries;
    if (options.all === true) callback(null, entries);
    else if (first !== undefined) callback(null, first.address, first.family);
  };
}

/**
 * Asks the name servers, not the system: the hosts file holds private names, and the system's own way keeps one of a few threads busy for
 * as long as a stranger's name server likes.
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
