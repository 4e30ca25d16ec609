import type { Clock } from './clock.ts';

/** Time in ms in which a key must have made another reservation in the database before something is reserved ahead for it. */
const often = 1_000;

/** Time in ms for which nothing is reserved ahead for a key after another process has recalled what was. */
const restAfterRecall = 2_000;

/** Maximum number of keys that are remembered. */
const maxKeys = 10_000;

interface Known {
  at: number;
  /** A reservation that reserves ahead is under way. */
  isAsking: boolean;
  restUntil: number;
}

/** Decides for which keys it pays to reserve ahead: those that have just made another reservation. */
export class FrequentKeys {
  readonly #clock: Clock;
  readonly #keys = new Map<string, Known>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Notes a reservation in the database. `isBusy`: calls of the key were served from memory just now. True when the reservation should
   * reserve ahead; then {@link end} must be called when it was made or refused.
   */
  begin(keyId: string, isBusy = false): boolean {
    const now = this.#clock.now();
    const known = this.#keys.get(keyId);
    if (known === undefined) {
      this.#add(keyId, { at: now, isAsking: false, restUntil: 0 });
      return false;
    }
    // The key that has called last stands last.
    this.#keys.delete(keyId);
    this.#keys.set(keyId, known);
    const isOften = isBusy || now - known.at < often;
    known.at = now;
    if (!isOften || known.isAsking || now < known.restUntil) return false;
    known.isAsking = true;
    return true;
  }

  /** A reservation that reserves ahead was made or refused. */
  end(keyId: string): void {
    const known = this.#keys.get(keyId);
    if (known !== undefined) known.isAsking = false;
  }

  /** Reserves nothing ahead for this key for a while. */
  rest(keyId: string): void {
    const restUntil = this.#clock.now() + restAfterRecall;
    const known = this.#keys.get(keyId);
    if (known !== undefined) known.restUntil = restUntil;
    else this.#add(keyId, { at: Number.NEGATIVE_INFINITY, isAsking: false, restUntil });
  }

  /** Adds a key. Where there are too many, the one that has not called for the longest time is forgotten. */
  #add(keyId: string, known: Known): void {
    const [oldest] = this.#keys.keys();
    if (this.#keys.size >= maxKeys && oldest !== undefined) this.#keys.delete(oldest);
    this.#keys.set(keyId, known);
  }
}
