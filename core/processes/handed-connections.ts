import type { ChildProcess } from 'node:child_process';

/** A connection that the primary process has accepted. */
interface Handle {
  close(): void;
}

/** Worker processes that listen on one port, as node:cluster counts them, with what each is offered. */
type Listeners = Map<ChildProcess, Hand>;

/** A connection on its way to a worker. */
interface Offer {
  readonly handle: Handle;
  readonly listeners: Listeners | undefined;
}

/** Messages of node:cluster and of handles that matter here. `seq` numbers a message, and `ack` repeats the number in its response. */
interface InternalMessage {
  readonly cmd?: unknown;
  readonly act?: unknown;
  readonly seq?: unknown;
  readonly ack?: unknown;
  readonly accepted?: unknown;
  /** Name of the port. */
  readonly key?: unknown;
  readonly errno?: unknown;
}

type Send = (message: unknown, handle?: unknown, ...rest: unknown[]) => boolean;

/** How a worker takes part. */
export interface Part {
  /**
   * The number of other workers with which this one, a spare, takes no connections. Absent: it takes them always.
   */
  readonly spareBeside?: () => number;
  /** Reports how many connections were closed since its last run because they could not be sent. */
  lost(count: number): void;
}

/** Minimum time between two reports of lost connections, in milliseconds. */
const reportInterval = 10_000;

/** Listeners by the name of their port. An entry is removed with its last worker, as node:cluster closes the port then. */
const ports = new Map<unknown, Listeners>();

/** Connections that did not arrive at a worker. */
const failedOnce = new WeakSet<Handle>();

/**
 * Settles connections that node:cluster loses on their way from the primary process to a worker. Otherwise their clients wait for ever:
 *
 * - A worker ends before it has acknowledged a connection: another worker is offered it, or it is closed with the port.
 * - A worker gives a connection back after the last one has left its port: it is closed.
 * - A connection cannot be sent, or arrives without its descriptor because the worker has as many as it may have. node:cluster would wait for
 *   a response and offer the worker nothing until then. The connection is offered once more, to any worker, and then closed.
 *
 * A spare worker listens, so that the port stays open when all others have ended. A connection that it is offered waits here until another
 * worker is free, or until the spare is needed.
 */
export function settleLostConnections(worker: ChildProcess, part: Part): void {
  const hand = new Hand(worker, part);
  // node:cluster has handled each message and each end before these listeners run, because its own were added first.
  worker.on('internalMessage', (message: InternalMessage) => hand.heard(message));
  worker.once('disconnect', () => hand.end());
  worker.once('exit', () => disconnected(worker, hand, longestRest / checkInterval));
}

/** Time for the rest of what a worker has sent before its end to be read, and between two looks whether it has been, in milliseconds. */
const longestRest = 1_000;
const checkInterval = 20;

/**
 * Tells node:cluster that a worker which has ended is disconnected. Node does not while a connection is on its way to the worker (24.21), so
 * that node:cluster would go on to offer it connections, and lose them. Another process may have the channel open: it is not waited for.
 */
function disconnected(worker: ChildProcess, hand: Hand, looks: number): void {
  if (hand.hasEnded) return;
  if (worker.connected && looks > 0)
    setTimeout(() => disconnected(worker, hand, looks - 1), checkInterval).unref();
  else worker.emit('disconnect');
}

/** What the primary process offers one worker. */
class Hand {
  readonly #worker: ChildProcess;
  readonly #part: Part;
  readonly #report: () => void;
  readonly #offers = new Map<unknown, Offer>();
  /** Sends the offer that waits until a spare is needed. */
  #waiting: { readonly seq: unknown; readonly send: () => void } | undefined;
  #hasEnded = false;

  constructor(worker: ChildProcess, part: Part) {
    this.#worker = worker;
    this.#part = part;
    this.#report = reportSeldom((count) => part.lost(count));
    this.#watchSent();
  }

  get isSpare(): boolean {
    return this.#part.spareBeside !== undefined;
  }

  /** True for a worker that has nothing to acknowledge, so that node:cluster offers it the next connection. */
  get isFree(): boolean {
    return this.#offers.size === 0;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  heard(message: InternalMessage): void {
    if (message.act === 'close') leavePort(this.#worker, message.key);
    // Connections are sent one after the other, so the oldest one is meant.
    if (message.cmd === 'NODE_HANDLE_NACK') this.#fail(this.#offers.keys().next().value);
    const offer = this.#offers.get(message.ack);
    if (offer === undefined) return;
    this.#offers.delete(message.ack);
    if (message.accepted !== true && offer.listeners?.size === 0) offer.handle.close();
    if (!this.isSpare) for (const other of offer.listeners?.values() ?? []) other.passOn();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#waiting = undefined;
    const all = [...ports.values()].filter((listeners) => listeners.has(this.#worker));
    for (const key of ports.keys()) leavePort(this.#worker, key);
    for (const [seq, { handle, listeners }] of this.#offers)
      if (listeners === undefined || listeners.size === 0) handle.close();
      else this.#giveBack(seq);
    this.#offers.clear();
    for (const listeners of all) for (const other of listeners.values()) other.review();
  }

  /** Lets the connection that waits go on where it can: to the worker if it is needed, else to another one that is free. */
  review(): void {
    const listeners = this.#offers.get(this.#waiting?.seq)?.listeners;
    if (listeners !== undefined && hasFree(listeners)) this.passOn();
    else if (listeners === undefined || !this.#isKept(listeners)) this.#take();
  }

  /** Gives the connection that waits back, unless the worker is needed: the next one in line waits in its place. */
  passOn(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    const listeners = this.#offers.get(waiting.seq)?.listeners;
    if (listeners === undefined || !this.#isKept(listeners)) {
      this.#take();
      return;
    }
    this.#waiting = undefined;
    this.#offers.delete(waiting.seq);
    this.#giveBack(waiting.seq);
  }

  #take(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.send();
  }

  /** True while the other workers of a port are as many as there are to be. */
  #isKept(listeners: Listeners): boolean {
    const { spareBeside } = this.#part;
    if (spareBeside === undefined) return false;
    const others = [...listeners.values()].filter(({ isSpare }) => !isSpare).length;
    return others > 0 && others >= spareBeside();
  }

  /** Notes the ports that the worker joins and the connections that it is offered. */
  #watchSent(): void {
    const worker = this.#worker;
    const send = worker.send?.bind(worker) as Send | undefined;
    if (send === undefined) return;
    worker.send = (message: unknown, handle?: unknown, ...rest: unknown[]): boolean => {
      const { act, seq, ack, key, errno } = message as InternalMessage;
      if (ack !== undefined && key !== undefined && !errno) joinPort(worker, key, this);
      if (act !== 'newconn' || !isHandle(handle)) return send(message, handle, ...rest);
      this.#offers.set(seq, { handle, listeners: ports.get(key) });
      this.#waiting = {
        seq,
        send: () => {
          send(message, handle, {}, (error: unknown) => {
            // The channel is closed at its other end: what was offered is settled with the end of the worker, which is about to be known.
            if (error && !isClosed(error)) this.#fail(seq);
          });
        },
      };
      this.review();
      return true;
    };
  }

  /** Tells node:cluster that the worker did not take a connection: it offers it to another one. */
  #giveBack(seq: unknown): void {
    this.#worker.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: false });
  }

  /** Gives node:cluster the response that it waits for: it offers a connection that is not accepted again, and closes its copy of one that is. */
  #fail(seq: unknown): void {
    const handle = this.#offers.get(seq)?.handle;
    if (handle === undefined || this.#hasEnded) return;
    const isLost = failedOnce.has(handle);
    failedOnce.add(handle);
    if (isLost) this.#report();
    this.#worker.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: isLost });
  }
}

function isClosed(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EPIPE' || error.code === 'ECONNRESET');
}

function hasFree(listeners: Listeners): boolean {
  return [...listeners.values()].some(({ isSpare, isFree }) => !isSpare && isFree);
}

function joinPort(worker: ChildProcess, key: unknown, hand: Hand): void {
  const listeners = ports.get(key) ?? new Map();
  ports.set(key, listeners.set(worker, hand));
}

function leavePort(worker: ChildProcess, key: unknown): void {
  const listeners = ports.get(key);
  listeners?.delete(worker);
  if (listeners?.size === 0) ports.delete(key);
}

/** Returns a function that counts its runs, and reports them at most once in an interval. */
function reportSeldom(report: (count: number) => void): () => void {
  let count = 0;
  let reportedAt = -reportInterval;
  return () => {
    count += 1;
    if (performance.now() - reportedAt < reportInterval) return;
    reportedAt = performance.now();
    report(count);
    count = 0;
  };
}

function isHandle(value: unknown): value is Handle {
  return typeof value === 'object' && value !== null && 'close' in value && typeof value.close === 'function';
}
