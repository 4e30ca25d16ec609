import type { WebSocket } from 'ws';

/** Pings in a row without an answer behind which nobody is there. */
const mostPings = 2;

/** Asks the other side of a socket whether it is there when it has been silent. */
export class Heartbeat {
  readonly #socket: WebSocket;
  readonly #silence: number;
  /** Set by whatever comes, taken back by each beat: asking the clock once a message would cost more. */
  #hasReceived = true;
  #receivedAt = performance.now();
  #pings = 0;

  /** `silence`: so many milliseconds pass before a ping, and between two. */
  constructor(socket: WebSocket, silence: number) {
    this.#socket = socket;
    this.#silence = silence;
  }

  /** Something has come. */
  readonly received = (): void => {
    this.#hasReceived = true;
  };

  /** Called about once a second. False when the other side does not answer any more. */
  beat(now: number): boolean {
    if (this.#hasReceived) {
      this.#hasReceived = false;
      this.#receivedAt = now;
      this.#pings = 0;
    }
    // A pong that is not read says nothing about the other side.
    if (this.#socket.isPaused || now - this.#receivedAt < this.#silence * (this.#pings + 1)) return true;
    if (this.#pings >= mostPings) return false;
    this.#pings += 1;
    this.#socket.ping();
    return true;
  }
}
