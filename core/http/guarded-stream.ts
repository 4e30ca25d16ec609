import { lookup } from 'node:dns';
import { request as requestHttp, type IncomingMessage, type RequestOptions } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import { Observable } from 'rxjs';
import { addressList, type AddressList } from '../addresses.ts';
import type { Call } from '../call.ts';
import type { Upstream } from '../channel.ts';
import { GatewayError } from '../errors.ts';
import type { FetchSettings } from './fetch-settings.ts';
import { hostOf, isOpenAddress, mayConnect, readClientUrl } from './guarded-fetch-address.ts';

/**
 * Streams a file from a URL that a provider gave, from public addresses alone, whatever its size. Resolves when status and headers are
 * there; rejects with GatewayError (origin upstream) that tells no address. Reading follows `call.gate` and ends with the call.
 */
export type GuardedStream = (
  call: Pick<Call, 'gate' | 'onEnd'>,
  url: string,
  headers?: Readonly<Record<string, string>>,
) => Promise<Upstream>;

/** Such streams, with these settings. `idle` is the longest silence, in milliseconds. */
export function createGuardedStream(
  { allow, redirects }: Pick<FetchSettings, 'allow' | 'redirects'>,
  idle: number,
): GuardedStream {
  const allowed = addressList(allow);
  return async function guardedStream(call, text, headers = {}) {
    let url = urlOf(text);
    for (let hops = 0; ; hops += 1) {
      if (!mayConnect(url, allowed)) throw notThere();
      // oxlint-disable-next-line no-await-in-loop -- each hop says where the next one leads
      const response = await open(call, url, { headers, allowed, idle });
      const next = locationOf(response);
      if (next === undefined) return upstreamOf(call, response);
      response.destroy();
      if (hops === redirects) throw notThere();
      const following = urlOf(URL.parse(next, url.href)?.href ?? '');
      if (url.protocol === 'https:' && following.protocol === 'http:') throw notThere();
      url = following;
    }
  };
}

function urlOf(text: string): URL {
  const url = readClientUrl(text);
  if (typeof url === 'string') throw notThere();
  return url;
}

interface Opening {
  readonly headers: Readonly<Record<string, string>>;
  readonly allowed: AddressList;
  readonly idle: number;
}

function open(
  call: Pick<Call, 'onEnd'>,
  url: URL,
  { headers, allowed, idle }: Opening,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options: RequestOptions = {
      method: 'GET',
      hostname: hostOf(url),
      path: `${url.pathname}${url.search}`,
      headers: { ...headers, host: url.host, 'accept-encoding': 'identity', 'user-agent': 'sluice' },
      agent: false,
      timeout: idle,
      lookup: onlyOpen(allowed),
      ...(url.port === '' ? {} : { port: url.port }),
    };
    const request = (url.protocol === 'https:' ? requestHttps : requestHttp)(options);
    const forget = call.onEnd(() => request.destroy());
    let settled = false;
    const fail = (error: GatewayError): void => {
      if (settled) return;
      settled = true;
      forget();
      reject(error);
    };
    request.on('timeout', () => request.destroy(new Error('The time is over.')));
    request.on('error', (cause) => fail(notThere(cause)));
    request.on('close', () => {
      forget();
      fail(notThere());
    });
    request.on('response', (response) => {
      settled = true;
      // Until somebody reads it: a break in between must not end the process.
      response.on('error', () => {});
      resolve(response);
    });
    request.end();
  });
}

/** Looks a name up once, and gives the addresses to whoever connects when all of them may be connected to. */
function onlyOpen(allowed: AddressList): LookupFunction {
  return (name, options, callback) => {
    lookup(name, { ...options, all: true }, (error, found) => {
      const [first] = found ?? [];
      if (error !== null || first === undefined)
        callback(error ?? new Error('There is no such name.'), '', 0);
      else if (!found.every(({ address }) => isOpenAddress(address, allowed)))
        callback(new Error('The name leads to an address that is not public.'), '', 0);
      else if (options.all === true) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };
}

function locationOf({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  return [301, 302, 303, 307, 308].includes(statusCode) ? (headers.location ?? '') : undefined;
}

function upstreamOf({ gate }: Pick<Call, 'gate'>, response: IncomingMessage): Upstream {
  const bytes = new Observable<Buffer>((subscriber) => {
    const valve = { pause: () => void response.pause(), resume: () => void response.resume() };
    response.on('data', (chunk: Buffer) => subscriber.next(chunk));
    response.on('close', () => {
      if (response.complete) subscriber.complete();
      else
        subscriber.error(
          new GatewayError('upstream_cut', 'The file was cut on its way.', { origin: 'upstream' }),
        );
    });
    gate.attach(valve);
    return () => {
      gate.detach(valve);
      response.destroy();
    };
  });
  return { status: response.statusCode ?? 0, headers: response.headers, bytes };
}

/** One sentence for all that can be wrong with where it is: it tells nobody what there is in a private network. */
function notThere(cause?: unknown): GatewayError {
  return new GatewayError('upstream_error', 'The file could not be fetched from the provider.', {
    origin: 'upstream',
    cause,
  });
}
