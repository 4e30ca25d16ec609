/**
 * Receives one HTTP response of a provider from undici: resolves with its head, streams its bytes with backpressure, and detects stale
 * connections.
 */
import type { Dispatcher } from 'undici';
import type { Subscriber } from 'rxjs';
import { callKey } from '../sdk/call-key.ts';
import { type Call } from '../sdk/call.ts';
import type { Upstream } from '../sdk/channel.ts';
import { accountOf } from '../money/account/index.ts';
import { GatewayError } from '../sdk/errors.ts';
import { ExactBytes } from '../sdk/exact-bytes.ts';
import type { Valve } from '../sdk/gate.ts';
import { decompressed } from './compression.ts';
import { upstreamFailure } from './failure.ts';

/** Maximum number of bytes that are held before there is a subscriber. */
const earlyLimit = 64 * 1024;

/**
 * Milliseconds within which a request on a closed kept-alive connection fails: about one round trip. A provider that closes the connection later
 * may have processed the request.
 */
const staleWithin = 2000;

/** True when the call's last request met a closed kept-alive connection, so that its next one needs a new connection. */
export const foundStale = callKey<boolean>('found stale');

/** Reason for closing a socket at the ordinary end of a call. One shared object, because an Error per call would be costly. */
const released = new Error('The call has ended.');

/** Callbacks for the response. */
interface Waiting {
  readonly call: Call;
  readonly resolve: (upstream: Upstream) => void;
  readonly reject: (error: GatewayError) => void;
  forget: (() => void) | undefined;
}

/** A connection that carries requests sequentially. */
interface Carrier {
  /** Called when a request is sent. Returns true when it is not the first. */
  use(): boolean;
}

/** Handler of one request: emits the response's bytes, pauses while the gate is closed, and closes the socket when the call ends. */
export class Reader implements Dispatcher.DispatchHandler, Valve {
  #waiting: Waiting | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #connection: Carrier | undefined;
  #subscriber: Subscriber<Buffer> | undefined;
  #early: Buffer[] | undefined;
  #earlyLength = 0;
  /** Chunks of the current read of the socket. */
  #gathered: Buffer[] | undefined;
  /** Time at which the request was sent on a reused connection; 0 on a new one, and once a byte was received. */
  #reusedAt = 0;
  #started = false;
  #reached = false;
  #gone = false;
  #outcome: { error?: GatewayError } | undefined;

  constructor(call: Call, resolve: (upstream: Upstream) => void, reject: (error: GatewayError) => void) {
    this.#waiting = { call, resolve, reject, forget: undefined };
    const forget = call.onEnd(() => this.#release());
    if (this.#waiting !== undefined) this.#waiting.forget = forget;
  }

  /** True when the response is no longer needed. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Sets the connection that will carry the request. */
  over(connection: Carrier): void {
    this.#connection = connection;
  }

  pause(): void {
    this.#controller?.pause();
  }

  resume(): void {
    if (this.#subscriber !== undefined) this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#connection?.use() === true) this.#reusedAt = performance.now();
    this.#connection = undefined;
    if (this.#gone) controller.abort(released);
    else this.#reaches(1);
  }

  /** Called by undici at the first byte of a response. */
  onResponseStarted(): void {
    this.#reusedAt = 0;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Upstream['headers'],
  ): void {
    // undici keeps the raw headers, each name and value as a buffer, as long as the response lasts: 2 KB for each open stream.
    controller.rawHeaders = null;
    if (statusCode < 200) return;
    this.#started = true;
    const { call, resolve } = this.#waiting ?? {};
    if (call === undefined || resolve === undefined) return;
    if (statusCode >= 400) this.#reaches(-1);
    call.gate.attach(this);
    const bytes = new ExactBytes((subscriber) => this.#subscribed(subscriber));
    resolve(decompressed({ status: statusCode, headers, bytes }, call.gate));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#subscriber !== undefined) {
      if (this.#gathered !== undefined) this.#gathered.push(chunk);
      else {
        this.#gathered = [chunk];
        process.nextTick(passGathered, this);
      }
      return;
    }
    (this.#early ??= []).push(chunk);
    this.#earlyLength += chunk.length;
    if (this.#earlyLength > earlyLimit) controller.pause();
  }

  /**
   * Emits the chunks of one read of the socket as one piece. Providers send each delta of a stream as an HTTP chunk of its own, and a read may
   * return several: together they are parsed once and written once.
   */
  passGathered(): void {
    const gathered = this.#gathered;
    if (gathered === undefined) return;
    this.#gathered = undefined;
    const [first] = gathered;
    if (first !== undefined) this.#subscriber?.next(gathered.length === 1 ? first : Buffer.concat(gathered));
  }

  onResponseEnd(): void {
    this.passGathered();
    this.#finish({});
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    const stale = this.#reusedAt > 0 && performance.now() - this.#reusedAt < staleWithin;
    const error = upstreamFailure(cause, { started: this.#started, stale });
    this.passGathered();
    if (error.staleConnection) this.#waiting?.call.set(foundStale, true);
    this.#finish({ error });
  }

  /** Reports to the account that the request has reached its provider (1), or that it failed or was abandoned before a response (-1). */
  #reaches(one: 1 | -1): void {
    if (one < 0 && !this.#reached) return;
    this.#reached = one > 0;
    const call = this.#waiting?.call;
    if (call !== undefined) accountOf(call).attempts.reached(one);
  }

  #finish(outcome: { error?: GatewayError }): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    if (!this.#started) this.#reaches(-1);
    const waiting = this.#letGo();
    if (!this.#started)
      waiting?.reject(
        outcome.error ??
          new GatewayError('upstream_cut', 'The upstream closed the connection.', { origin: 'upstream' }),
      );
    this.#deliverOutcome();
  }

  #subscribed(subscriber: Subscriber<Buffer>): () => void {
    this.#subscriber = subscriber;
    const early = this.#early;
    this.#early = undefined;
    if (early !== undefined) for (const chunk of early) subscriber.next(chunk);
    if (this.#outcome !== undefined) this.#deliverOutcome();
    else if (this.#earlyLength > earlyLimit && this.#waiting?.call.gate.closed !== true)
      this.#controller?.resume();
    return () => this.#release();
  }

  #deliverOutcome(): void {
    const subscriber = this.#subscriber;
    if (subscriber === undefined || this.#outcome === undefined) return;
    this.#subscriber = undefined;
    if (this.#outcome.error === undefined) subscriber.complete();
    else subscriber.error(this.#outcome.error);
  }

  /** Drops references to the call, because the connection references its last reader for a while. */
  #letGo(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.forget?.();
    waiting?.call.gate.detach(this);
    return waiting;
  }

  /** Abandons the response: closes the provider's socket at once. */
  #release(): void {
    if (this.#gone) return;
    this.#gone = true;
    if (!this.#started) this.#reaches(-1);
    const waiting = this.#letGo();
    // Rejects first, because abort() calls onResponseError at once, and a client that left is no failure of the upstream.
    if (!this.#started) {
      waiting?.reject(
        new GatewayError('client_closed_request', 'The client left before the upstream responded.'),
      );
    }
    const controller = this.#controller;
    this.#controller = undefined;
    this.#subscriber = undefined;
    this.#early = undefined;
    this.#gathered = undefined;
    if (this.#outcome === undefined) controller?.abort(released);
  }
}

function passGathered(reader: Reader): void {
  reader.passGathered();
}
