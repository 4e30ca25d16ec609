import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { addressList } from '../../model/addresses.ts';
import type { FetchClientUrl } from '../../sdk/author/client-url.ts';
import { isRequestHeader } from '../../sdk/header-fields.ts';
import type { FetchSettings } from '../../settings/fetch.ts';
import { requestGuarded, type GuardedParts } from './connection.ts';
import { readClientUrl } from './address.ts';

/** Default maximum size of a response body in bytes, and default timeout for its headers in milliseconds. */
const usual = { maxBytes: 4 * 1024 * 1024, timeoutMs: 15_000 };

/** Returns a function with which plugins send requests to URLs that clients give. */
export function createFetchClientUrl(
  { enabled, allow }: Pick<FetchSettings, 'enabled' | 'allow'>,
  parts: GuardedParts = {},
): FetchClientUrl {
  const allowed = addressList(allow);
  return async function fetchClientUrl(text, { method = 'GET', headers = {}, body, signal, ...limits }) {
    const { maxBytes, timeoutMs } = { ...usual, ...limits };
    const url = enabled ? readClientUrl(text) : 'allowed by the settings of the gateway';
    if (typeof url === 'string') throw new Error(`The URL must be ${url}.`);
    const { answer, cancel } = requestGuarded(url, {
      ...parts,
      allowed,
      method,
      headers: forwarded(headers),
      ...(body === undefined ? {} : { body: Buffer.from(body) }),
    });
    const timer = setTimeout(cancel, timeoutMs);
    if (signal?.aborted === true) cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    const forget = (): void => signal?.removeEventListener('abort', cancel);
    try {
      const { request, response } = await answer;
      request.on('close', forget);
      return responseOf(response, maxBytes);
    } catch (error) {
      forget();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  };
}

function forwarded(headers: Readonly<Record<string, string>>): Record<string, string> {
  const kept = Object.entries(headers).filter(([name]) => isRequestHeader(name));
  return Object.fromEntries(kept);
}

/** Statuses whose responses have no body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

function responseOf(response: IncomingMessage, maxBytes: number): Response {
  const { statusCode: status = 502 } = response;
  const headers = new Headers();
  for (const [name, value] of Object.entries(response.headers))
    for (const one of [value ?? []].flat()) headers.append(name, one);
  if (bodiless.has(status)) {
    response.destroy();
    return new Response(null, { status, headers });
  }
  const bytes = Readable.from(limited(response, maxBytes), { objectMode: false });
  return new Response(Readable.toWeb(bytes) as ReadableStream, { status, headers });
}

/** Yields at most this many bytes. Leaving the loop destroys the response, so that its connection is closed. */
async function* limited(response: IncomingMessage, maxBytes: number): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new Error(`The response has more than ${maxBytes} bytes.`);
    yield chunk;
  }
}
