import { createHash } from 'node:crypto';

/** Digest of the data in one direction of a session. */
export interface Traced {
  readonly frames: number;
  readonly bytes: number;
  /** Of all frames in their order, with their lengths and kinds. */
  readonly hash: string;
}

/** Follows one direction of a session, so that both ends can be compared. */
export class Trace {
  readonly #hash = createHash('sha256');
  #frames = 0;
  #bytes = 0;

  add(data: Buffer, binary: boolean): void {
    this.#hash.update(`${data.length}${binary ? 'b' : 't'}`).update(data);
    this.#frames += 1;
    this.#bytes += data.length;
  }

  get frames(): number {
    return this.#frames;
  }

  /** All so far. */
  summary(): Traced {
    return { frames: this.#frames, bytes: this.#bytes, hash: this.#hash.copy().digest('hex') };
  }
}
