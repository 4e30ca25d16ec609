/** The library that speaks OpenID Connect: an optional package, loaded where a provider is configured. */
import type * as oidc from 'openid-client';
import { requirePackage, type Services } from 'sluice';

/** Exports of the library. */
export type OidcLibrary = typeof oidc;

/** Loads the library. Throws with what to install where it is missing. */
export async function loadOidc(): Promise<OidcLibrary> {
  requirePackage('openid-client', '6', 'sign in by OpenID Connect', import.meta.url);
  return await import('openid-client');
}

/** Timeout of a request to a provider in milliseconds, and maximum size of its response in bytes. */
const limits = { timeout: 8_000, limit: 512 * 1024 };

/** Returns the `fetch` that the library gets: over the gateway's own connections, without redirects, in bounded time and memory. */
export function boundedFetch(http: Services): oidc.CustomFetch {
  return async (url, { body, headers, method, signal }) => {
    const answer = await http.ask({
      url,
      method: method === 'POST' ? 'POST' : 'GET',
      headers,
      ...(body === undefined || body === null ? {} : { body: textOf(body) }),
      ...limits,
      signal,
    });
    const plain = new Headers();
    for (const name of ['content-type', 'www-authenticate', 'cache-control', 'date']) {
      const value = answer.headers[name];
      if (typeof value === 'string') plain.set(name, value);
    }
    const isEmpty = answer.status === 204 || answer.status === 304 || answer.bytes.length === 0;
    // A status that Response does not take is one that no provider may answer with.
    const status = answer.status >= 200 && answer.status <= 599 ? answer.status : 502;
    return new Response(isEmpty ? null : new Uint8Array(answer.bytes), { status, headers: plain });
  };
}

function textOf(body: unknown): string {
  if (typeof body === 'string' || body instanceof URLSearchParams) return body.toString();
  throw new TypeError('A request to a provider of identities must be a form.');
}
