/** Writes the HTTP response of one call from its events: head, encoding, keep-alives, backpressure, errors and end. */
import type { ServerResponse } from 'node:http';
import type { Duplex, Writable } from 'node:stream';
import type { Observable, Subscription } from 'rxjs';
import type { EndErrorReporter } from '../call/end-errors.ts';
import { type Exchange } from '../call/exchange.ts';
import { GatewayError, toGatewayError } from '../sdk/errors.ts';
import type { Framing, WireFrame } from '../sdk/format.ts';
import type { Log } from '../log.ts';
import type { GatewayEvent } from '../model/event.ts';
import { addedHeaders, writeHead } from './head.ts';
import { BodyWriter } from './body-writer.ts';
import { framerOf, joined, type Framed, type Framer } from './framing.ts';
import { ReplyEncoder } from './reply-encoder.ts';
import { bytesHead, headersOf, type Answered } from './reply-head.ts';
import { trailersOf, type Trailers } from './trailers.ts';

/** Options that all responses of a gateway share. */
export interface ReplyOptions {
  readonly log: Log;
  /** Reports errors of work at the end of calls. */
  readonly endErrors: EndErrorReporter;
  /** Silence after which a keep-alive is sent, in milliseconds. */
  readonly keepAlive: number;
  /** Longest time the client may leave its buffer full, in milliseconds. */
  readonly stalled: number;
}

/** Maximum length of a response that is sent in one write with its head, in bytes. */
const heldLength = 16 * 1024;

/**
 * Writes one reply: the only subscriber of a call's events. Status and headers go out with the first event, or with a keep-alive that
 * falls due earlier. When the client's buffer is full the call's gate is shut; when the client leaves, the subscription ends and with it
 * everything up to the provider's socket.
 */
export class Reply {
  readonly #exchange: Exchange;
  readonly #response: ServerResponse;
  readonly #body: BodyWriter;
  /** Made with the head, where a plugin has added any. */
  #trailers: Trailers | undefined;
  readonly #options: ReplyOptions;
  #subscription: Subscription | undefined;
  readonly #encoder: ReplyEncoder;
  #passing = false;
  /** Last numbered frames of the stream. Read only when the stream breaks. */
  #lastFrames: Buffer | undefined;
  readonly #numberMark: string | undefined;
  #committed = false;
  #over = false;
  #framer: Framer | undefined;
  #answer: Answered | undefined;
  /** All bytes of a short response, which are written together with its end. */
  #held: Buffer | undefined;
  #lastWrite = performance.now();
  #fullSince = 0;
  /** Stream whose `drain` event is awaited while the client's buffer is full. */
  #full: Writable | undefined;
  /** Set by each write and taken back by each tick: asking the clock once a chunk would cost more. */
  #wrote = false;
  readonly #done: () => void;

  /** `done` runs once, when nothing more will be written. */
  constructor(exchange: Exchange, response: ServerResponse, options: ReplyOptions, done: () => void) {
    this.#exchange = exchange;
    this.#encoder = new ReplyEncoder(exchange);
    this.#response = response;
    this.#body = new BodyWriter(response);
    this.#options = options;
    this.#done = done;
    this.#numberMark = exchange.codec.marks.number;
    exchange.writer = this;
    exchange.endErrors = options.endErrors;
    response.on('close', this.#onClose);
  }

  /** Subscribes. Called once, when the request phase is over. */
  send(events: Observable<GatewayEvent>): void {
    if (this.#over) {
      events.subscribe({ error: (error) => this.#late(error) }).unsubscribe();
      return;
    }
    this.#subscription = events.subscribe({
      next: (event) => this.take(event),
      error: (error) => this.fail(error),
      complete: () => this.complete(),
    });
    if (this.#over) this.#subscription.unsubscribe();
  }

  /** Encodes and writes an event. */
  take(event: GatewayEvent): void {
    try {
      this.#next(event);
    } catch (error) {
      this.#broken(error);
    }
  }

  /** Handles the end of the events. */
  complete(): void {
    this.#guard(() => this.#complete());
  }

  /** Ends the reply with an error: a status in the client's envelope, or the format's error event when the reply has begun. */
  fail(cause: unknown): void {
    if (this.#over) {
      this.#late(cause);
      return;
    }
    const error = toGatewayError(cause);
    this.#exchange.noteFailure(error);
    if (!(cause instanceof GatewayError))
      this.#options.log.error({ id: this.#exchange.id, error: cause }, 'a call failed inside the gateway');
    if (!this.#committed) {
      this.#refuse(error);
      return;
    }
    if (!this.#exchange.stream) {
      // A part of a JSON document has been sent. Closing the connection is the only way to show the client that the rest is missing.
      this.#over = true;
      this.#release();
      this.#response.destroy();
      return;
    }
    try {
      const encoder = this.#encoder.stream();
      if (this.#lastFrames !== undefined) encoder.passed?.(this.#lastFrames);
      this.#finish(joined(this.#frames(encoder.error(error)), this.#framing.end()));
    } catch {
      this.#finish('');
    }
  }

  /** Returns true when this reply goes over the socket. */
  writesTo(socket: Duplex): boolean {
    return this.#response.socket === socket;
  }

  /** Closes the connection after this reply, if its head has not been sent yet. */
  closeAfterwards(): void {
    if (!this.#response.headersSent) this.#response.setHeader('connection', 'close');
  }

  /** Ends the response because the client's bytes are not valid HTTP: with the error where nothing was sent yet, else by closing the connection. */
  breakOff(error: GatewayError): void {
    if (this.#committed) {
      this.#response.destroy();
      return;
    }
    this.#response.setHeader('connection', 'close');
    this.fail(error);
  }

  /** Called about once a second: sends a keep-alive when one is due, and gives up on a client that reads nothing. */
  tick(now: number): void {
    if (this.#over) return;
    if (this.#fullSince > 0) {
      if (now - this.#fullSince > this.#options.stalled) this.#response.destroy();
      return;
    }
    if (this.#wrote) {
      this.#wrote = false;
      this.#lastWrite = now;
    }
    if (!this.#exchange.stream || now - this.#lastWrite < this.#options.keepAlive) return;
    this.#lastWrite = now;
    this.#guard(() => {
      const frames = this.#encoder.stream().keepAlive();
      const text =
        frames.length > 0
          ? this.#frames(frames)
          : this.#framing.silence(this.#exchange.codec.toleratesComments);
      if (text.length === 0) return;
      this.#commitStream();
      this.#write(text);
    });
  }

  readonly #onClose = (): void => {
    if (this.#over) return;
    this.#over = true;
    this.#release();
  };

  readonly #onDrain = (): void => {
    this.#full = undefined;
    this.#fullSince = 0;
    this.#exchange.gate.open();
  };

  #next(event: GatewayEvent): void {
    if (this.#over) return;
    switch (event.type) {
      case 'request':
      case 'attempt':
        return;
      case 'loss':
        this.#encoder.losses.push(event.loss);
        return;
      case 'answer':
        this.#answer = event;
        // An endpoint that passes a provider's bytes through, even when there are none.
        if (this.#exchange.operation === 'state') this.#passing = true;
        return;
      case 'frames':
        this.#passing = true;
        if (this.#numberMark !== undefined && event.bytes.includes(this.#numberMark))
          this.#lastFrames = event.bytes;
        this.#commitStream();
        this.#write(this.#framing.passed(event.bytes));
        return;
      case 'bytes':
        this.#passing = true;
        if (this.#held === undefined && this.#isAll(event.bytes)) {
          this.#held = event.bytes;
          return;
        }
        this.#commitBytes();
        if (this.#held !== undefined) {
          // The decompressed bytes can have the length that the head gives for the compressed ones.
          this.#write(this.#held);
          this.#held = undefined;
        }
        this.#write(event.bytes);
        return;
      case 'usage':
        if (this.#passing) return;
        break;
    }
    if (this.#exchange.stream) {
      const text = this.#frames(this.#encoder.stream().event(event));
      if (text.length === 0) return;
      this.#commitStream();
      this.#write(text);
    } else this.#encoder.whole().event(event);
  }

  #complete(): void {
    if (this.#over) return;
    if (this.#passing) {
      if (this.#exchange.stream) this.#finish(joined(this.#framing.end(), this.#comments()));
      else {
        this.#commitBytes();
        this.#finish(this.#held ?? '');
      }
    } else if (this.#exchange.stream) {
      const rest = this.#frames(this.#encoder.stream().end());
      this.#commitStream();
      this.#finish(joined(joined(rest, this.#framing.end()), this.#comments()));
    } else {
      const encoder = this.#encoder.whole();
      const plain = encoder.plain?.();
      const reply = plain?.bytes ?? JSON.stringify(encoder.end());
      this.#writeHead(200, {
        ...this.#headers('none'),
        ...(plain === undefined ? {} : { 'content-type': plain.contentType }),
        'content-length': String(Buffer.byteLength(reply)),
      });
      this.#committed = true;
      this.#finish(reply);
    }
  }

  #guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#broken(error);
    }
  }

  /** Reports an error that came after the reply had ended, unless it is a refusal. It is a defect that nothing else reports. */
  #late(error: unknown): void {
    if (!(error instanceof GatewayError)) this.#options.endErrors(error, this.#exchange.id);
  }

  #broken(error: unknown): void {
    this.#exchange.noteFailure(toGatewayError(error));
    this.#subscription?.unsubscribe();
    this.fail(error);
  }

  #headers(framing: Framing): Record<string, string> {
    return headersOf(this.#exchange, framing, this.#encoder.losses, this.#added());
  }

  #added(): Readonly<Record<string, string>> | undefined {
    return addedHeaders(this.#exchange, this.#options.log);
  }

  #writeHead(status: number, headers: Readonly<Record<string, string>>): void {
    // Makes Node throw if the length of the body differs from the content-length header.
    this.#response.strictContentLength = true;
    writeHead(this.#response, status, headers, this.#exchange.id, this.#options.log);
  }

  /** Sends the error as the whole response. Closes the connection where that fails, because no caller would catch the failure. */
  #refuse(error: GatewayError): void {
    try {
      const { status, headers, body } = this.#exchange.format.errorReply(error, this.#exchange.id);
      const text = JSON.stringify(body);
      this.#writeHead(status, {
        'content-type': 'application/json',
        ...this.#added(),
        ...headers,
        'content-length': String(Buffer.byteLength(text)),
      });
      this.#finish(text);
    } catch (thrown) {
      this.#options.log.error({ id: this.#exchange.id, error: thrown }, 'failed to send an error response');
      this.#over = true;
      this.#release();
      this.#response.destroy();
    }
  }

  #commitStream(): void {
    if (this.#committed) return;
    this.#committed = true;
    this.#writeHead(200, this.#announced(this.#headers(this.#exchange.framing)));
  }

  #commitBytes(): void {
    if (this.#committed) return;
    this.#committed = true;
    const { status, headers } = bytesHead(this.#exchange, this.#headers('none'), this.#answer);
    this.#writeHead(status, this.#announced(headers));
  }

  #announced(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    this.#trailers = trailersOf(this.#exchange, this.#response, this.#options.log);
    return this.#trailers?.announced(headers) ?? headers;
  }

  #comments(): string {
    return this.#trailers?.comments() ?? '';
  }

  /** Returns true for the first and last bytes of a reply that is short enough to go out in one piece with its head. */
  #isAll({ length }: Buffer): boolean {
    return (
      !this.#committed &&
      length <= heldLength &&
      !this.#exchange.stream &&
      this.#answer?.headers['content-length'] === String(length)
    );
  }

  #write(data: string | Buffer): void {
    this.#wrote = true;
    const full = this.#body.write(data);
    if (full === undefined || this.#full !== undefined) return;
    this.#full = full;
    this.#fullSince = performance.now();
    full.once('drain', this.#onDrain);
    this.#exchange.gate.close();
  }

  #finish(last: string | Buffer): void {
    this.#over = true;
    try {
      this.#end(last);
    } catch (error) {
      // A plugin has changed bytes whose length was sent: the client would read the next response from the wrong byte.
      this.#options.log.error(
        { id: this.#exchange.id, error },
        'a response does not have the length of its content-length header',
      );
      this.#response.destroy();
    }
    // A socket timeout, because `tick` is not called for an ended response and its client may not read the rest.
    if (this.#response.writableLength > 0) this.#response.socket?.setTimeout(this.#options.stalled);
    this.#release();
  }

  #end(last: string | Buffer): void {
    this.#trailers?.add();
    if (last.length === 0) this.#response.end();
    // As a string, which Node sends in one write with the head; two writes would cost more.
    else if (last === this.#held) this.#response.end(last.toString('latin1'), 'latin1');
    else this.#response.end(last);
  }

  /** Releases all references, because whatever stays attached to a kept-alive socket outlives the call. */
  #release(): void {
    this.#response.off('close', this.#onClose);
    this.#full?.off('drain', this.#onDrain);
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
    this.#exchange.end();
    this.#done();
  }

  get #framing(): Framer {
    return (this.#framer ??= framerOf(this.#exchange.framing));
  }

  #frames(frames: readonly WireFrame[]): Framed {
    return frames.length === 0 ? '' : this.#framing.frames(frames);
  }
}
