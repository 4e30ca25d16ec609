/** Tunnel of one WebSocket session to a provider: forwards messages both ways with backpressure, pings, limits and close codes. */
import { Observable, type Subscriber, type Subscription } from 'rxjs';
import type { WebSocket } from 'ws';
import type { Exchange } from '../call/exchange.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { TunnelRoute } from '../sdk/format.ts';
import type { Valve } from '../sdk/gate.ts';
import type { Log } from '../log.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { SocketMessage } from '../model/realtime.ts';
import { tunnelWatch } from '../sdk/tunnel-watch.ts';
import type { RealtimeSettings } from '../settings/realtime.ts';
import { Heartbeat } from '../upstream/heartbeat.ts';
import { SendQueue } from '../upstream/send-queue.ts';
import { faultCode, sendableCode, sendableReason } from '../upstream/socket-close.ts';
import { closeCodeOf } from './tunnel-close.ts';

/** Options of a session. */
export interface TunnelOptions {
  readonly route: TunnelRoute;
  readonly settings: RealtimeSettings;
  readonly log: Log;
  /** Runs once, when the session is over. */
  readonly done: () => void;
}

const noReason = Buffer.alloc(0);

/** Time for the client to answer a close frame, and for the provider's connection to end after the client's, in milliseconds. */
const closeTime = 5000;

/**
 * The only subscriber of its call's events. Messages of the client are the call's `input`; messages of the provider are written to the client.
 * A full buffer on one side stops the reading of the other.
 */
export class Tunnel implements Valve {
  readonly #exchange: Exchange;
  readonly #options: TunnelOptions;
  #events: Observable<GatewayEvent> | undefined;
  #socket: WebSocket | undefined;
  #subscription: Subscription | undefined;
  #input: Subscriber<SocketMessage> | undefined;
  /** Messages of the client before `input` has a subscriber: those that were read with its handshake. */
  #early: SocketMessage[] = [];
  #over = false;
  /** Set when a close was sent to the client, or the client has closed: nothing more is written to it. */
  #closed = false;
  #closingAt = 0;
  /** Set when the client's close was forwarded to the provider. */
  #isCloseForwarded = false;
  #retired: GatewayError | undefined;
  #fault = 0;
  #openedAt = 0;
  #queue: SendQueue | undefined;
  #heartbeat: Heartbeat | undefined;
  /** Set by each message of either side, taken back by each tick. */
  #busy = true;
  #busyAt = 0;

  constructor(exchange: Exchange, options: TunnelOptions) {
    this.#exchange = exchange;
    this.#options = options;
    exchange.input = new Observable((subscriber) => this.#taken(subscriber));
    exchange.inputGate.attach(this);
    exchange.writer = this;
  }

  /** True when the client has its socket. */
  get accepted(): boolean {
    return this.#socket !== undefined;
  }

  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    if (this.#input !== undefined) this.#socket?.resume();
  }

  /** Sets the provider's events, once its side is open. */
  carry(events: Observable<GatewayEvent>): void {
    this.#events = events;
  }

  /** Sets the socket of the client. From now on messages flow. */
  accept(socket: WebSocket): void {
    this.#socket = socket;
    const now = performance.now();
    this.#openedAt = now;
    this.#busyAt = now;
    const { queue: most, ping } = this.#options.settings;
    const queue = new SendQueue(socket, most, this.#exchange.gate);
    const heartbeat = new Heartbeat(socket, ping);
    this.#queue = queue;
    this.#heartbeat = heartbeat;
    socket.pause();
    socket.on('message', (data: Buffer, binary) => this.#fromClient({ data, binary }));
    socket.on('ping', (data) => {
      heartbeat.received();
      // No pong while the buffer is full, because pongs would pile up for a client that does not read.
      if (queue.fullSince === 0 && !this.#closed) socket.pong(data);
    });
    socket.on('pong', heartbeat.received);
    socket.on('error', (error) => {
      // The close frame that follows reports the error to the client; the provider gets it at once.
      this.#fault = faultCode(error);
      this.#clientClosed(1006, noReason);
    });
    socket.on('close', (code, reason) => {
      this.#clientClosed(code, reason);
      if (this.#over) this.#options.done();
    });
    if (this.#over) {
      socket.terminate();
      return;
    }
    this.#subscription = this.#events?.subscribe({
      next: (event) => {
        if (event.type === 'message') this.#toClient(event);
      },
      error: (error) => this.fail(error),
      complete: () => {
        this.#close(1000, '');
        this.#end();
      },
    });
    if (this.#over) this.#subscription?.unsubscribe();
  }

  /** Ends the session: sends the error to the client, and closes its socket with the matching code. */
  fail(cause: unknown): void {
    if (this.#over) {
      if (!(cause instanceof GatewayError)) this.#exchange.reportEndError(cause);
      return;
    }
    const error = toGatewayError(cause);
    this.#exchange.noteFailure(error);
    const { id } = this.#exchange;
    if (!(cause instanceof GatewayError))
      this.#options.log.error({ id, error: cause }, 'a call failed inside the gateway');
    this.#sendError(error, closeCodeOf(error));
    this.#end();
  }

  /** Ends the session as {@link fail} does, and the connection whether the client agrees or not. */
  cut(error: GatewayError): void {
    this.fail(error);
    setTimeout(() => this.#socket?.terminate(), 200).unref();
  }

  /** Ends the session with the error after the response that is in progress. */
  retire(error: GatewayError): void {
    this.#retired = error;
    this.#retireWhenIdle();
  }

  /** Ends the session because the client has disconnected before its socket was open, and with it everything up to the provider's socket. */
  leave(): void {
    if (this.#socket !== undefined || this.#over) return;
    // Subscribes and unsubscribes, because unsubscribing releases the provider's connection.
    this.#events?.subscribe({ error: () => {} }).unsubscribe();
    this.#end();
  }

  /** Called about once a second: pings, limits, and clients that are gone. */
  tick(now: number): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    const { stalled, idle, lifetime } = this.#options.settings;
    if (this.#closingAt > 0) {
      if (now - this.#closingAt < closeTime) return;
      socket.terminate();
      this.#end();
      return;
    }
    const fullSince = this.#queue?.fullSince ?? 0;
    if (fullSince > 0) {
      if (now - fullSince > stalled) socket.terminate();
      return;
    }
    if (this.#busy) {
      this.#busy = false;
      this.#busyAt = now;
    }
    this.#retireWhenIdle();
    if (now - this.#openedAt > lifetime) this.fail(tooLong('may last', lifetime));
    else if (now - this.#busyAt > idle) this.fail(tooLong('may be silent for', idle));
    if (!this.#closed && this.#heartbeat?.beat(now) === false) socket.terminate();
  }

  #taken(subscriber: Subscriber<SocketMessage>): (() => void) | undefined {
    // Only the first subscriber gets the input, because all other attempts are cancelled.
    if (this.#input !== undefined) return undefined;
    this.#input = subscriber;
    const early = this.#early;
    this.#early = [];
    for (const message of early) subscriber.next(message);
    if (!this.#exchange.inputGate.closed) this.#socket?.resume();
    return () => {
      if (this.#input === subscriber) this.#input = undefined;
    };
  }

  #fromClient(message: SocketMessage): void {
    this.#heartbeat?.received();
    this.#busy = true;
    if (this.#closed) return;
    if (this.#input !== undefined) this.#input.next(message);
    else {
      this.#early.push(message);
      this.#socket?.pause();
    }
  }

  #toClient(message: SocketMessage): void {
    this.#busy = true;
    if (message.close !== undefined) this.#close(message.close, message.data.toString());
    else if (!this.#closed) this.#queue?.send(message);
  }

  #clientClosed(code: number, reason: Buffer): void {
    this.#closed = true;
    this.#closingAt ||= performance.now();
    this.#early = [];
    this.#queue?.letGo();
    if (this.#over || this.#isCloseForwarded) return;
    this.#isCloseForwarded = true;
    if (this.#input === undefined) {
      this.#end();
      return;
    }
    // The connection of the provider ends after the close frame. Usage that it reports until then is charged.
    const last = this.#fault > 0 ? this.#fault : sendableCode(code);
    this.#input.next({ data: Buffer.from(sendableReason(reason)), binary: false, close: last });
    this.#input?.complete();
  }

  #retireWhenIdle(): void {
    if (this.#retired === undefined || this.#socket === undefined) return;
    const watch = this.#exchange.values.get(tunnelWatch);
    if (watch?.unfinished === undefined) this.fail(this.#retired);
  }

  #sendError(error: GatewayError, code: number): void {
    const socket = this.#socket;
    if (socket === undefined || this.#closed) return;
    if (socket.readyState === socket.OPEN)
      socket.send(this.#options.route.failure(error, this.#exchange.id), { binary: false });
    this.#close(code, error.code);
  }

  /** Closes the client's socket. Messages that wait are written before. */
  #close(code: number, reason: string): void {
    const socket = this.#socket;
    if (socket === undefined || this.#closed) return;
    this.#closed = true;
    this.#closingAt = performance.now();
    // The client's own close must be read, whatever the provider can take.
    socket.resume();
    socket.close(code, reason);
  }

  /** Stops forwarding. */
  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
    this.#input = undefined;
    this.#exchange.inputGate.detach(this);
    this.#queue?.letGo();
    this.#exchange.end();
    if (this.#socket === undefined || this.#socket.readyState === this.#socket.CLOSED) this.#options.done();
  }
}

function tooLong(what: string, limit: number): GatewayError {
  const length =
    limit < 120_000 ? `${Math.ceil(limit / 1000)} seconds` : `${Math.round(limit / 60_000)} minutes`;
  return new GatewayError(
    'websocket_connection_limit_reached',
    `A session ${what} ${length}. Open a new one to continue.`,
  );
}
