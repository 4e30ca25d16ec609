import { Observable, type Subscriber, type Subscription } from 'rxjs';
import type { WebSocket } from 'ws';
import type { Exchange } from '../call/call.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { TunnelRoute } from '../sdk/format.ts';
import type { Valve } from '../sdk/gate.ts';
import type { Log } from '../log.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { SocketMessage } from '../model/realtime.ts';
import { tunnelWatch } from '../sdk/tunnel-watch.ts';
import type { RealtimeSettings } from '../settings/realtime.ts';
import { faultCode, sendableCode, sendableReason } from '../upstream/socket-close.ts';

/** What a session needs of where it runs. */
export interface TunnelOptions {
  readonly route: TunnelRoute;
  readonly settings: RealtimeSettings;
  readonly log: Log;
  /** Runs once, when the session is over. */
  readonly done: () => void;
}

const noReason = Buffer.alloc(0);

/** How long the client may take to agree to a close, and the provider's side to end after the client has, in milliseconds. */
const closeTime = 5000;

/**
 * One session of a client that passes through to a provider: the only subscriber of its call's events. What the client sends is the call's
 * `input`; what comes from the provider is written to the client. A full buffer on one side stops the reading of the other.
 */
export class Tunnel implements Valve {
  readonly #exchange: Exchange;
  readonly #options: TunnelOptions;
  #events: Observable<GatewayEvent> | undefined;
  #socket: WebSocket | undefined;
  #subscription: Subscription | undefined;
  #input: Subscriber<SocketMessage> | undefined;
  /** What the client sent before anybody took it: what had been read with its handshake. */
  #early: SocketMessage[] = [];
  #over = false;
  /** Set when a close was sent to the client, or the client has closed: nothing more is written to it. */
  #closed = false;
  #closingAt = 0;
  /** Set when the provider's side was told that the client has closed. */
  #told = false;
  #retired: GatewayError | undefined;
  #fault = 0;
  #openedAt = 0;
  #fullSince = 0;
  /** Set by whatever the client sends, taken back by each tick. */
  #heard = true;
  #heardAt = 0;
  #pings = 0;
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

  /** The provider's side is open. */
  carry(events: Observable<GatewayEvent>): void {
    this.#events = events;
  }

  /** The client has its socket: from now on messages flow. */
  accept(socket: WebSocket): void {
    this.#socket = socket;
    const now = performance.now();
    this.#openedAt = now;
    this.#heardAt = now;
    this.#busyAt = now;
    socket.pause();
    socket.on('message', (data: Buffer, binary) => this.#fromClient({ data, binary }));
    socket.on('ping', (data) => {
      this.#heard = true;
      // Answers would pile up for a client that asks and does not read.
      if (this.#fullSince === 0 && !this.#closed) socket.pong(data);
    });
    socket.on('pong', () => {
      this.#heard = true;
    });
    socket.on('error', (error) => {
      // The close that follows tells the client; the provider is told at once.
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

  /** Ends the session: the client is told why, and its socket closed with the code that fits. */
  fail(cause: unknown): void {
    if (this.#over) return;
    const error = toGatewayError(cause);
    const { id } = this.#exchange;
    if (!(cause instanceof GatewayError))
      this.#options.log.error({ id, error: cause }, 'a call failed inside the gateway');
    this.#tell(error, closeCodeOf(error));
    this.#end();
  }

  /** Ends the session as {@link fail} does, and the connection whether the client agrees or not. */
  cut(error: GatewayError): void {
    this.fail(error);
    setTimeout(() => this.#socket?.terminate(), 200).unref();
  }

  /** Takes no more than the answer that is being given, and is closed after it. */
  retire(error: GatewayError): void {
    this.#retired = error;
    this.#retireWhenIdle();
  }

  /** The client has gone before its socket was open: everything up to the provider's socket is let go of. */
  leave(): void {
    if (this.#socket !== undefined || this.#over) return;
    // What was promised a subscriber is let go of by one that leaves at once.
    this.#events?.subscribe({ error: () => {} }).unsubscribe();
    this.#end();
  }

  /** Called about once a second: pings, limits, and clients that are gone. */
  tick(now: number): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    const { ping, stalled, idle, lifetime } = this.#options.settings;
    if (this.#closingAt > 0) {
      if (now - this.#closingAt < closeTime) return;
      socket.terminate();
      this.#end();
      return;
    }
    if (this.#fullSince > 0) {
      if (now - this.#fullSince > stalled) socket.terminate();
      return;
    }
    if (this.#heard) {
      this.#heard = false;
      this.#heardAt = now;
      this.#pings = 0;
    }
    if (this.#busy) {
      this.#busy = false;
      this.#busyAt = now;
    }
    this.#retireWhenIdle();
    if (now - this.#openedAt > lifetime) this.fail(tooLong('may last', lifetime));
    else if (now - this.#busyAt > idle) this.fail(tooLong('may be silent for', idle));
    // A pong that is not read says nothing about the client.
    if (this.#closed || socket.isPaused || now - this.#heardAt < ping * (this.#pings + 1)) return;
    if (this.#pings >= 2) {
      socket.terminate();
      return;
    }
    this.#pings += 1;
    socket.ping();
  }

  #taken(subscriber: Subscriber<SocketMessage>): (() => void) | undefined {
    // The first has it: what was asked beside it is only let go of.
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
    this.#heard = true;
    this.#busy = true;
    if (this.#closed) return;
    if (this.#input !== undefined) this.#input.next(message);
    else {
      this.#early.push(message);
      this.#socket?.pause();
    }
  }

  #toClient({ data, binary, close }: SocketMessage): void {
    this.#busy = true;
    if (close !== undefined) {
      this.#close(close, data.toString());
      return;
    }
    const socket = this.#socket;
    if (socket === undefined || this.#closed) return;
    socket.send(data, { binary }, this.#onSent);
    if (this.#fullSince > 0 || socket.bufferedAmount <= this.#options.settings.queue) return;
    this.#fullSince = performance.now();
    this.#exchange.gate.close();
  }

  readonly #onSent = (): void => {
    if (this.#fullSince === 0) return;
    if ((this.#socket?.bufferedAmount ?? 0) > this.#options.settings.queue / 2) return;
    this.#opened();
  };

  /** The client takes messages again, or never will. */
  #opened(): void {
    if (this.#fullSince === 0) return;
    this.#fullSince = 0;
    this.#exchange.gate.open();
  }

  #clientClosed(code: number, reason: Buffer): void {
    this.#closed = true;
    this.#closingAt ||= performance.now();
    this.#early = [];
    this.#opened();
    if (this.#over || this.#told) return;
    this.#told = true;
    if (this.#input === undefined) {
      this.#end();
      return;
    }
    // The provider's side ends by itself when it is told; what it still says until then is charged for.
    const last = this.#fault > 0 ? this.#fault : sendableCode(code);
    this.#input.next({ data: Buffer.from(sendableReason(reason)), binary: false, close: last });
    this.#input?.complete();
  }

  #retireWhenIdle(): void {
    if (this.#retired === undefined || this.#socket === undefined) return;
    const watch = this.#exchange.values.get(tunnelWatch);
    if (watch?.unfinished === undefined) this.fail(this.#retired);
  }

  #tell(error: GatewayError, code: number): void {
    const socket = this.#socket;
    if (socket === undefined || this.#closed) return;
    if (socket.readyState === socket.OPEN)
      socket.send(this.#options.route.failure(error, this.#exchange.id), { binary: false });
    this.#close(code, error.code);
  }

  /** What waits is written before. */
  #close(code: number, reason: string): void {
    const socket = this.#socket;
    if (socket === undefined || this.#closed) return;
    this.#closed = true;
    this.#closingAt = performance.now();
    // The client's own close must be read, whatever the provider can take.
    socket.resume();
    socket.close(code, reason);
  }

  /** Nothing more flows. */
  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
    this.#input = undefined;
    this.#exchange.inputGate.detach(this);
    this.#opened();
    try {
      this.#exchange.end();
    } catch (error) {
      // A job of a plugin's: thrown on, it would end the process.
      this.#options.log.error({ id: this.#exchange.id, error }, 'something failed at the end of a call');
    }
    if (this.#socket === undefined || this.#socket.readyState === this.#socket.CLOSED) this.#options.done();
  }
}

function tooLong(what: string, limit: number): GatewayError {
  const length =
    limit < 120_000 ? `${Math.ceil(limit / 1000)} seconds` : `${Math.round(limit / 60_000)} minutes`;
  return new GatewayError(
    'websocket_connection_limit_reached',
    `A session ${what} ${length}. Open a new one to go on.`,
  );
}

/** The close code for a failure of ours or of the provider's. */
function closeCodeOf({ code, origin }: GatewayError): number {
  switch (code) {
    case 'insufficient_quota':
    case 'rate_limit_exceeded':
    case 'invalid_api_key':
    case 'expired_api_key':
    case 'disabled_api_key':
    case 'forbidden':
    case 'model_not_allowed':
      return 1008;
    case 'websocket_connection_limit_reached':
      return 1000;
    case 'server_is_overloaded':
      return origin === 'gateway' ? 1001 : 1013;
    default:
      return 1011;
  }
}
