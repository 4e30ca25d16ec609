import type { JsonObject } from '../model/json.ts';
import { GatewayError } from '../sdk/errors.ts';
import type { SocketReply } from './socket-reply.ts';

/** Calls that run at once on one connection: each holds a request and a provider's stream, as a connection of its own would. */
const mostLanes = 16;
/** Calls that wait on one connection, in all lanes: far beyond what a client sends ahead, and few enough to hold. */
const mostWaiting = 64;
/** Bytes of waiting calls above which no more is read, so that what one client sends ahead stays bounded. */
const waitingMark = 16 * 1024 * 1024;

/** A call that was asked for, and its length in bytes. */
export interface AskedCall {
  readonly body: JsonObject;
  readonly size: number;
}

/** Calls that run one after the other. */
export interface Lane {
  readonly name: string;
  running: SocketReply | undefined;
  readonly waiting: AskedCall[];
}

/** The lanes of one connection, which run side by side. A lane is there as long as a call of it runs. */
export class SocketLanes {
  readonly #lanes = new Map<string, Lane>();
  #waiting = 0;
  #waitingBytes = 0;

  /** True when no call runs. */
  get isIdle(): boolean {
    return this.#lanes.size === 0;
  }

  /** True where so much waits that no more should be read. */
  get isLong(): boolean {
    return this.#waitingBytes > waitingMark;
  }

  running(name: string): SocketReply | undefined {
    return this.#lanes.get(name)?.running;
  }

  /** All replies that run. */
  *replies(): Iterable<SocketReply> {
    for (const { running } of this.#lanes.values()) if (running !== undefined) yield running;
  }

  /** The lane in which the call may start now; undefined where it waits for the one before it. Throws 429 where there is no room. */
  enter(name: string, call: AskedCall): Lane | undefined {
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

  /** What runs next in a lane whose call has ended, if anything waits. */
  next(lane: Lane): AskedCall | undefined {
    const next = lane.waiting.shift();
    if (next === undefined) this.#lanes.delete(lane.name);
    else this.#forget(next);
    return next;
  }

  /** Nothing waits any more. Gives the names of the lanes in which something did, once for each call. */
  clear(): string[] {
    return [...this.#lanes.values()].flatMap(({ name, waiting }) =>
      waiting.splice(0).map((call) => {
        this.#forget(call);
        return name;
      }),
    );
  }

  #forget({ size }: AskedCall): void {
    this.#waiting -= 1;
    this.#waitingBytes -= size;
  }
}

function tooMany(what: string): GatewayError {
  return new GatewayError('rate_limit_exceeded', `${what}, which is the most: wait for one to end.`, {
    retryAfter: 1,
  });
}
