/** Writes the response of one call as messages of a WebSocket. */
import type { Observable, Subscription } from 'rxjs';
import { type Exchange } from '../call/exchange.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { SocketRoute, WireFrame } from '../sdk/format.ts';
import type { Log } from '../log.ts';
import type { GatewayEvent } from '../model/event.ts';
import { parseSse } from '../formats/_shared/sse.ts';
import { ReplyEncoder } from './reply-encoder.ts';

/** Options of a response: its lane, and the functions of the connection that it uses. */
export interface SocketReplyOptions {
  readonly route: SocketRoute;
  readonly lane: string;
  readonly log: Log;
  /** Sends messages, in order. */
  readonly send: (texts: readonly string[]) => void;
  /** Runs once, when nothing more will be sent, with the error that ended the reply. */
  readonly done: (error?: GatewayError) => void;
}

/**
 * The only subscriber of the call's events, as `Reply` is for plain HTTP. Several responses share a connection, which holds them all while its
 * client does not read.
 */
export class SocketReply {
  readonly #exchange: Exchange;
  readonly #options: SocketReplyOptions;
  /** Collects dropped fields for the log only, because a WebSocket message has no headers. */
  readonly #encoder: ReplyEncoder;
  #subscription: Subscription | undefined;
  #passing = false;
  #begun = false;
  #held = false;
  #over = false;

  constructor(exchange: Exchange, options: SocketReplyOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.#encoder = new ReplyEncoder(exchange);
    exchange.writer = this;
  }

  /** Subscribes. Called once, when the request phase is over. */
  send(events: Observable<GatewayEvent>): void {
    if (this.#over) {
      events.subscribe({ error: (error) => this.#late(error) }).unsubscribe();
      return;
    }
    this.#subscription = events.subscribe({
      next: (event) => this.#guard(() => this.#next(event)),
      error: (error) => this.fail(error),
      complete: () => this.#guard(() => this.#complete()),
    });
    if (this.#over) this.#subscription.unsubscribe();
  }

  /** Ends the reply with an error: with the stream's own error event when it has begun. The socket lives on. */
  fail(cause: unknown): void {
    if (this.#over) {
      this.#late(cause);
      return;
    }
    const { route, lane, log } = this.#options;
    const error = toGatewayError(cause);
    this.#exchange.noteFailure(error);
    if (!(cause instanceof GatewayError))
      log.error({ id: this.#exchange.id, error: cause }, 'a call failed inside the gateway');
    let frames: readonly WireFrame[] = [];
    try {
      if (this.#begun) frames = this.#encoder.stream().error(error);
    } catch {
      // Without frames the failure is sent as one before the response.
    }
    this.#finish(
      route.failure(error, lane, frames).map((message) => JSON.stringify(message)),
      error,
    );
  }

  /** Ends the response because the client has disconnected, and with it everything up to the provider's socket. */
  leave(): void {
    if (!this.#over) this.#finish([]);
  }

  /** Closes the call's gate (backpressure) while the client does not read. */
  hold(): void {
    if (this.#held || this.#over) return;
    this.#held = true;
    this.#exchange.gate.close();
  }

  /** Opens the call's gate when the client reads again. */
  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#exchange.gate.open();
  }

  #next(event: GatewayEvent): void {
    if (this.#over) return;
    switch (event.type) {
      case 'request':
      case 'attempt':
      case 'loss':
      case 'answer':
        return;
      case 'frames':
        this.#passing = true;
        this.#write(parseSse(event.bytes).map(({ data }) => data));
        return;
      case 'bytes':
        throw new Error(
          'A response over a WebSocket must be a stream, but the channel returned a whole response.',
        );
      case 'usage':
        if (this.#passing) return;
        break;
    }
    this.#write(texts(this.#encoder.stream().event(event)));
  }

  #complete(): void {
    if (this.#over) return;
    this.#finish(this.#passing ? [] : this.#messages(texts(this.#encoder.stream().end())));
  }

  #guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#exchange.noteFailure(toGatewayError(error));
      this.#subscription?.unsubscribe();
      this.fail(error);
    }
  }

  #messages(data: readonly string[]): string[] {
    const { route, lane } = this.#options;
    return data.flatMap((text) => route.write(text, lane) ?? []);
  }

  #write(data: readonly string[]): void {
    if (data.length === 0) return;
    this.#begun = true;
    this.#options.send(this.#messages(data));
  }

  #finish(last: readonly string[], failure?: GatewayError): void {
    this.#over = true;
    this.#options.send(last);
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
    this.release();
    this.#exchange.end();
    this.#options.done(failure);
  }

  /** Reports an error that came after the reply had ended; see `Reply`. */
  #late(error: unknown): void {
    if (!(error instanceof GatewayError)) this.#exchange.reportEndError(error);
  }
}

function texts(frames: readonly WireFrame[]): string[] {
  return frames.map((frame) => ('text' in frame ? frame.text : JSON.stringify(frame.json)));
}
