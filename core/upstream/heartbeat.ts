import type { WebSocket } from 'ws';

/** Number of consecutive unanswered pings after which a connection counts as dead. */
const mostPings = 2;

/** Decides when an idle WebSocket is pinged, and detects a dead peer. */
export class Heartbeat {
  readonly #socket: WebSocket;
  readonly #silence: number;
  /** Set by each message and reset by each beat, because reading the clock for each message costs more. */
  #hasReceived = true;
  #receivedAt = performance.now();
  #pings = 0;

  /** `silence`: idle time in milliseconds before a ping, and between two pings. */
  constructor(socket: WebSocket, silence: number) {
    this.#socket = socket;
    this.#silence = silence;
  }

  /** Records that a message was received. */
  readonly received = (): void => {
    this.#hasReceived = true;
  };

  /** Pings the peer when it is idle. Call it about once a second. Returns false when the peer no longer answers. */
  beat(now: number): boolean {
    if (this.#hasReceived) {
      this.#hasReceived = false;
      this.#receivedAt = now;
      this.#pings = 0;
    }
    // While the socket is paused pongs are not read, so missing ones do not count.
    if (this.#socket.isPaused || now - this.#receivedAt < this.#silence * (this.#pings + 1)) return true;
    if (this.#pings >= mostPings) return false;
    this.#pings += 1;
    this.#socket.ping();
    return true;
  }
}
