/** Counts recent attempts and their failures. */
const slices = 10;

/** Numbers of attempts and of failures within a window, in ten slices. The oldest slice is dropped as time passes. */
export class OutcomeWindow {
  readonly #slice: number;
  readonly #calls = new Uint32Array(slices);
  readonly #failures = new Uint32Array(slices);
  #current = 0;
  #allAttempts = 0;
  #allFailures = 0;

  /** The window in milliseconds. */
  constructor(window: number) {
    this.#slice = window / slices;
  }

  add(now: number, failed: boolean): void {
    const index = this.#advance(now) % slices;
    this.#calls[index] = (this.#calls[index] ?? 0) + 1;
    this.#allAttempts += 1;
    if (!failed) return;
    this.#failures[index] = (this.#failures[index] ?? 0) + 1;
    this.#allFailures += 1;
  }

  callsSince(now: number): number {
    this.#advance(now);
    return this.#allAttempts;
  }

  failures(now: number): number {
    this.#advance(now);
    return this.#allFailures;
  }

  clear(): void {
    this.#calls.fill(0);
    this.#failures.fill(0);
    this.#allAttempts = 0;
    this.#allFailures = 0;
  }

  /** Drops slices that have left the window. Returns the number of the current slice. */
  #advance(now: number): number {
    const slice = Math.floor(now / this.#slice);
    const passed = Math.min(slice - this.#current, slices);
    for (let step = 1; step <= passed; step += 1) {
      const index = (this.#current + step) % slices;
      this.#allAttempts -= this.#calls[index] ?? 0;
      this.#allFailures -= this.#failures[index] ?? 0;
      this.#calls[index] = 0;
      this.#failures[index] = 0;
    }
    this.#current = slice;
    return slice;
  }
}
