import { Agent, createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Hop-by-hop headers, which a proxy must not pass on (RFC 9110, section 7.6.1). */
const hopByHop = new Set(['connection', 'keep-alive', 'transfer-encoding']);

/** Calls that failed between a balancer and its gateways. */
export interface BalancerFailures {
  /** Connections that a gateway did not accept. */
  refused: number;
  /** Connections that broke during a call. */
  cut: number;
  /** Calls that came while no gateway was ready. */
  unserved: number;
}

/** A gateway behind a balancer. */
class Backend {
  readonly url: string;
  readonly agent = new Agent({ keepAlive: true });
  isReady = false;
  /** An operator has taken it out. */
  isOut = false;
  /** Calls that were sent to it and have not ended. */
  running = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(url: string, interval: number) {
    this.url = url;
    this.#poll(interval);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.agent.destroy();
  }

  /** Polls `/readyz` over connections of its own, as health checks of load balancers do. */
  #poll(interval: number): void {
    const set = (isReady: boolean): void => {
      this.isReady = isReady;
      this.#timer = setTimeout(() => this.#poll(interval), interval);
    };
    request(`${this.url}/readyz`, { agent: false }, (response) => {
      response.resume().once('close', () => set(response.statusCode === 200));
    })
      .once('error', () => set(false))
      .end();
  }
}

/**
 * A load balancer over HTTP: it sends calls in turn to the gateways whose last poll said that they are ready, keeps connections to them,
 * and tries nothing a second time.
 */
export class Balancer {
  readonly failures: BalancerFailures = { refused: 0, cut: 0, unserved: 0 };
  readonly #backends: readonly Backend[];
  readonly #server = createServer((incoming, response) => this.#pass(incoming, response));
  #turn = 0;

  constructor(urls: readonly string[], interval: number) {
    this.#backends = urls.map((url) => new Backend(url, interval));
    this.#server.keepAliveTimeout = 600_000;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  isReady(url: string): boolean {
    return this.#backends.some((backend) => backend.url === url && backend.isReady);
  }

  /** Sends a gateway nothing more, however ready it is, until `resume`. */
  pause(url: string): void {
    for (const backend of this.#backends) backend.isOut ||= backend.url === url;
  }

  resume(url: string): void {
    for (const backend of this.#backends) backend.isOut &&= backend.url !== url;
  }

  /** Number of calls that a gateway has and has not ended. */
  runningAt(url: string): number {
    return this.#backends.find((backend) => backend.url === url)?.running ?? 0;
  }

  close(): void {
    for (const backend of this.#backends) backend.close();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #pass(incoming: IncomingMessage, response: ServerResponse): void {
    const ready = this.#backends.filter(({ isReady, isOut }) => isReady && !isOut);
    const backend = ready[(this.#turn += 1) % ready.length];
    if (backend === undefined) {
      this.failures.unserved += 1;
      response.writeHead(503).end('no gateway is ready');
      return;
    }
    backend.running += 1;
    response.once('close', () => (backend.running -= 1));
    const { method, headers, url = '' } = incoming;
    const options = { method, headers: endToEnd(headers), agent: backend.agent };
    const sent = request(`${backend.url}${url}`, options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers));
      answer.once('error', () => this.#fail(response, 'cut')).pipe(response);
    });
    sent.once('error', (error: NodeJS.ErrnoException) =>
      this.#fail(response, error.code === 'ECONNREFUSED' ? 'refused' : 'cut'),
    );
    incoming.pipe(sent);
  }

  #fail(response: ServerResponse, how: 'refused' | 'cut'): void {
    this.failures[how] += 1;
    if (response.headersSent) response.destroy();
    else response.writeHead(502).end(`the connection to the gateway was ${how}`);
  }
}

function endToEnd(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name)));
}
