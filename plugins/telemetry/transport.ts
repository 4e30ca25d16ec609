/** Sends OTLP exports over HTTP, with retries, backoff and `retry-after`. */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Services } from 'sluice';

/** Statuses after which the same request may be sent again, by the specification of OTLP/HTTP. */
const retryable: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Milliseconds until the first retry; each further one waits twice as long, up to `maxBackoff`. */
const firstBackoff = 500;
const maxBackoff = 5_000;

/** Maximum of milliseconds between two tries once the gateway closes. */
const closingBackoff = 250;

/** Maximum of milliseconds for which a receiver can have one export held back with `retry-after`, all its responses together. */
const maxPause = 300_000;

/** Maximum number of bytes of a response. */
const maxResponse = 64 * 1024;

/** Destination and encoding of one signal. */
export interface TransportOptions {
  readonly http: Services;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly compression: 'none' | 'gzip';
  /** Milliseconds that an export may take, with all its retries. */
  readonly timeout: number;
}

/**
 * Returns the maximum number of milliseconds that {@link Transport.send} takes: it may wait for a pause that another export was asked for, and
 * then for its own.
 */
export function longestSend(timeout: number): number {
  return 2 * (timeout + maxPause);
}

/**
 * Sends the exports of one signal, with retries. A receiver that asks for a pause is not sent anything until that has passed; meanwhile the
 * queue fills.
 */
export class Transport {
  readonly #options: TransportOptions;
  #pausedUntil = 0;
  #closesAt = Number.POSITIVE_INFINITY;
  readonly #waiting = new Set<() => void>();

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /** Sends one export. Resolves with the body of the response; rejects when the receiver has not taken it in time, or refuses it. */
  async send(data: Uint8Array): Promise<Uint8Array> {
    const { compression, timeout } = this.#options;
    const body = compression === 'gzip' ? await promisify(gzip)(data) : Buffer.from(data);
    await this.#wait(this.#pausedUntil - performance.now());
    let deadline = performance.now() + timeout;
    let patience = maxPause;
    for (let backoff = firstBackoff; ; backoff = Math.min(backoff * 2, maxBackoff)) {
      // oxlint-disable-next-line no-await-in-loop -- a retry follows a failure
      const { response, error, pause } = await this.#try(body, deadline);
      if (response !== undefined) return response;
      if (error.isFinal || this.#left(deadline) <= 0) throw error;
      // A `retry-after` shorter than the backoff is ignored, because a receiver could have the same export sent again and again by it.
      if (pause === undefined || pause <= backoff || patience <= 0) {
        // oxlint-disable-next-line no-await-in-loop -- see above
        await this.#wait(Math.min(backoff * (0.8 + Math.random() * 0.4), this.#left(deadline)));
      } else {
        const granted = Math.min(pause, patience);
        patience -= granted;
        this.#pausedUntil = performance.now() + granted;
        deadline = this.#pausedUntil + timeout;
        // oxlint-disable-next-line no-await-in-loop -- see above
        await this.#wait(granted);
      }
      if (this.#left(deadline) <= 0) throw error;
    }
  }

  /** Ends every export within so many milliseconds, and tries those at once that wait for a retry. */
  close(milliseconds: number): void {
    this.#closesAt = performance.now() + milliseconds;
    this.#pausedUntil = 0;
    for (const wake of this.#waiting) wake();
  }

  #left(deadline: number): number {
    return Math.min(deadline, this.#closesAt) - performance.now();
  }

  async #try(body: Buffer, deadline: number): Promise<Attempted> {
    const { http, url, headers, contentType, compression } = this.#options;
    const left = this.#left(deadline);
    if (left <= 0) return { error: new ExportError('there was no time left', true) };
    try {
      const {
        status,
        headers: received,
        bytes,
      } = await http.ask({
        url,
        method: 'POST',
        headers: {
          ...headers,
          'content-type': contentType,
          ...(compression === 'gzip' ? { 'content-encoding': 'gzip' } : {}),
        },
        body,
        timeout: Math.ceil(left),
        limit: maxResponse,
      });
      if (status >= 200 && status < 300) return { response: bytes };
      const error = new ExportError(`the receiver returned status ${status}`, !retryable.has(status));
      const pause = error.isFinal ? undefined : pauseOf(received['retry-after']);
      return { error, ...(pause === undefined ? {} : { pause }) };
    } catch (thrown) {
      return { error: new ExportError(thrown instanceof Error ? thrown.message : String(thrown), false) };
    }
  }

  /** Resolves after so many milliseconds, or when the transport closes. */
  #wait(milliseconds: number): Promise<void> {
    if (milliseconds <= 0) return Promise.resolve();
    const isClosing = this.#closesAt !== Number.POSITIVE_INFINITY;
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, isClosing ? Math.min(milliseconds, closingBackoff) : milliseconds);
      this.#waiting.add(wake);
    });
  }
}

/** Result of one try: a response, or an error with the milliseconds for which the receiver wants nothing sent. */
type Attempted =
  | { readonly response: Uint8Array; readonly error?: never; readonly pause?: never }
  | { readonly response?: never; readonly error: ExportError; readonly pause?: number };

/** Failure of an export. `isFinal`: it would fail again. */
class ExportError extends Error {
  readonly isFinal: boolean;

  constructor(message: string, isFinal: boolean) {
    super(message);
    this.isFinal = isFinal;
  }
}

/** Returns the milliseconds of a `retry-after`, which is a number of seconds or a date. */
function pauseOf(header: string | string[] | undefined): number | undefined {
  if (typeof header !== 'string') return undefined;
  const seconds = Number(header);
  const milliseconds = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1000;
  return Number.isNaN(milliseconds) ? undefined : Math.min(Math.max(milliseconds, 0), maxPause);
}
