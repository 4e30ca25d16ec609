/** Subscriptions of clients to resources. A server is subscribed to once, for as long as any client is. */
import { GatewayError, type Log } from 'sluice';
import type { ToolServer } from '../servers/index.ts';
import type { Upstream } from './upstream.ts';

/** Maximum number of resources to which one client subscribes. */
export const maxSubscribed = 200;

/** Maximum number of characters of their URIs. */
const maxUri = 4_096;

/** Initial and maximum delay in milliseconds before subscribing again after a connection has ended. */
const backoff = { firstMs: 500, mostMs: 60_000 };

/** A client that receives notifications of changes. */
export interface Subscriber {
  /** URIs to which the client subscribed, with their servers. */
  readonly subscribed: Map<string, ToolServer>;
  /** Notifies the client that a resource has changed. */
  updated(uri: string): void;
}

/** Manages the subscriptions of all clients. */
export class Subscriptions {
  readonly #subscribers: () => Iterable<Subscriber>;
  readonly #log: Log;
  /** Timers of servers that are to be subscribed to again. */
  readonly #renewing = new Map<ToolServer, NodeJS.Timeout>();

  /** `subscribers` returns the clients that are there now. */
  constructor(subscribers: () => Iterable<Subscriber>, log: Log) {
    this.#subscribers = subscribers;
    this.#log = log;
  }

  /** Subscribes a client, or ends that. */
  async set({ subscribed }: Subscriber, { server }: Upstream, uri: string, isOn: boolean): Promise<void> {
    if (!isOn) {
      if (subscribed.delete(uri)) await this.#release(uri, server);
      return;
    }
    if (uri.length > maxUri)
      throw new GatewayError('invalid_request', `A URI may have ${maxUri} characters.`);
    const isNew = !subscribed.has(uri);
    if (isNew && subscribed.size >= maxSubscribed)
      throw new GatewayError('invalid_request', `A client can subscribe to ${maxSubscribed} resources.`);
    // Counts before the server has answered, because further requests may come meanwhile.
    subscribed.set(uri, server);
    try {
      await server.run((client, options) => client.subscribeResource({ uri }, options));
    } catch (error) {
      if (isNew) subscribed.delete(uri);
      throw error;
    }
  }

  /** Notifies the clients that subscribed to a resource at this server. */
  updated({ server }: Upstream, uri: string): void {
    for (const subscriber of this.#subscribers())
      if (subscriber.subscribed.get(uri) === server) subscriber.updated(uri);
  }

  /** Subscribes to a server again, whose connection has ended and all its subscriptions with it. */
  renew({ name, server }: Pick<Upstream, 'name' | 'server'>, waitMs: number = backoff.firstMs): void {
    if (this.#wanted(server).size === 0 || this.#renewing.has(server)) return;
    const again = async (): Promise<void> => {
      const uris = this.#wanted(server);
      try {
        for (const uri of uris)
          // oxlint-disable-next-line no-await-in-loop -- one request at a time, beside those of callers
          await server.run((client, options) => client.subscribeResource({ uri }, options));
      } catch (error) {
        this.#log.debug({ server: name, error }, 'an MCP server could not be subscribed to again');
        this.#renewing.delete(server);
        this.renew({ name, server }, Math.min(2 * waitMs, backoff.mostMs));
        return;
      }
      this.#renewing.delete(server);
      // Changes in the meantime were not reported.
      for (const subscriber of this.#subscribers())
        for (const uri of uris) if (subscriber.subscribed.get(uri) === server) subscriber.updated(uri);
    };
    this.#renewing.set(server, setTimeout(() => void again(), waitMs).unref());
  }

  /** Ends the subscriptions of a client that has left. */
  async end({ subscribed }: Subscriber): Promise<void> {
    const held = [...subscribed];
    subscribed.clear();
    await Promise.allSettled(held.map(([uri, server]) => this.#release(uri, server)));
  }

  /** Subscribes to nothing again. */
  close(): void {
    for (const timer of this.#renewing.values()) clearTimeout(timer);
  }

  #wanted(server: ToolServer): ReadonlySet<string> {
    const uris = new Set<string>();
    for (const { subscribed } of this.#subscribers())
      for (const [uri, holder] of subscribed) if (holder === server) uris.add(uri);
    return uris;
  }

  /** Unsubscribes from a server that no client is subscribed to any more. */
  async #release(uri: string, server: ToolServer): Promise<void> {
    for (const { subscribed } of this.#subscribers()) if (subscribed.get(uri) === server) return;
    await server.run((client, options) => client.unsubscribeResource({ uri }, options));
  }
}
