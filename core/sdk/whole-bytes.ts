/** Collects a provider's whole response into one buffer, within a limit. */
import { defer, map, reduce, type OperatorFunction } from 'rxjs';
import { HeldBytes } from '../model/held-bytes.ts';
import { GatewayError } from './errors.ts';

/** Default limit in bytes: 32 MiB. */
export const wholeLimit = 32 * 1024 * 1024;

/**
 * Collects a provider's response up to a limit, in time proportional to its length. Short pieces are copied together because each would
 * take a hundred times its length in memory.
 *
 * @example
 * const whole = new WholeBytes(1024 * 1024);
 * bytes.subscribe({ next: (piece) => whole.push(piece), complete: () => read(whole.take()) });
 */
export class WholeBytes {
  readonly #held = new HeldBytes();
  readonly #limit: number;

  constructor(limit = wholeLimit) {
    this.#limit = limit;
  }

  /** Adds a piece. Throws GatewayError (origin upstream) beyond the limit. */
  push(piece: Buffer): void {
    if (this.#held.length + piece.length > this.#limit)
      throw new GatewayError(
        'upstream_error',
        `The upstream sent more than ${this.#limit} bytes, the limit for this response.`,
        { origin: 'upstream' },
      );
    this.#held.push(piece);
  }

  /** Returns all bytes as one buffer, and keeps none. */
  take(): Buffer {
    return this.#held.take();
  }
}

/**
 * Joins the pieces of a provider's response, which may be cut anywhere, into one buffer. Errors with GatewayError (origin upstream) beyond
 * `limit` bytes. Default 32 MiB.
 *
 * @example
 * return { ...answer, bytes: answer.bytes.pipe(wholeBytes(), map(unwrap)) };
 */
export function wholeBytes(limit = wholeLimit): OperatorFunction<Buffer, Buffer> {
  return (source) =>
    defer(() =>
      source.pipe(
        reduce((whole, piece) => {
          whole.push(piece);
          return whole;
        }, new WholeBytes(limit)),
        map((whole) => whole.take()),
      ),
    );
}
