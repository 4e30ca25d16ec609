/** Serves clients of 2026-07-28, which have no sessions: of them only streams of notifications last. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Server, ServerEvent } from '@modelcontextprotocol/server';
import type { Observable } from 'rxjs';
import { caller, GatewayError, type Call, type GatewayEvent, type Log } from 'sluice';
import type { ServedConfig } from '../options.ts';
import type { ToolServer } from '../servers/index.ts';
import { rightsOf, type Rights } from './access.ts';
import { authInfoOf, callOfAuth } from './handlers.ts';
import { eventsOf, type OpenStreams, type ReadingWatch } from './http.ts';
import type { McpServerSdk } from './sdk.ts';
import { maxSubscribed, type Subscriber, type Subscriptions } from './subscriptions.ts';
import type { ListKind, Upstream } from './upstream.ts';
import type { View } from './view.ts';

/** Dependencies of the endpoint for clients without sessions. */
export interface StatelessParts {
  readonly sdk: McpServerSdk;
  readonly log: Log;
  readonly subscriptions: Subscriptions;
  readonly options: Parameters<typeof rightsOf>[1] & {
    readonly limits: { readonly sessions: number; readonly sessionsPerKey: number };
  };
  /** Returns a server object for one request. */
  server(call: Call): Server;
  view(call: Call): View;
}

/** Stream of notifications. */
class Listener implements Subscriber {
  readonly keyId: string;
  readonly subscribed = new Map<string, ToolServer>();
  readonly #rights: Rights;
  /** Number of responses whose client does not read fast enough: 0 or 1. */
  congested = 0;
  /** Set by the SDK when the stream has begun. */
  deliver: ((event: ServerEvent) => void) | undefined;

  constructor(keyId: string, rights: Rights) {
    this.keyId = keyId;
    this.#rights = rights;
  }

  changed(config: ServedConfig, kind: ListKind): void {
    if (this.#rights.mayUse(config)) this.#notify({ kind: `${kind}_list_changed` });
  }

  updated(uri: string): void {
    this.#notify({ kind: 'resource_updated', uri });
  }

  #notify(event: ServerEvent): void {
    if (this.congested === 0) this.deliver?.(event);
  }
}

/** The endpoint for these clients. */
export class Stateless {
  readonly #parts: StatelessParts;
  readonly #handler: ReturnType<McpServerSdk['createMcpHandler']>;
  readonly #listeners = new Set<Listener>();
  /** The stream that a request opens: the SDK does not say for which request it waits for events. */
  readonly #opening = new AsyncLocalStorage<Listener>();

  constructor(parts: StatelessParts) {
    const { sdk, log, options } = parts;
    this.#parts = parts;
    this.#handler = sdk.createMcpHandler(({ authInfo }) => parts.server(callOfAuth(authInfo)), {
      legacy: 'reject',
      maxSubscriptions: options.limits.sessions,
      onerror: (error) => log.debug({ error }, 'a request of MCP was refused'),
      bus: {
        publish: () => undefined,
        subscribe: (deliver) => {
          const listener = this.#opening.getStore();
          if (listener !== undefined) listener.deliver = deliver;
          return () => undefined;
        },
      },
    });
  }

  /** Clients that wait for notifications. */
  get listeners(): Iterable<Subscriber> {
    return this.#listeners;
  }

  /** Answers a request. `endless` is where the stream of a request for notifications is registered. */
  async handle(
    call: Call,
    request: Request,
    parsedBody: unknown,
    endless: OpenStreams | undefined,
  ): Promise<Observable<GatewayEvent>> {
    const authInfo = authInfoOf(call);
    if (endless === undefined)
      return eventsOf(call, await this.#handler.fetch(request, { parsedBody, authInfo }));
    const listener = this.#listener(call);
    const uris = urisOf(parsedBody);
    if (uris.length > maxSubscribed)
      throw new GatewayError('invalid_request', `A client can subscribe to ${maxSubscribed} resources.`);
    const response = await this.#opening.run(listener, () =>
      this.#handler.fetch(request, { parsedBody, authInfo }),
    );
    return eventsOf(call, response, this.#watch(call, listener, uris), endless);
  }

  /** Notifies the clients that may use the server that one of its lists has changed. */
  changed({ config }: Upstream, kind: ListKind): void {
    for (const listener of this.#listeners) listener.changed(config, kind);
  }

  async close(): Promise<void> {
    await this.#handler.close();
  }

  #listener(call: Call): Listener {
    const { options } = this.#parts;
    const key = call.get(caller);
    const keyId = key?.id ?? '';
    let own = 0;
    for (const other of this.#listeners) if (other.keyId === keyId) own += 1;
    if (own >= options.limits.sessionsPerKey)
      throw new GatewayError('rate_limit_exceeded', 'The key has too many open streams of notifications.', {
        retryAfter: 1,
      });
    return new Listener(keyId, rightsOf(key, options));
  }

  #watch(call: Call, listener: Listener, uris: readonly string[]): ReadingWatch {
    return {
      opened: () => {
        this.#listeners.add(listener);
        void this.#subscribe(call, listener, uris);
      },
      congested: (isFull) => void (listener.congested += isFull ? 1 : -1),
      closed: () => {
        this.#listeners.delete(listener);
        void this.#parts.subscriptions.end(listener);
      },
    };
  }

  async #subscribe(call: Call, listener: Listener, uris: readonly string[]): Promise<void> {
    const { subscriptions, log } = this.#parts;
    if (uris.length === 0 || listener.deliver === undefined) return;
    const view = this.#parts.view(call);
    for (const uri of uris)
      try {
        // oxlint-disable no-await-in-loop -- one after the other, because nobody waits for it
        const upstream = await view.ownerOf(uri);
        if (!this.#listeners.has(listener)) return;
        if (upstream !== undefined) await subscriptions.set(listener, upstream, uri, true);
        // oxlint-enable no-await-in-loop
      } catch (error) {
        log.debug({ error }, 'a resource of an MCP server could not be subscribed to');
      }
    if (!this.#listeners.has(listener)) await subscriptions.end(listener);
  }
}

/** Returns the resources of whose changes a request wants to hear. The SDK checks the rest of the request. */
function urisOf(body: unknown): readonly string[] {
  const { params } = body as { readonly params?: { readonly notifications?: unknown } };
  const { resourceSubscriptions: uris } = (params?.notifications ?? {}) as {
    readonly resourceSubscriptions?: unknown;
  };
  return Array.isArray(uris) ? uris.filter((uri) => typeof uri === 'string') : [];
}
