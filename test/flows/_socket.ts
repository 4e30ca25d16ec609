import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { patience } from '../support/patience.ts';

/** A bare connection to a gateway, for what no HTTP client would send. */
export class Bare {
  readonly socket: Socket;
  #text = '';
  readonly closed: Promise<void>;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#text += text;
    });
    socket.on('error', () => {});
    this.closed = new Promise((resolve) => socket.once('close', () => resolve()));
  }

  static async to(url: string): Promise<Bare> {
    const { hostname, port } = new URL(url);
    const bare = new Bare(connect(Number(port), hostname));
    await once(bare.socket, 'connect');
    return bare;
  }

  /** Everything that came so far. */
  get text(): string {
    return this.#text;
  }

  write(data: string | Buffer): void {
    this.socket.write(data);
  }

  /** Waits until what came matches. */
  async until(pattern: RegExp): Promise<string> {
    const end = performance.now() + patience.wait;
    while (!pattern.test(this.#text)) {
      if (performance.now() > end || this.socket.destroyed)
        throw new Error(`Waited for ${pattern}, got ${JSON.stringify(this.#text.slice(-2000))}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return this.#text;
  }
}

/** A request's text. */
export function requestText(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body = '',
): string {
  const lines = Object.entries({ host: 'gateway.test', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

/** Status codes of the answers in a text, in order. */
export function statuses(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
}
