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

/** Chunks held for a subscriber that is not there yet. */
const earlyLimit = 64 * 1024;

/**
 * Milliseconds within which a kept-alive connection that its other side has closed shows it: one way there and back. Whoever closes it
 * later may have worked on the request until then.
 */
const staleWithin = 2000;

/** True when the call's last request met a connection that had been closed: its next one gets a new one. */
export const foundStale = callKey<boolean>('found stale');

/** Why a socket is let go of in an ordinary end. One object: an Error per call would cost more than the call. */
const released = new Error('The call has ended.');

/** Who waits for an answer. */
interface Waiting {
  readonly call: Call;
  readonly resolve: (upstream: Upstream) => void;
  readonly reject: (error: GatewayError) => void;
  forget: (() => void) | undefined;
}

/** What carries requests, one after the other. */
interface Carrier {
  /** A request goes out. True when it is not the first. */
  use(): boolean;
}

/** Reads one answer: pushes bytes to its subscriber, waits when the gate is shut, closes the socket when nobody wants it any more. */
export class Reader implements Dispatcher.DispatchHandler, Valve {
  #waiting: Waiting | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #connection: Carrier | undefined;
  #subscriber: Subscriber<Buffer> | undefined;
  #early: Buffer[] | undefined;
  #earlyLength = 0;
  /** What this turn has brought so far. */
  #gathered: Buffer[] | undefined;
  /** When the request went out on a connection that had carried others before; 0 on a new one, and once anything was heard. */
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

  /** True when nobody waits for this answer any more. */
  get gone(): boolean {
    return this.#gone;
  }

  /** The connection that will carry the request, in its turn. */
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

  /** The first byte of an answer. */
  onResponseStarted(): void {
    this.#reusedAt = 0;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Upstream['headers'],
  ): void {
    // Undici keeps the head's bytes, each name and value by itself, as long as the answer lasts: 2 KB of each open stream.
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
   * Passes what one read of the socket has brought as one piece. Providers send each delta of a stream as an HTTP chunk of its own, and
   * when they are faster than we are a read brings several: together they are looked through once and written once.
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

  /** The request has reached its provider; or the provider has failed, or is given up before it answered. */
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
    this.#tell();
  }

  #subscribed(subscriber: Subscriber<Buffer>): () => void {
    this.#subscriber = subscriber;
    const early = this.#early;
    this.#early = undefined;
    if (early !== undefined) for (const chunk of early) subscriber.next(chunk);
    if (this.#outcome !== undefined) this.#tell();
    else if (this.#earlyLength > earlyLimit && this.#waiting?.call.gate.closed !== true)
      this.#controller?.resume();
    return () => this.#release();
  }

  #tell(): void {
    const subscriber = this.#subscriber;
    if (subscriber === undefined || this.#outcome === undefined) return;
    this.#subscriber = undefined;
    if (this.#outcome.error === undefined) subscriber.complete();
    else subscriber.error(this.#outcome.error);
  }

  /** The connection remembers its last reader for a while: what that one no longer needs must not live as long, nor the call behind it. */
  #letGo(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.forget?.();
    waiting?.call.gate.detach(this);
    return waiting;
  }

  /** Nobody wants the rest: the provider's socket is closed at once. */
  #release(): void {
    if (this.#gone) return;
    this.#gone = true;
    if (!this.#started) this.#reaches(-1);
    const waiting = this.#letGo();
    // Rejected first: aborting calls onResponseError at once, and that the client left is no failure of the upstream.
    if (!this.#started) {
      waiting?.reject(
        new GatewayError('client_closed_request', 'The client left before the upstream answered.'),
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
