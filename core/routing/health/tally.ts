/** Counts recent attempts and their failures. */
const slices = 10;

/** Numbers of attempts and of failures within a window, in ten slices. The oldest slice is dropped as time passes. */
export class Tally {
  readonly #slice: number;
  readonly #calls = new Uint32Array(slices);
  readonly #failures = new Uint32Array(slices);
  #current = 0;
  #allVisits = 0;
  #allFailures = 0;

  /** The window in milliseconds. */
  constructor(window: number) {
    this.#slice = window / slices;
  }

  add(now: number, failed: boolean): void {
    const place = this.#turn(now) % slices;
    this.#calls[place] = (this.#calls[place] ?? 0) + 1;
    this.#allVisits += 1;
    if (!failed) return;
    this.#failures[place] = (this.#failures[place] ?? 0) + 1;
    this.#allFailures += 1;
  }

  callsSince(now: number): number {
    this.#turn(now);
    return this.#allVisits;
  }

  failures(now: number): number {
    this.#turn(now);
    return this.#allFailures;
  }

  clear(): void {
    this.#calls.fill(0);
    this.#failures.fill(0);
    this.#allVisits = 0;
    this.#allFailures = 0;
  }

  /** Drops what is too old. Gives the slice of now. */
  #turn(now: number): number {
    const slice = Math.floor(now / this.#slice);
    const passed = Math.min(slice - this.#current, slices);
    for (let step = 1; step <= passed; step += 1) {
      const place = (this.#current + step) % slices;
      this.#allVisits -= this.#calls[place] ?? 0;
      this.#allFailures -= this.#failures[place] ?? 0;
      this.#calls[place] = 0;
      this.#failures[place] = 0;
    }
    this.#current = slice;
    return slice;
  }
}
