/** Takes sockets through a proxy. */
import type { ClientRequestArgs } from 'node:http';
import type { Duplex } from 'node:stream';
import { connect as secureConnect, type ConnectionOptions } from 'node:tls';
import { Agent, request } from './node-http.ts';
import { proxyAuthorization } from './proxy.ts';

type Done = (error: Error | null, stream: Duplex) => void;

/**
 * Reaches hosts through an HTTP proxy, by CONNECT: for what undici does not send. One for plain and one for secure addresses. The package
 * `https-proxy-agent` holds what a proxy answers without a limit, and gives a proxy's refusal out as the host's own answer.
 */
export class ConnectAgent extends Agent {
  readonly #proxy: URL;
  readonly #timeout: number;
  readonly #secure: ConnectionOptions | undefined;

  /** `secure` are the TLS options of the far end; undefined where it speaks none. `timeout` in milliseconds. */
  constructor(proxy: string, timeout: number, secure: ConnectionOptions | undefined) {
    super();
    this.#proxy = new URL(proxy);
    this.#timeout = timeout;
    this.#secure = secure;
    // What Node looks at before it lets an agent reach a secure address.
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
