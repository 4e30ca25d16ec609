import type { ChildProcess } from 'node:child_process';

/** A connection that the primary process has accepted. */
interface Handle {
  close(): void;
}

/** Worker processes that listen on one port, as node:cluster counts them. */
type Listeners = Set<ChildProcess>;

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

/** Minimum time between two reports of lost connections, in milliseconds. */
const reportInterval = 10_000;

/** Listeners by the name of their port. An entry is removed with its last worker, as node:cluster closes the port then. */
const ports = new Map<unknown, Listeners>();

/** Connections that did not arrive at a worker. */
const failedOnce = new WeakSet<Handle>();

/**
 * Settles connections that node:cluster loses on their way from the primary process to a worker. Otherwise their clients wait for ever:
 *
 * - A worker ends before it has acknowledged a connection: it is closed.
 * - A worker gives a connection back after the last one has left its port: it is closed.
 * - A connection cannot be sent, or arrives without its descriptor because the worker has as many as it may have. node:cluster would wait for
 *   a response and offer the worker nothing until then. The connection is offered once more, to any worker, and then closed.
 *
 * `lost` reports how many connections of the last kind were closed since its last run.
 */
export function settleLostConnections(worker: ChildProcess, lost: (count: number) => void): void {
  const offers = new Map<unknown, Offer>();
  const report = reportSeldom(lost);
  const fail = (seq: unknown): void => {
    const offer = offers.get(seq);
    if (offer !== undefined) failOffer(worker, seq, offer.handle, report);
  };
  watchSent(worker, offers, fail);
  // node:cluster has handled each message before this listener runs, because its own was added first.
  worker.on('internalMessage', (message: InternalMessage) => {
    if (message.act === 'close') leavePort(worker, message.key);
    // Connections are sent one after the other, so the oldest one is meant.
    if (message.cmd === 'NODE_HANDLE_NACK') fail(offers.keys().next().value);
    const offer = offers.get(message.ack);
    if (offer === undefined) return;
    offers.delete(message.ack);
    if (message.accepted !== true && offer.listeners?.size === 0) offer.handle.close();
  });
  const end = (): void => {
    for (const key of ports.keys()) leavePort(worker, key);
    for (const { handle } of offers.values()) handle.close();
    offers.clear();
  };
  worker.once('disconnect', end);
  worker.once('exit', end);
}

/** Notes the ports that a worker joins and the connections that it is offered. `fail` gets the numbers of those that cannot be sent. */
function watchSent(worker: ChildProcess, offers: Map<unknown, Offer>, fail: (seq: unknown) => void): void {
  const send = worker.send?.bind(worker) as Send | undefined;
  if (send === undefined) return;
  worker.send = (message: unknown, handle?: unknown, ...rest: unknown[]): boolean => {
    const { act, seq, ack, key, errno } = message as InternalMessage;
    if (ack !== undefined && key !== undefined && !errno) joinPort(worker, key);
    if (act !== 'newconn' || !isHandle(handle)) return send(message, handle, ...rest);
    offers.set(seq, { handle, listeners: ports.get(key) });
    return send(message, handle, {}, (error: unknown) => {
      if (error) fail(seq);
    });
  };
}

function joinPort(worker: ChildProcess, key: unknown): void {
  const listeners = ports.get(key) ?? new Set();
  ports.set(key, listeners.add(worker));
}

function leavePort(worker: ChildProcess, key: unknown): void {
  const listeners = ports.get(key);
  listeners?.delete(worker);
  if (listeners?.size === 0) ports.delete(key);
}

/** Gives node:cluster the response that it waits for: it offers a connection that is not accepted again, and closes its copy of one that is. */
function failOffer(worker: ChildProcess, seq: unknown, handle: Handle, lost: () => void): void {
  const isLost = failedOnce.has(handle);
  failedOnce.add(handle);
  if (isLost) lost();
  worker.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: isLost });
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
