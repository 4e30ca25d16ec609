import { Pool, type Dispatcher } from 'undici';
import { Observable, type Subscriber } from 'rxjs';
import type { Call } from '../call.ts';
import type { Upstream } from '../channel.ts';
import { GatewayError } from '../errors.ts';
import type { Gate, Valve } from '../gate.ts';
import type { Form } from '../model/form.ts';
import { decompressors } from './body.ts';

/** One HTTP request to a provider. */
export interface HttpRequest {
  /** Absolute, as `new URL(…).href` spells it, without a fragment. */
  readonly url: string;
  readonly method?: 'POST' | 'GET' | 'DELETE';
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** A form is sent as `multipart/form-data`, which replaces the content type. */
  readonly body?: Buffer | string | Form;
}

/** Sends requests to providers over kept-alive connections. */
export interface HttpClient {
  /**
   * Resolves when status and headers are there, whatever the status. Rejects with a GatewayError (origin upstream) when the provider
   * cannot be reached or stays silent. Stops within the call: reading follows `call.gate`, the end of the call closes the socket.
   */
  send(call: Call, request: HttpRequest): Promise<Upstream>;
  close(): Promise<void>;
}

/** Times for all providers of a gateway. */
export interface HttpClientOptions {
  /** Longest wait for a connection, in milliseconds. */
  readonly connectTimeout: number;
  /** Longest silence of a provider, before and between bytes, in milliseconds. */
  readonly idleTimeout: number;
}

/** Chunks held for a subscriber that is not there yet. */
const earlyLimit = 64 * 1024;

/** Why a socket is let go of in an ordinary end. One object: an Error per call would cost more than the call. */
const released = new Error('The call has ended.');

/** The client used by channels: undici's dispatch, which is as fast as Node's own parser allows. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const pools = new Map<string, Pool>();
  const poolOf = (origin: string): Pool => {
    let pool = pools.get(origin);
    if (pool === undefined) {
      pool = new Pool(origin, {
        headersTimeout: options.idleTimeout,
        bodyTimeout: options.idleTimeout,
        connect: { timeout: options.connectTimeout },
        maxHeaderSize: 64 * 1024,
      });
      pools.set(origin, pool);
    }
    return pool;
  };
  return {
    send(call, request) {
      return new Promise<Upstream>((resolve, reject) => {
        const { url } = request;
        const slash = url.indexOf('/', url.indexOf('://') + 3);
        const reader = new Reader(call, resolve, reject);
        if (reader.gone) return;
        poolOf(slash < 0 ? url : url.slice(0, slash)).dispatch(
          {
            path: slash < 0 ? '/' : url.slice(slash),
            method: request.method ?? 'POST',
            headers: request.headers,
            body: plainBody(request.body),
          },
          reader,
        );
      });
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()));
    },
  };
}

/** Who waits for an answer. */
interface Waiting {
  readonly call: Call;
  readonly resolve: (upstream: Upstream) => void;
  readonly reject: (error: GatewayError) => void;
  forget: (() => void) | undefined;
}

/** Reads one answer: pushes bytes to its subscriber, waits when the gate is shut, closes the socket when nobody wants it any more. */
class Reader implements Dispatcher.DispatchHandler, Valve {
  #waiting: Waiting | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #subscriber: Subscriber<Buffer> | undefined;
  #early: Buffer[] = [];
  #earlyLength = 0;
  #started = false;
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

  pause(): void {
    this.#controller?.pause();
  }

  resume(): void {
    if (this.#subscriber !== undefined) this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#gone) controller.abort(released);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Upstream['headers'],
  ): void {
    if (statusCode < 200) return;
    this.#started = true;
    const { call, resolve } = this.#waiting ?? {};
    if (call === undefined || resolve === undefined) return;
    call.gate.attach(this);
    const bytes = new Observable<Buffer>((subscriber) => this.#subscribed(subscriber));
    resolve({
      status: statusCode,
      headers,
      bytes: decompressed(bytes, headers['content-encoding'], call.gate),
    });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#subscriber !== undefined) {
      this.#subscriber.next(chunk);
      return;
    }
    this.#early.push(chunk);
    this.#earlyLength += chunk.length;
    if (this.#earlyLength > earlyLimit) controller.pause();
  }

  onResponseEnd(): void {
    this.#finish({});
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    this.#finish({ error: upstreamFailure(cause, this.#started) });
  }

  #finish(outcome: { error?: GatewayError }): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
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
    this.#early = [];
    for (const chunk of early) subscriber.next(chunk);
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
    this.#early = [];
    if (this.#outcome === undefined) controller?.abort(released);
  }
}

/** What the client is told of a provider that could not be read. Never an address. */
function upstreamFailure(cause: Error & { code?: unknown }, started: boolean): GatewayError {
  const code = typeof cause.code === 'string' ? cause.code : '';
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') {
    return new GatewayError('upstream_timeout', 'The upstream sent nothing for too long.', {
      origin: 'upstream',
      cause,
    });
  }
  if (code === 'UND_ERR_CONNECT_TIMEOUT') {
    return new GatewayError('upstream_timeout', 'The upstream could not be reached in time.', {
      origin: 'upstream',
      cause,
    });
  }
  if (started) {
    return new GatewayError(
      'upstream_cut',
      'The upstream closed the connection before the answer was complete.',
      { origin: 'upstream', cause },
    );
  }
  return new GatewayError('upstream_error', 'The upstream could not be reached.', {
    origin: 'upstream',
    cause,
  });
}

/** Undoes a compression that nobody asked for; a cut inside it is a cut of the answer. */
function decompressed(
  bytes: Observable<Buffer>,
  encoding: string | string[] | undefined,
  gate: Gate,
): Observable<Buffer> {
  if (encoding === undefined || encoding === 'identity') return bytes;
  const make = decompressors.get(String(encoding).toLowerCase());
  if (make === undefined) return bytes;
  return new Observable((subscriber) => {
    const stream = make();
    stream.on('data', (chunk: Buffer) => {
      subscriber.next(chunk);
      // One read may unpack to a thousand times its size: it is unpacked no faster than it is wanted.
      const opened = gate.opened();
      if (opened === undefined) return;
      stream.pause();
      void (async () => {
        await opened;
        stream.resume();
      })();
    });
    stream.on('end', () => subscriber.complete());
    stream.on('error', (cause) =>
      subscriber.error(
        new GatewayError('upstream_cut', 'The upstream sent a damaged compressed answer.', {
          origin: 'upstream',
          cause,
        }),
      ),
    );
    const subscription = bytes.subscribe({
      next: (chunk) => stream.write(chunk),
      error: (error) => subscriber.error(error),
      complete: () => stream.end(),
    });
    return () => {
      subscription.unsubscribe();
      stream.destroy();
    };
  });
}

/** Forms are not sent yet. */
function plainBody(body: HttpRequest['body']): Buffer | string | null {
  if (body === undefined) return null;
  if (typeof body === 'string' || Buffer.isBuffer(body)) return body;
  throw new Error('A form cannot be sent.');
}
