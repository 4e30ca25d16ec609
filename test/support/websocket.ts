import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { WebSocket, type ClientOptions } from 'ws';
import { patience } from './patience.ts';

type Json = Record<string, unknown>;

/** A WebSocket as a client has it, that keeps all that came. */
export class SocketClient {
  readonly socket: WebSocket;
  /** Every message, parsed. */
  readonly messages: Json[] = [];
  /** Code and reason, once it is closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data: Buffer) => this.messages.push(JSON.parse(data.toString()) as Json));
    socket.on('error', () => {});
    this.closed = new Promise((resolve) =>
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
    );
  }

  /** Resolves when the socket is open; rejects with the refusal. */
  static async open(
    url: string,
    options: ClientOptions = {},
    protocols: string[] = [],
  ): Promise<SocketClient> {
    const client = new SocketClient(new WebSocket(url.replace(/^http/, 'ws'), protocols, options));
    await once(client.socket, 'open');
    return client;
  }

  send(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** Waits until so many messages fit; gives all that do. */
  async until(fits: (message: Json) => boolean, count = 1): Promise<Json[]> {
    const end = performance.now() + patience.wait;
    for (;;) {
      const found = this.messages.filter(fits);
      if (found.length >= count) return found;
      if (performance.now() > end || this.socket.readyState === WebSocket.CLOSED) {
        const last = JSON.stringify(this.messages.slice(-5)).slice(-2000);
        throw new Error(`Waited for ${count} messages, ${found.length} came; the last: ${last}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  /** The connection breaks, without a word. */
  vanish(): void {
    this.socket.terminate();
  }
}

/** Response to an attempt to open a WebSocket that was refused. */
export async function refusedSocket(
  url: string,
  options: ClientOptions = {},
  protocols: string[] = [],
): Promise<{ readonly status: number; readonly headers: IncomingMessage['headers']; readonly body: Json }> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols, options);
  socket.on('error', () => {});
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: JSON.parse(Buffer.concat(chunks).toString()) as Json,
  };
}
