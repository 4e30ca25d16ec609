import type * as undici from 'undici';
import { openProxy } from './proxy.ts';
import { Reader } from './reader.ts';
import { buildConnector, Client, Pool } from '../performance/undici.ts';

/** PEM texts, and how a provider's certificate is checked. */
export interface TlsOptions {
  /** In place of the certificate authorities that Node trusts. */
  readonly ca?: string | readonly string[] | undefined;
  /** The gateway's own certificate and its key. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name that is asked for, and that the certificate must carry. */
  readonly servername?: string | undefined;
  /** False: any certificate will do. */
  readonly verify?: boolean | undefined;
}

/** How providers are connected to. */
export interface ConnectionOptions {
  /** Longest wait for a connection, in milliseconds. */
  readonly connectTimeout: number;
  /** Longest silence of a provider, before and between bytes, in milliseconds. It counts from when the request was sent. */
  readonly idleTimeout: number;
  readonly tls?: TlsOptions | undefined;
  /** `http://user:password@host:port`: connections are tunnelled through it. */
  readonly proxy?: string | undefined;
}

/** Kept-alive connections, by origin. */
export interface Connections {
  /** Where requests to an origin (`https://host:port`) go. `unused`: to a connection that carries nothing before it and nothing after. */
  to(origin: string, unused: boolean): undici.Dispatcher;
  /** Closes all at once, also those in use. */
  close(): Promise<void>;
}

/** Opens connections when they are needed. */
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
  // undici asks for the name in a `host` header, where there is one, before that of the options.
  return (options, callback) => connect({ ...options, servername }, callback);
}

/** One connection and those that follow when it was closed. It knows whether it has carried a request before. */
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

  /** A request goes out. True when it is not the first. */
  use(): boolean {
    const before = this.#used;
    this.#used = true;
    return before;
  }
}
