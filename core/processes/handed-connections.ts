/** Hands the connections of the primary process to workers, in the place of node:cluster. */
import type { ChildProcess } from 'node:child_process';
import type { EventEmitter } from 'node:events';
import { countedReport } from '../log/counted-report.ts';
import {
  closeForGood,
  isHandle,
  keepOpen,
  Port,
  type HandingMessage,
  type Taker,
  type Waiting,
} from './waiting-connections.ts';

type Send = (message: unknown, handle?: unknown, ...rest: unknown[]) => boolean;

/** State of a worker in the distribution of connections. */
export interface Part {
  /**
   * The number of other workers with which this one, a spare, takes no connections. Absent: it takes them always.
   */
  readonly spareBeside?: () => number;
  /** Maximum number of connections of a port that wait for workers. Default: 10,000. */
  readonly maxWaiting?: number;
  /** Reports how many connections were closed since its last run because they could not be sent. */
  lost(count: number): void;
  /** Reports how many connections were closed since its last run because too many waited for workers. */
  turnedAway(count: number): void;
}

/**
 * Maximum number of connections that wait. Each holds a file descriptor. A worker takes some thousand connections a second, so that the last
 * of these would wait for seconds, and be refused.
 */
const defaultMaxWaiting = 10_000;

/** Ports by their names. One is removed with its last worker, as node:cluster closes it then. */
const ports = new Map<unknown, Port>();

/**
 * Hands the connections that the primary process accepts to a worker. node:cluster would do it, but it loses some, whose clients then wait for
 * ever, and does not know how long one has waited:
 *
 * - A worker ends before it has acknowledged a connection: another worker gets it, or it is closed with the port.
 * - A worker gives a connection back after the last one has left its port: it is closed.
 * - A connection cannot be sent, or arrives without its descriptor because the worker has as many as it may have. It is sent once more, to
 *   any worker, and then closed.
 *
 * So node:cluster is notified at once that a worker has taken a connection, and it waits here. A worker gets one at a time, when it has
 * acknowledged the one before: Node sends no second one earlier, and a busy worker gets fewer. The worker is told how long a connection has
 * waited, because a process that has too much to do sees the least of it: most of the time passes here.
 *
 * A spare worker listens, so that the port stays open when all others have ended. It gets connections while it is needed.
 */
export function handConnections(worker: ChildProcess, part: Part): void {
  const hand = new Hand(worker, part);
  // node:cluster has handled each message and each end before these listeners run, because its own were added first.
  worker.on('internalMessage', (message: HandingMessage) => hand.received(message));
  worker.once('disconnect', () => hand.end());
  watchChannel(worker, hand);
}

/**
 * Returns a function that tells, while the server's event `connection` runs, how many milliseconds the connection has waited for this worker.
 * Runs in the worker.
 */
export function watchWaits(): () => number | undefined {
  let waitedMs: number | undefined;
  const internal: EventEmitter = process;
  // node:cluster emits `connection` within its own listener, which was added first and runs between these two.
  internal.prependListener('internalMessage', ({ waited }: HandingMessage) => {
    waitedMs = waited;
  });
  internal.on('internalMessage', () => {
    waitedMs = undefined;
  });
  return () => waitedMs;
}

/** Time for the rest of what a worker has sent before its end to be read, and between two looks whether it has been, in milliseconds. */
const longestRest = 1_000;
const checkInterval = 20;

/**
 * Tells node:cluster that a worker is disconnected whose channel has ended. Node does not while a connection is on its way to the worker
 * (24.21), so that node:cluster would go on to offer it connections, and lose them.
 */
function watchChannel(worker: ChildProcess, hand: Hand): void {
  const { disconnect } = worker;
  // Node calls it when the other end of the channel is closed.
  worker.disconnect = (): void => {
    const wasConnected = worker.connected;
    disconnect.call(worker);
    if (wasConnected && !hand.hasEnded) worker.emit('disconnect');
  };
  // Another process may have the channel open: it is not waited for.
  worker.once('exit', () => disconnected(worker, hand, longestRest / checkInterval));
}

function disconnected(worker: ChildProcess, hand: Hand, looks: number): void {
  if (hand.hasEnded) return;
  if (worker.connected && looks > 0)
    setTimeout(() => disconnected(worker, hand, looks - 1), checkInterval).unref();
  else worker.emit('disconnect');
}

/** Connections that the primary process passes to one worker. */
class Hand implements Taker {
  readonly #worker: ChildProcess;
  readonly #part: Part;
  readonly #reportLost: () => void;
  readonly #reportTurnedAway: () => void;
  readonly #send: Send | undefined;
  /** Unacknowledged connections by the number of their message. */
  readonly #offers = new Map<unknown, { readonly waiting: Waiting; readonly port: Port }>();
  #hasEnded = false;

  constructor(worker: ChildProcess, part: Part) {
    this.#worker = worker;
    this.#part = part;
    this.#reportLost = countedReport((count) => part.lost(count));
    this.#reportTurnedAway = countedReport((count) => part.turnedAway(count));
    this.#send = worker.send?.bind(worker) as Send | undefined;
    this.#watchSent();
  }

  get maxWaiting(): number {
    return this.#part.maxWaiting ?? defaultMaxWaiting;
  }

  get isSpare(): boolean {
    return this.#part.spareBeside !== undefined;
  }

  /** True for a worker that has acknowledged all that it was sent. */
  get isFree(): boolean {
    return this.#offers.size === 0;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Returns false for a spare while the other workers of a port are as many as there are to be. */
  isNeeded(others: number): boolean {
    const { spareBeside } = this.#part;
    return spareBeside === undefined || others === 0 || others < spareBeside();
  }

  offer(waiting: Waiting, port: Port): void {
    const { message, handle, acceptedAt } = waiting;
    this.#offers.set(message.seq, { waiting, port });
    const waited = Math.round(performance.now() - acceptedAt);
    this.#send?.({ ...message, waited }, handle, {}, (error: unknown) => {
      // The channel is closed at its other end: what was sent is settled with the end of the worker, which is about to be known.
      if (error && !isClosed(error)) this.#fail(message.seq);
    });
  }

  received(message: HandingMessage): void {
    if (message.act === 'close') leavePort(this.#worker, message.key);
    // Connections are sent sequentially, so this is the oldest one.
    if (message.cmd === 'NODE_HANDLE_NACK') this.#fail(this.#offers.keys().next().value);
    const offer = this.#offers.get(message.ack);
    if (offer === undefined) return;
    this.#offers.delete(message.ack);
    if (message.accepted === true) closeForGood(offer.waiting.handle);
    else this.#giveBack(offer);
    for (const port of ports.values()) if (port.has(this.#worker)) port.handOver();
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const key of ports.keys()) leavePort(this.#worker, key);
    const offers = [...this.#offers.values()];
    this.#offers.clear();
    for (const offer of offers) this.#giveBack(offer);
  }

  /** Notes the ports that the worker joins, and takes the connections that node:cluster gives it. */
  #watchSent(): void {
    const worker = this.#worker;
    const send = this.#send;
    if (send === undefined) return;
    worker.send = (message: unknown, handle?: unknown, ...rest: unknown[]): boolean => {
      const { act, seq, ack, key, errno } = message as HandingMessage;
      if (ack !== undefined && key !== undefined && !errno) joinPort(worker, key, this);
      if (act !== 'newconn' || !isHandle(handle)) return send(message, handle, ...rest);
      keepOpen(handle);
      worker.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: true });
      const port = ports.get(key);
      const acceptedAt = performance.now();
      if (port === undefined) closeForGood(handle);
      else if (!port.add({ handle, message: message as HandingMessage, acceptedAt, hasFailed: false }))
        this.#reportTurnedAway();
      return true;
    };
  }

  #giveBack({ waiting, port }: { readonly waiting: Waiting; readonly port: Port }): void {
    if (port.size === 0) closeForGood(waiting.handle);
    else port.addAgain(waiting);
  }

  /** Handles a connection that did not arrive. */
  #fail(seq: unknown): void {
    const offer = this.#offers.get(seq);
    if (offer === undefined || this.#hasEnded) return;
    this.#offers.delete(seq);
    if (offer.waiting.hasFailed) {
      this.#reportLost();
      closeForGood(offer.waiting.handle);
      offer.port.handOver();
    } else {
      offer.waiting.hasFailed = true;
      this.#giveBack(offer);
    }
  }
}

function isClosed(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EPIPE' || error.code === 'ECONNRESET');
}

function joinPort(worker: ChildProcess, key: unknown, hand: Hand): void {
  const port = ports.get(key) ?? new Port(hand.maxWaiting);
  ports.set(key, port);
  port.join(worker, hand);
}

function leavePort(worker: ChildProcess, key: unknown): void {
  const port = ports.get(key);
  port?.leave(worker);
  if (port?.size === 0) ports.delete(key);
}
