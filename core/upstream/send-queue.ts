import type { WebSocket } from 'ws';
import type { Gate } from '../sdk/gate.ts';
import type { SocketMessage } from '../model/realtime.ts';

/** What waits to be sent over a socket. Where it is too much the gate is shut, by which those who bring it slow down, until half is gone. */
export class SendQueue {
  readonly #socket: WebSocket;
  readonly #most: number;
  readonly #gate: Gate;
  #fullSince = 0;

  /** `most`: in bytes. */
  constructor(socket: WebSocket, most: number, gate: Gate) {
    this.#socket = socket;
    this.#most = most;
    this.#gate = gate;
  }

  /** When it became full, by `performance.now()`; 0 while it is not. */
  get fullSince(): number {
    return this.#fullSince;
  }

  send({ data, binary }: SocketMessage): void {
    this.#socket.send(data, { binary }, this.#onSent);
    if (this.#fullSince > 0 || this.#socket.bufferedAmount <= this.#most) return;
    this.#fullSince = performance.now();
    this.#gate.close();
  }

  /** The other side takes messages again, or never will: nobody waits for it. */
  letGo(): void {
    if (this.#fullSince === 0) return;
    this.#fullSince = 0;
    this.#gate.open();
  }

  readonly #onSent = (): void => {
    if (this.#socket.bufferedAmount <= this.#most / 2) this.letGo();
  };
}
