/** Queues the calls of one WebSocket. Calls of a lane run sequentially and lanes run in parallel, both within limits. */
import type { JsonObject } from '../model/json.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { SocketReply } from './socket-reply.ts';

/** Maximum number of parallel calls on one connection. Each holds a request and a provider's stream, as a connection of its own would. */
const mostLanes = 16;
/** Maximum number of waiting calls on one connection, in all lanes: far more than clients send ahead. */
const mostWaiting = 64;
/** Bytes of waiting calls above which no more messages are read, to bound the memory for one client. */
const waitingMark = 16 * 1024 * 1024;

/** A requested call, and its length in bytes. */
export interface QueuedCall {
  readonly body: JsonObject;
  readonly size: number;
}

/** Queue of calls that run sequentially. */
export interface Lane {
  readonly name: string;
  running: SocketReply | undefined;
  readonly waiting: QueuedCall[];
}

/** The lanes of one connection. A lane exists as long as one of its calls runs. */
export class SocketLanes {
  readonly #lanes = new Map<string, Lane>();
  #waiting = 0;
  #waitingBytes = 0;

  /** True when no call runs. */
  get isIdle(): boolean {
    return this.#lanes.size === 0;
  }

  /** True when the waiting calls have so many bytes that no more messages should be read. */
  get isLong(): boolean {
    return this.#waitingBytes > waitingMark;
  }

  running(name: string): SocketReply | undefined {
    return this.#lanes.get(name)?.running;
  }

  /** Yields all running responses. */
  *replies(): Iterable<SocketReply> {
    for (const { running } of this.#lanes.values()) if (running !== undefined) yield running;
  }

  /** Returns the lane in which the call may start now; undefined where the call waits for the one before it. Throws 429 beyond the limits. */
  enter(name: string, call: QueuedCall): Lane | undefined {
    const known = this.#lanes.get(name);
    if (known === undefined) {
      if (this.#lanes.size >= mostLanes) throw tooMany(`${mostLanes} streams run on this connection at once`);
      const lane: Lane = { name, running: undefined, waiting: [] };
      this.#lanes.set(name, lane);
      return lane;
    }
    if (known.running === undefined) return known;
    if (this.#waiting >= mostWaiting) throw tooMany(`${mostWaiting} requests wait on this connection`);
    this.#waiting += 1;
    this.#waitingBytes += call.size;
    known.waiting.push(call);
    return undefined;
  }

  /** Returns the next call of a lane whose call has ended; undefined where none waits, and then removes the lane. */
  next(lane: Lane): QueuedCall | undefined {
    const next = lane.waiting.shift();
    if (next === undefined) this.#lanes.delete(lane.name);
    else this.#forget(next);
    return next;
  }

  /** Removes all waiting calls. Returns the name of its lane for each of them. */
  clear(): string[] {
    return [...this.#lanes.values()].flatMap(({ name, waiting }) =>
      waiting.splice(0).map((call) => {
        this.#forget(call);
        return name;
      }),
    );
  }

  #forget({ size }: QueuedCall): void {
    this.#waiting -= 1;
    this.#waitingBytes -= size;
  }
}

function tooMany(what: string): GatewayError {
  return new GatewayError('rate_limit_exceeded', `${what}, which is the most: wait for one to end.`, {
    retryAfter: 1,
  });
}
