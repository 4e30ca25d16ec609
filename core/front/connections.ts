import type { Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { noteArrival } from './arrivals.ts';

/** Milliseconds for the first request on a connection when the gateway stops. */
const silence = 500;

/**
 * The connections of a server, and how they are closed. Node's own `close` ends kept-alive connections at once, also one on which a
 * request is just arriving, and never one on which nothing has come yet.
 */
export class Connections {
  readonly #server: Server;
  /** With the time at which each was opened. */
  readonly #open = new Map<Socket, number>();
  #closed: Promise<void> | undefined;
  #onAllClosed: (() => void) | undefined;

  /** `waited`: returns how long a new connection waited for this process, if that is known. */
  constructor(server: Server, waited: () => number | undefined = () => undefined) {
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      this.#open.set(socket, performance.now());
      const time = waited();
      if (time !== undefined) noteArrival(socket, time);
      socket.once('close', () => {
        this.#open.delete(socket);
        if (this.#open.size === 0) this.#onAllClosed?.();
      });
    });
  }

  /** Stops accepting connections, and keeps the open ones. Resolves when all have ended and their calls have handled it. */
  takeNoMore(): Promise<void> {
    this.#closed ??= new Promise<void>((resolve) => {
      NetServer.prototype.close.call(this.#server, () => {
        // Clears Node's own timers. The callback gets the error that the server is already closed.
        this.#server.close(() => {
          // Node counts a connection as ended before it emits `close`, by which the call detects that its client has left.
          if (this.#open.size === 0) resolve();
          else this.#onAllClosed = resolve;
        });
      });
    });
    return this.#closed;
  }

  /** Closes all on which no call is open: those that wait for their next request, and those that have never sent one. */
  closeIdle(): void {
    this.#server.closeIdleConnections();
    const now = performance.now();
    for (const [socket, openedAt] of this.#open)
      if (socket.bytesRead === 0 && now - openedAt > silence) socket.destroy();
    // Node closes those whose headers have begun and do not end.
    this.#server.headersTimeout = Math.min(this.#server.headersTimeout, silence);
  }

  /** Closes all, whatever is open on them. */
  closeAll(): void {
    for (const socket of this.#open.keys()) socket.destroy();
  }
}
