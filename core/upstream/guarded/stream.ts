import type { IncomingMessage } from 'node:http';
import { Observable } from 'rxjs';
import { addressList } from '../../model/addresses.ts';
import type { Call } from '../../sdk/call.ts';
import type { Upstream } from '../../sdk/channel.ts';
import type { Download } from '../../sdk/http.ts';
import { GatewayError } from '../../sdk/errors.ts';
import type { FetchSettings } from '../../settings/fetch.ts';
import { requestGuarded, redirectedTo, type GuardedParts, type GuardedRequest } from './connection.ts';
import { readClientUrl } from './address.ts';

/** Returns a function that streams files from URLs of providers. `idle`: maximum time without data, in milliseconds. */
export function createGuardedStream(
  { allow, redirects }: Pick<FetchSettings, 'allow' | 'redirects'>,
  idle: number,
  parts: GuardedParts = {},
): Download {
  const allowed = addressList(allow);
  return async function guardedStream(call, text, headers = {}) {
    let url = readClientUrl(text);
    if (typeof url === 'string') throw notThere();
    for (let hops = 0; ; hops += 1) {
      // oxlint-disable-next-line no-await-in-loop -- each hop says where the next one leads
      const response = await open(call, url, { ...parts, headers, allowed, idle });
      const next = redirectedTo(url, response);
      if (next === undefined) return upstreamOf(call, response);
      response.destroy();
      if (next === 'forbidden' || hops === redirects) throw notThere();
      url = next;
    }
  };
}

async function open(call: Pick<Call, 'onEnd'>, url: URL, wanted: GuardedRequest): Promise<IncomingMessage> {
  const { answer, cancel } = requestGuarded(url, wanted);
  const forget = call.onEnd(cancel);
  try {
    const { request, response } = await answer;
    request.on('close', forget);
    return response;
  } catch (error) {
    forget();
    throw notThere(error);
  }
}

function upstreamOf({ gate }: Pick<Call, 'gate'>, response: IncomingMessage): Upstream {
  const bytes = new Observable<Buffer>((subscriber) => {
    const valve = { pause: () => void response.pause(), resume: () => void response.resume() };
    response.on('data', (chunk: Buffer) => subscriber.next(chunk));
    response.on('close', () => {
      if (response.complete) subscriber.complete();
      else
        subscriber.error(
          new GatewayError('upstream_cut', 'The file ended before it was complete.', { origin: 'upstream' }),
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

/** Returns one error for all problems of an address, so that it reveals nothing about a private network. */
function notThere(cause?: unknown): GatewayError {
  return new GatewayError('upstream_error', 'The file could not be fetched from the provider.', {
    origin: 'upstream',
    cause,
  });
}
