/** Placeholder for a key, which each request replaces by its credential. */
import { randomUUID } from 'node:crypto';
import type { Call } from '../../sdk/call.ts';
import type { ClientCredential } from '../../sdk/client-credential.ts';
import type { ChannelTools } from '../../sdk/define.ts';

type Headers = Readonly<Record<string, string>>;

/** A request without the key of its channel. */
type Unauthorized = { readonly url: string; readonly headers: Headers };

/**
 * Placeholder that a channel kind gets as its key when each request gets its credential later, so that each kind sets the credential in its own
 * header. The placeholder itself is never sent.
 */
export class StandIn {
  readonly key = `stand-in-${randomUUID()}`;

  /** Returns the request with the credential in place of the placeholder. Removes headers with the placeholder when there is no key. */
  filled<R extends Unauthorized>(request: R, credential: ClientCredential | undefined): R {
    const { key } = this;
    const value = credential?.kind === 'key' ? credential.value : undefined;
    const headers: { [name: string]: string } = {};
    for (const [name, text] of Object.entries(request.headers)) {
      if (!text.includes(key)) headers[name] = text;
      else if (value !== undefined) headers[name] = text.replaceAll(key, value);
    }
    if (credential?.kind === 'token') headers['authorization'] = `Bearer ${credential.value}`;
    return { ...request, headers, url: this.#address(request.url, value) };
  }

  /** Throws when a channel sends its key in a request that exchanges it for another credential, because the placeholder cannot be exchanged. */
  check(request: { readonly url: string; readonly body?: string }): void {
    if (request.body?.includes(this.key) === true)
      throw new Error('This kind of channel exchanges its key for a token. Set its option "key".');
  }

  #address(url: string, value: string | undefined): string {
    if (!url.includes(this.key)) return url;
    const filled = new URL(url);
    for (const [name, text] of Array.from(filled.searchParams)) {
      if (!text.includes(this.key)) continue;
      if (value === undefined) filled.searchParams.delete(name);
      else filled.searchParams.set(name, text.replaceAll(this.key, value));
    }
    return filled.href;
  }
}

/** Returns the tools of a channel whose requests get their credential from `credentialOf`. `credentialOf` rejects or throws without one. */
export function fillingIn(
  tools: ChannelTools,
  standIn: StandIn,
  credentialOf: (call: Call | undefined) => ClientCredential | undefined,
): ChannelTools {
  const { http, sockets } = tools;
  return {
    ...tools,
    http: {
      ...http,
      send: (call, request) => http.send(call, standIn.filled(request, credentialOf(call))),
      async read(request) {
        standIn.check(request);
        return http.read(standIn.filled(request, credentialOf(undefined)));
      },
    },
    sockets: {
      ...sockets,
      connect: async (call, request) => sockets.connect(call, standIn.filled(request, credentialOf(call))),
    },
  };
}
