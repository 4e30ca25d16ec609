import type { buildConnector } from 'undici';
import { Pool, requestTunnel } from '../performance/undici.ts';

/** A proxy that connections are tunnelled through. */
export interface Proxy {
  /** Connects through the proxy; `secure` then makes TLS of the tunnel where the provider has it. */
  through(secure: buildConnector.connector): buildConnector.connector;
  /** Tunnels stay open: they belong to whoever asked for them. */
  close(): Promise<void>;
}

/** A tunnel that did not come about. The sentence names no address: it is for the log, which callers' operators read too. */
class ProxyError extends Error {
  readonly code: string;

  constructor(message: string, code: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProxyError';
    this.code = code;
  }
}

/**
 * Asks a proxy for tunnels with CONNECT, also where the provider speaks plain HTTP: requests and answers then pass as if there were no
 * proxy. The URL may carry a user and a password. undici's own `ProxyAgent` would bring the whole package into each process, makes each
 * request's headers anew, and tells of a refusal as of a call that was given up.
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
          callback(new ProxyError(`The proxy answered ${statusCode}.`, 'PROXY_REFUSED'), null);
        } else if (protocol === 'https:') secure({ ...options, httpSocket: socket as never }, callback);
        else callback(null, socket as never);
      });
    },
    close: () => pool.destroy(),
  };
}

/** The value of `proxy-authorization`; undefined where the URL names nobody. */
export function proxyAuthorization({ username, password }: URL): string | undefined {
  if (username === '' && password === '') return undefined;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

/** undici takes some codes of sockets as a reason to wait for another connection: none of them may reach it from here. */
function unreachable(error: Error & { code?: unknown }): ProxyError {
  const code = typeof error.code === 'string' ? error.code : error.name;
  const late = code === 'UND_ERR_CONNECT_TIMEOUT' || code === 'UND_ERR_HEADERS_TIMEOUT';
  return late
    ? new ProxyError('The proxy did not answer in time.', 'UND_ERR_CONNECT_TIMEOUT')
    : new ProxyError(`The proxy could not be reached (${code}).`, 'PROXY_UNREACHABLE');
}
