import type { WebSocket } from 'ws';
import type { Gate } from '../sdk/gate.ts';
import type { SocketMessage } from '../model/realtime.ts';

/** Queue of bytes for a WebSocket. Closes the gate when the queue is full, so that senders pause, and opens it when half is sent. */
export class SendQueue {
  readonly #socket: WebSocket;
  readonly #most: number;
  readonly #gate: Gate;
  #fullSince = 0;

  /** `most`: maximum size in bytes. */
  constructor(socket: WebSocket, most: number, gate: Gate) {
    this.#socket = socket;
    this.#most = most;
    this.#gate = gate;
  }

  /** `performance.now()` when the queue became full; 0 while it is not full. */
  get fullSince(): number {
    return this.#fullSince;
  }

  send({ data, binary }: SocketMessage): void {
    this.#socket.send(data, { binary }, this.#onSent);
    if (this.#fullSince > 0 || this.#socket.bufferedAmount <= this.#most) return;
    this.#fullSince = performance.now();
    this.#gate.close();
  }

  /** Opens the gate, because the socket accepts messages again or is closed. */
  letGo(): void {
    if (this.#fullSince === 0) return;
    this.#fullSince = 0;
    this.#gate.open();
  }

  readonly #onSent = (): void => {
    if (this.#socket.bufferedAmount <= this.#most / 2) this.letGo();
  };
}
