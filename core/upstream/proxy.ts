/** HTTP CONNECT tunnels through a proxy for connections to providers. */
import type { buildConnector } from 'undici';
import { Pool, requestTunnel } from '../performance/undici.ts';

/** A proxy that connections are tunnelled through. */
export interface Proxy {
  /** Connects through the proxy; `secure` then makes TLS of the tunnel where the provider has it. */
  through(secure: buildConnector.connector): buildConnector.connector;
  /** Closes the connections to the proxy. Open tunnels stay: their users close them. */
  close(): Promise<void>;
}

/** Error of a failed tunnel. The message contains no address. */
class ProxyError extends Error {
  readonly code: string;

  constructor(message: string, code: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProxyError';
    this.code = code;
  }
}

/**
 * Returns a proxy. Tunnels are opened with CONNECT, also where the provider speaks plain HTTP, so that requests and responses pass unchanged.
 * The URL may have a user and a password. Does not use undici's own `ProxyAgent`, because it would load the whole package into each process,
 * rebuilds the headers of each request, and reports a refusal as an aborted request.
 */
export function openProxy(address: string, connectTimeout: number): Proxy {
  const url = new URL(address);
  const authorization = proxyAuthorization(url);
  const pool = new Pool(url.origin, {
    connect: { timeout: connectTimeout },
    headersTimeout: connectTimeout,
  });
  return {
    through: (secure) => (options, callback) => {
      const { host = options.hostname, port, protocol } = options;
      const path = port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host;
      const headers = {
        host: path,
        ...(authorization === undefined ? {} : { 'proxy-authorization': authorization }),
      };
      requestTunnel.call(pool, { path, headers }, (error, data) => {
        if (error !== null) {
          callback(unreachable(error), null);
          return;
        }
        const { socket, statusCode } = data;
        if (statusCode < 200 || statusCode > 299) {
          socket.on('error', () => {}).destroy();
          callback(new ProxyError(`The proxy returned status ${statusCode}.`, 'PROXY_REFUSED'), null);
        } else if (protocol === 'https:') secure({ ...options, httpSocket: socket as never }, callback);
        else callback(null, socket as never);
      });
    },
    close: () => pool.destroy(),
  };
}

/** Returns the value of `proxy-authorization`; undefined where the URL has no credentials. */
export function proxyAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

/** Converts an error. Removes codes of sockets, because undici would wait for another connection for some of them. */
function unreachable(error: Error & { code?: unknown }): ProxyError {
  const code = typeof error.code === 'string' ? error.code : error.name;
  const late = code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'UND_ERR_HEADERS_TIMEOUT';
  return late
    ? new ProxyError('The proxy did not respond in time.', 'UND_ERR_CONNECT_TIMEOUT')
    : new ProxyError(`The proxy could not be reached (${code}).`, 'PROXY_UNREACHABLE');
}
