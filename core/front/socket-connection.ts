/** One WebSocket of a client: reads messages, runs their calls, pings, and closes the connection. */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { firstView } from '../call/view.ts';
import { type Exchange } from '../call/exchange.ts';
import type { Next } from '../sdk/define.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { SocketRoute } from '../sdk/format.ts';
import type { Log } from '../log.ts';
import type { JsonObject } from '../model/json.ts';
import { parseJsonBody, type BodyLimits } from './json-body.ts';
import { SocketLanes, type QueuedCall, type Lane } from './socket-lanes.ts';
import { SocketReply } from './socket-reply.ts';

/** Time for a client to answer a close frame, in milliseconds. */
const closeTime = 5000;
/** Silence after which no message of the client is assumed to be under way, in milliseconds. */
const quietTime = 3000;

/** Options of a connection. */
export interface SocketOptions {
  readonly route: SocketRoute;
  readonly log: Log;
  readonly limits: BodyLimits;
  /** Silence after which a ping is sent, in milliseconds. */
  readonly keepAlive: number;
  /** Longest time the client may leave its buffer full or a ping unanswered, in milliseconds. */
  readonly stalled: number;
  /** Longest life of a connection, in milliseconds. */
  readonly lifetime: number;
  /** The exchange of a call with this body. */
  readonly exchange: (body: JsonObject) => Exchange;
  readonly handle: Next;
  /** Runs once, when the connection is closed. */
  readonly closed: () => void;
}

/** One WebSocket and its calls. Calls of one lane run sequentially, and lanes run in parallel. */
export class SocketConnection {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #options: SocketOptions;
  readonly #lanes = new SocketLanes();
  readonly #openedAt = performance.now();
  #fullSince = 0;
  #paused = false;
  /** Set by whatever comes from the client and taken back by each tick. */
  #hasReceived = false;
  #receivedAt = performance.now();
  #pingedAt = 0;
  #closingAt = 0;
  /** Why no more calls are taken, and what the connection is closed with once those that run have ended. */
  #retired: { readonly error: GatewayError; readonly code: number; readonly sendsError: boolean } | undefined;

  /** `stream`: connection of the socket, which shows when its buffer is full and when it has drained. */
  constructor(socket: WebSocket, stream: Duplex, options: SocketOptions) {
    this.#socket = socket;
    this.#stream = stream;
    this.#options = options;
    socket.on('message', (data: Buffer, isBinary) => this.#message(data, isBinary));
    socket.on('ping', this.#onReceived);
    socket.on('pong', this.#onReceived);
    // The close frame that follows reports an invalid frame (too large, not UTF-8) to the client.
    socket.on('error', () => {});
    socket.on('close', () => this.#closed());
    stream.on('drain', this.#onDrain);
  }

  /** Called about once a second: pings, and closes connections whose client is gone or does not read, or that have reached `lifetime`. */
  tick(now: number): void {
    const { keepAlive, stalled, lifetime } = this.#options;
    if (this.#hasReceived) {
      this.#hasReceived = false;
      this.#receivedAt = now;
      this.#pingedAt = 0;
    }
    if (this.#closingAt > 0) {
      if (now - this.#closingAt > closeTime) this.#socket.terminate();
      return;
    }
    if (this.#fullSince > 0) {
      if (now - this.#fullSince > stalled) this.#socket.terminate();
      return;
    }
    if (now - this.#openedAt > lifetime) {
      const minutes = Math.round(lifetime / 60_000);
      const error = new GatewayError(
        'websocket_connection_limit_reached',
        `This connection has reached its limit of ${minutes} minutes. Open a new one to continue.`,
      );
      this.retire(error, 1000, true);
      return;
    }
    // While reading is paused pongs are not read, so missing ones do not count.
    if (this.#paused) return;
    if (this.#pingedAt > 0) {
      if (now - this.#pingedAt > stalled) this.#socket.terminate();
    } else if (now - this.#receivedAt > keepAlive) {
      this.#pingedAt = now;
      this.#socket.ping();
    }
  }

  /** Rejects waiting and new calls with the error, and closes the socket with the code when the running calls have ended. `sendsError`: sends the error before the close. */
  retire(error: GatewayError, code: number, sendsError: boolean): void {
    if (this.#retired !== undefined) return;
    this.#retired = { error, code, sendsError };
    for (const lane of this.#lanes.clear()) this.#refuse(error, lane);
    // No call waits any more. Reading continues, because the client may cancel the running call.
    this.#readOn();
    this.#closeWhenIdle();
  }

  /** Ends every call with the error, and the connection whether the client agrees or not. */
  endAll(error: GatewayError): void {
    this.retire(error, 1001, false);
    for (const reply of this.#lanes.replies()) reply.fail(error);
    setTimeout(() => this.#socket.terminate(), 200).unref();
  }

  /** Returns true when no call runs and nothing has come from the client for a while. Right after a tick. */
  isQuiet(now: number): boolean {
    return this.#lanes.isIdle && now - this.#receivedAt > quietTime;
  }

  readonly #onReceived = (): void => {
    this.#hasReceived = true;
  };

  readonly #onDrain = (): void => {
    if (this.#fullSince === 0) return;
    this.#fullSince = 0;
    for (const reply of this.#lanes.replies()) reply.release();
    this.#readOn();
    this.#closeWhenIdle();
  };

  #message(data: Buffer, isBinary: boolean): void {
    this.#hasReceived = true;
    if (this.#closingAt > 0) return;
    try {
      if (isBinary)
        throw new GatewayError('invalid_type', 'A message must be text: one JSON object in a text frame.');
      this.#understood(parseJsonBody(data, this.#options.limits), data.length);
    } catch (error) {
      if (!(error instanceof GatewayError))
        this.#options.log.error({ error }, 'a message failed inside the gateway');
      this.#refuse(toGatewayError(error), '');
    }
    // Stops reading, because responses to a client that reads none of them would pile up.
    if (this.#fullSince > 0 || this.#lanes.isLong) {
      this.#paused = true;
      this.#socket.pause();
    }
  }

  #understood(message: JsonObject, size: number): void {
    const request = this.#options.route.read(message);
    switch (request.type) {
      case 'answer':
        this.#send([JSON.stringify(request.message)]);
        return;
      case 'cancel':
        this.#cancel(request.lane);
        return;
      case 'call':
        this.#enqueue(request.lane, { body: request.body, size });
    }
  }

  #cancel(name: string): void {
    const running = this.#lanes.running(name);
    if (running === undefined) {
      this.#refuse(new GatewayError('not_found', 'There is no running response to cancel.'), name);
      return;
    }
    running.fail(new GatewayError('client_closed_request', 'The response was cancelled by the client.'));
  }

  #enqueue(name: string, call: QueuedCall): void {
    if (this.#retired !== undefined) {
      this.#refuse(this.#retired.error, name);
      return;
    }
    let lane: Lane | undefined;
    try {
      lane = this.#lanes.enter(name, call);
    } catch (error) {
      this.#refuse(toGatewayError(error), name);
      return;
    }
    if (lane !== undefined) this.#start(lane, call.body);
  }

  #start(lane: Lane, body: JsonObject): void {
    const { route, log, handle } = this.#options;
    const exchange = this.#options.exchange(body);
    const reply = new SocketReply(exchange, {
      route,
      lane: lane.name,
      log,
      send: (texts) => this.#send(texts),
      done: (error) => this.#ended(lane, error),
    });
    lane.running = reply;
    if (this.#fullSince > 0) reply.hold();
    void (async () => {
      try {
        reply.send(await handle(firstView(exchange)));
      } catch (error) {
        reply.fail(error);
      }
    })();
  }

  #ended(lane: Lane, error: GatewayError | undefined): void {
    lane.running = undefined;
    // No later call would be let in: the key that opened this connection is no longer valid.
    if (error?.status === 401 && error.origin === 'client') this.retire(error, 1008, false);
    const next = this.#lanes.next(lane);
    if (next === undefined) {
      this.#closeWhenIdle();
      return;
    }
    this.#start(lane, next.body);
    this.#readOn();
  }

  /** Closes a retired connection that has no running call. Waits while the client reads its last response, because a close has a short timeout. */
  #closeWhenIdle(): void {
    if (this.#retired === undefined || !this.#lanes.isIdle || this.#closingAt > 0) return;
    if (this.#fullSince > 0) return;
    const { error, code, sendsError } = this.#retired;
    if (sendsError) this.#refuse(error, '');
    this.#closingAt = performance.now();
    this.#socket.close(code, error.code);
  }

  #readOn(): void {
    if (!this.#paused || this.#fullSince > 0 || this.#lanes.isLong) return;
    this.#paused = false;
    this.#socket.resume();
  }

  #refuse(error: GatewayError, lane: string): void {
    this.#send(this.#options.route.failure(error, lane, []).map((message) => JSON.stringify(message)));
  }

  #send(texts: readonly string[]): void {
    if (texts.length === 0 || this.#socket.readyState !== this.#socket.OPEN) return;
    this.#stream.cork();
    for (const text of texts) this.#socket.send(text);
    this.#stream.uncork();
    if (this.#fullSince > 0 || !this.#stream.writableNeedDrain) return;
    this.#fullSince = performance.now();
    for (const reply of this.#lanes.replies()) reply.hold();
  }

  #closed(): void {
    this.#stream.off('drain', this.#onDrain);
    this.#lanes.clear();
    for (const reply of this.#lanes.replies()) reply.leave();
    this.#options.closed();
  }
}
