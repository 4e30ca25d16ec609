/** Opens sockets through an HTTP proxy. */
import type { ClientRequestArgs } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect as secureConnect, type ConnectionOptions } from 'node:tls';
import { Agent, request } from './node-http.ts';
import { proxyAuthorization } from './proxy.ts';

type Done = (error: Error | null, stream: Duplex) => void;

/**
 * Agent that connects through an HTTP proxy with CONNECT, for requests that undici does not send. Plain and TLS addresses need one each. The package
 * `https-proxy-agent` is not used, because it buffers the response of the proxy without a limit, and returns an error of the proxy as a response of the host.
 */
export class ConnectAgent extends Agent {
  readonly #proxy: URL;
  readonly #timeout: number;
  readonly #secure: ConnectionOptions | undefined;

  /** `secure`: TLS options of the host; undefined for a plain connection. `timeout` in milliseconds. */
  constructor(proxy: string, timeout: number, secure: ConnectionOptions | undefined) {
    super();
    this.#proxy = new URL(proxy);
    this.#timeout = timeout;
    this.#secure = secure;
    // Node checks these members before it uses an agent for a TLS address.
    if (secure !== undefined) Object.assign(this, { protocol: 'https:', defaultPort: 443 });
  }

  override createConnection({ host, port }: ClientRequestArgs, done: Done): null {
    const { hostname, port: proxyPort } = this.#proxy;
    const target = `${host}:${port}`;
    const authorization = proxyAuthorization(this.#proxy);
    const outgoing = request({
      host: hostname,
      port: proxyPort === '' ? 80 : proxyPort,
      method: 'CONNECT',
      path: target,
      agent: false,
      timeout: this.#timeout,
      headers: {
        host: target,
        ...(authorization === undefined ? {} : { 'proxy-authorization': authorization }),
      },
    });
    const failed = (error: Error): void => (done as (error: Error) => void)(error);
    outgoing.on('connect', ({ statusCode }, socket) => {
      socket.setTimeout(0);
      if (statusCode !== 200) {
        socket.destroy();
        failed(new Error(`The proxy returned status ${statusCode}.`));
      } else {
        done(
          null,
          this.#secure === undefined
            ? socket
            : secureConnect({ servername: String(host), ...this.#secure, socket }),
        );
      }
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error('The proxy timed out.')));
    outgoing.on('error', failed);
    outgoing.end();
    return null;
  }
}
