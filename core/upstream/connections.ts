/** Pools of kept-alive HTTP connections to providers, with their TLS options, proxy and timeouts. */
import type * as undici from 'undici';
import { openProxy } from './proxy.ts';
import { Reader } from './reader.ts';
import { buildConnector, Client, Pool } from '../performance/undici.ts';

/** Certificates as PEM texts, and the verification of a provider's certificate. */
export interface TlsOptions {
  /** Certificate authorities in place of those that Node trusts. */
  readonly ca?: string | readonly string[] | undefined;
  /** The gateway's own certificate and its key. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** Server name for SNI, which the certificate must have. */
  readonly servername?: string | undefined;
  /** False: the certificate is not verified. */
  readonly verify?: boolean | undefined;
}

/** Options of the connections of a channel. */
export interface ConnectionOptions {
  /** Timeout for a connection, in milliseconds. */
  readonly connectTimeout: number;
  /** Maximum silence of a provider, before and between bytes, in milliseconds. It begins when the request was sent. */
  readonly idleTimeout: number;
  readonly tls?: TlsOptions | undefined;
  /** `http://user:password@host:port`: connections are tunnelled through this proxy. */
  readonly proxy?: string | undefined;
}

/** Kept-alive connections, by origin. */
export interface Connections {
  /** Returns the dispatcher for an origin (`https://host:port`). `unused`: one for connections that carry a single request. */
  to(origin: string, unused: boolean): undici.Dispatcher;
  /** Closes all connections, also those in use. */
  close(): Promise<void>;
}

/** Returns connections, which are opened on demand. */
export function openConnections(options: ConnectionOptions): Connections {
  const proxy = options.proxy === undefined ? undefined : openProxy(options.proxy, options.connectTimeout);
  const direct = connector(options);
  const connect = proxy === undefined ? direct : proxy.through(direct);
  const kept = new Map<string, undici.Pool>();
  const once = new Map<string, undici.Pool>();
  return {
    to(origin, unused) {
      const pools = unused ? once : kept;
      let pool = pools.get(origin);
      if (pool === undefined) {
        pool = new Pool(origin, {
          headersTimeout: options.idleTimeout,
          bodyTimeout: options.idleTimeout,
          connect,
          maxHeaderSize: 64 * 1024,
          factory: (url, own) => new ProviderConnection(url, own),
        });
        pools.set(origin, pool);
      }
      return pool;
    },
    async close() {
      await Promise.all([...kept.values(), ...once.values()].map((pool) => pool.destroy()));
      await proxy?.close();
    },
  };
}

function connector({ connectTimeout, tls = {} }: ConnectionOptions): undici.buildConnector.connector {
  const { ca, cert, key, servername, verify = true } = tls;
  const connect = buildConnector({
    timeout: connectTimeout,
    ...(ca === undefined ? {} : { ca: typeof ca === 'string' ? ca : [...ca] }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    rejectUnauthorized: verify,
  });
  if (servername === undefined) return connect;
  // undici uses the name in a `host` header, where there is one, before that of the options.
  return (options, callback) => connect({ ...options, servername }, callback);
}

/** A connection and its successors after it was closed. Remembers if the current one has carried a request before. */
export class ProviderConnection extends Client {
  #used = false;

  constructor(origin: URL, options: undici.Client.Options) {
    super(origin, options);
    this.on('connect', () => {
      this.#used = false;
    });
  }

  override dispatch(
    options: undici.Dispatcher.DispatchOptions,
    handler: undici.Dispatcher.DispatchHandler,
  ): boolean {
    if (handler instanceof Reader) handler.over(this);
    return super.dispatch(options, handler);
  }

  /** Called when a request is sent. Returns true when it is not the first. */
  use(): boolean {
    const before = this.#used;
    this.#used = true;
    return before;
  }
}
