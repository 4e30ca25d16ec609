/** Runs callbacks and aborts a signal when a call or one of its attempts ends. */
import { warnOfEndError } from './end-errors.ts';

/** One reason for every abort: an Error per ended call would cost more than the call. */
const ended = new DOMException('The call has ended.', 'AbortError');

/** Lifetime of a call. */
export class Lifetime {
  #controller: AbortController | undefined;
  #ended = false;
  /** Made on first use, as most of what a call may need. */
  #jobs: (() => void)[] | undefined;

  /** Aborts when the lifetime ends. Created on first use, because most calls need none. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#ended) this.#controller.abort(ended);
    }
    return this.#controller.signal;
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  /** Reports what a callback has thrown. */
  reportEndError(error: unknown): void {
    warnOfEndError(error);
  }

  /** Ends the lifetime: runs all callbacks, then aborts `signal`. Never throws: each callback's error is reported. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const jobs = this.#jobs;
    this.#jobs = undefined;
    if (jobs !== undefined) {
      for (const job of jobs) {
        try {
          job();
        } catch (error) {
          this.reportEndError(error);
        }
      }
    }
    this.#controller?.abort(ended);
  }

  /**
   * Runs the callback once when the lifetime ends; the returned function takes it back. When the lifetime has ended already, the callback
   * runs before this method returns: it must not use what this method gives.
   */
  onEnd(job: () => void): () => void {
    if (this.#ended) {
      job();
      return () => {};
    }
    const jobs = (this.#jobs ??= []);
    jobs.push(job);
    return () => {
      // While they are being run the list is not touched: the next one would be skipped.
      if (this.#jobs !== jobs) return;
      const index = jobs.lastIndexOf(job);
      if (index === jobs.length - 1) jobs.pop();
      else if (index >= 0) jobs.splice(index, 1);
    };
  }
}

/** Lifetime of one attempt. It ends when the attempt is given up, or with the call. */
export class AttemptLifetime extends Lifetime {
  readonly #whole: Lifetime;
  readonly #forget: (() => void) | undefined;

  constructor(whole: Lifetime) {
    super();
    this.#whole = whole;
    this.#forget = whole.onEnd(() => this.end());
  }

  override reportEndError(error: unknown): void {
    this.#whole.reportEndError(error);
  }

  override end(): void {
    this.#forget?.();
    super.end();
  }
}
