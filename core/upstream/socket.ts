/** One WebSocket to a provider: opens it, forwards messages both ways with backpressure, detects a dead provider, and closes it. */
import type { IncomingMessage } from 'node:http';
import { Observable, type Subscriber } from 'rxjs';
import type { WebSocket } from 'ws';
import type { Call } from '../sdk/call.ts';
import type { ChannelOptions } from '../sdk/define.ts';
import { GatewayError } from '../sdk/errors.ts';
import { upstreamError } from '../formats/_shared/upstream-error/index.ts';
import type { Valve } from '../sdk/gate.ts';
import type { GatewayEvent } from '../model/event.ts';
import type { SocketMessage } from '../model/realtime.ts';
import type { RealtimeSettings } from '../settings/realtime.ts';
import { Heartbeat } from './heartbeat.ts';
import { SendQueue } from './send-queue.ts';
import { faultCode, sendableCode, sendableReason } from './socket-close.ts';

/** Options that all WebSockets of a channel share. */
export interface UpstreamSocketOptions extends Pick<
  RealtimeSettings,
  'frame' | 'queue' | 'ping' | 'stalled' | 'compress'
> {
  /** Timeout for the opening handshake, in milliseconds. */
  readonly connectTimeout: number;
  readonly headers?: ChannelOptions['headers'] | undefined;
  readonly proxy?: string | undefined;
  readonly tls?: ChannelOptions['tls'] | undefined;
}

/** Maximum number of bytes of a refused handshake's body that are read. */
const refusalLimit = 64 * 1024;
/** Time for the provider to answer a close frame, in milliseconds. */
const closeTime = 2000;

/** Registry of a channel's open WebSockets, which calls their `tick`. */
export interface SharedSockets {
  readonly options: UpstreamSocketOptions;
  opened(one: UpstreamSocket): void;
  closed(one: UpstreamSocket): void;
}

/** A WebSocket from its handshake to its end. */
export class UpstreamSocket implements Valve {
  readonly #call: Call;
  readonly #socket: WebSocket;
  readonly #shared: SharedSockets;
  #reject: (error: GatewayError) => void = () => {};
  #forget: (() => void) | undefined;
  #subscriber: Subscriber<GatewayEvent> | undefined;
  /** Messages before there was a subscriber: the rest of the bytes that were read before the socket was paused. */
  #early: SocketMessage[] = [];
  #opened = false;
  #over = false;
  /** True when this side has started the close. */
  #closing = false;
  #fault = 0;
  #outcome: { readonly error?: GatewayError; readonly last?: SocketMessage } | undefined;
  readonly #queue: SendQueue;
  readonly #heartbeat: Heartbeat;

  constructor(call: Call, socket: WebSocket, shared: SharedSockets) {
    this.#call = call;
    this.#socket = socket;
    this.#shared = shared;
    this.#queue = new SendQueue(socket, shared.options.queue, call.inputGate);
    this.#heartbeat = new Heartbeat(socket, shared.options.ping);
  }

  /** Waits until the WebSocket is open. Must be called once. */
  open(): Promise<Observable<GatewayEvent>> {
    return new Promise((resolve, reject) => {
      const socket = this.#socket;
      this.#reject = reject;
      socket.on('open', () => {
        this.#opened = true;
        socket.pause();
        this.#shared.opened(this);
        resolve(new Observable((subscriber) => this.#subscribed(subscriber)));
      });
      socket.on('unexpected-response', (_request, response) => this.#refused(response));
      socket.on('error', (error) => this.#failed(error));
      socket.on('message', (data: Buffer, binary) => this.#message({ data, binary }));
      socket.on('ping', this.#heartbeat.received);
      socket.on('pong', this.#heartbeat.received);
      socket.on('close', (code, reason) => this.#closed(code, reason));
      const forget = this.#call.onEnd(() => this.abandon());
      if (!this.#over) this.#forget = forget;
    });
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    if (this.#subscriber !== undefined) this.#socket.resume();
  }

  /** Called about once a second: pings the provider, and ends the session when it does not answer or does not read. */
  tick(now: number): void {
    if (this.#closing) return;
    const { fullSince } = this.#queue;
    if (fullSince > 0) {
      if (now - fullSince > this.#shared.options.stalled)
        this.#giveUp('The upstream does not accept more messages.');
    } else if (!this.#heartbeat.beat(now)) this.#giveUp('The upstream stopped responding.');
  }

  /** Closes the WebSocket because it is no longer needed, whether the provider answers the close or not. */
  abandon(): void {
    if (this.#over) return;
    this.#over = true;
    this.#letGo();
    if (!this.#opened) {
      this.#reject(
        new GatewayError('client_closed_request', 'The client left before the upstream responded.'),
      );
      this.#socket.terminate();
      return;
    }
    this.#close(1000, '');
  }

  #subscribed(subscriber: Subscriber<GatewayEvent>): () => void {
    this.#subscriber = subscriber;
    this.#heartbeat.received();
    const early = this.#early;
    this.#early = [];
    for (const message of early) subscriber.next({ type: 'message', ...message });
    if (this.#outcome !== undefined) this.#deliverOutcome();
    this.#call.gate.attach(this);
    if (!this.#call.gate.closed) this.#socket.resume();
    const sending = this.#call.input?.subscribe((message) => this.#send(message));
    return () => {
      sending?.unsubscribe();
      this.abandon();
    };
  }

  #message(message: SocketMessage): void {
    this.#heartbeat.received();
    if (this.#over) return;
    if (this.#subscriber === undefined) this.#early.push(message);
    else this.#subscriber.next({ type: 'message', ...message });
  }

  #send(message: SocketMessage): void {
    if (message.close !== undefined) {
      this.#close(message.close, message.data.toString());
      return;
    }
    if (this.#socket.readyState === this.#socket.OPEN) this.#queue.send(message);
  }

  /** Sends the waiting messages and a close frame. */
  #close(code: number, reason: string): void {
    if (this.#closing) return;
    this.#closing = true;
    // The provider's own close must be read, whatever the client can take.
    this.#call.gate.detach(this);
    this.#socket.resume();
    this.#socket.close(code, reason);
    this.#terminateSoon();
  }

  /** Terminates the connection after {@link closeTime}, because the provider may not answer the close. */
  #terminateSoon(): void {
    setTimeout(() => this.#socket.terminate(), closeTime).unref();
  }

  #refused(response: IncomingMessage): void {
    const chunks: Buffer[] = [];
    let length = 0;
    const done = (): void => {
      clearTimeout(timer);
      response.destroy();
      this.#refuse(refusalOf(response, Buffer.concat(chunks).subarray(0, refusalLimit).toString()));
    };
    const timer = setTimeout(done, closeTime);
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > refusalLimit) done();
    });
    response.on('end', done);
    response.on('error', done);
  }

  #refuse(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    this.#letGo();
    this.#reject(error);
  }

  #failed(error: Error): void {
    if (this.#opened) {
      this.#fault = faultCode(error);
      // `ws` has already sent a close frame for an invalid frame.
      this.#terminateSoon();
      return;
    }
    const isLate = error.message.includes('timed out');
    this.#refuse(
      isLate
        ? new GatewayError('upstream_timeout', 'The upstream could not be reached in time.', {
            origin: 'upstream',
            cause: error,
          })
        : new GatewayError('upstream_error', 'The upstream could not be reached.', {
            origin: 'upstream',
            cause: error,
          }),
    );
  }

  #giveUp(sentence: string): void {
    this.#outcome = { error: new GatewayError('upstream_timeout', sentence, { origin: 'upstream' }) };
    this.#socket.terminate();
    this.#deliverOutcome();
  }

  #closed(code: number, reason: Buffer): void {
    this.#shared.closed(this);
    if (this.#over) return;
    if (this.#fault > 0)
      this.#outcome ??= {
        last: lastMessage(this.#fault, 'The upstream sent a message that cannot be forwarded.'),
      };
    else if (code === 1006 && !this.#closing)
      this.#outcome ??= {
        error: new GatewayError('upstream_cut', 'The upstream closed the connection.', {
          origin: 'upstream',
        }),
      };
    else this.#outcome ??= { last: lastMessage(code, sendableReason(reason)) };
    this.#deliverOutcome();
  }

  #deliverOutcome(): void {
    const subscriber = this.#subscriber;
    if (subscriber === undefined || this.#outcome === undefined || this.#over) return;
    const { error, last } = this.#outcome;
    this.#over = true;
    this.#letGo();
    if (error !== undefined) subscriber.error(error);
    else {
      if (last !== undefined) subscriber.next({ type: 'message', ...last });
      subscriber.complete();
    }
  }

  #letGo(): void {
    this.#forget?.();
    this.#subscriber = undefined;
    this.#early = [];
    this.#call.gate.detach(this);
    this.#queue.letGo();
  }
}

function lastMessage(code: number, reason: string): SocketMessage {
  return { data: Buffer.from(reason), binary: false, close: sendableCode(code) };
}

/** Returns the error for a refused handshake. Statuses from 500 on become `server_is_overloaded`, because another attempt may succeed. */
function refusalOf({ statusCode = 0, headers }: IncomingMessage, body: string): GatewayError {
  const error = upstreamError(statusCode, body, headers);
  if (statusCode < 500 || error.status === 503) return error;
  const { message, retryAfter, cause } = error;
  return new GatewayError('server_is_overloaded', message, {
    origin: 'upstream',
    cause,
    ...(retryAfter === undefined ? {} : { retryAfter }),
  });
}
