/** One reason for every abort: an Error per ended call would cost more than the call. */
const ended = new DOMException('The call has ended.', 'AbortError');

/** How long something lasts, and what is to be done when it is over. */
export class Lifetime {
  #controller: AbortController | undefined;
  #ended = false;
  /** Made on first use, as most of what a call may need. */
  #jobs: (() => void)[] | undefined;

  /** Made on first use: most calls never wait for anything that must be told. */
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

  /** It is over: whatever still waits for it stops. Every job runs; what the first that failed threw is thrown when all have run. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    const jobs = this.#jobs;
    this.#jobs = undefined;
    let failure: { readonly error: unknown } | undefined;
    if (jobs !== undefined) {
      for (const job of jobs) {
        try {
          job();
        } catch (error) {
          failure ??= { error };
        }
      }
    }
    this.#controller?.abort(ended);
    if (failure !== undefined) throw failure.error;
  }

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

/** One try of a call: over when it is given up, or with the call. */
export class AttemptLifetime extends Lifetime {
  readonly #forget: (() => void) | undefined;

  constructor(whole: Lifetime) {
    super();
    this.#forget = whole.onEnd(() => this.end());
  }

  override end(): void {
    this.#forget?.();
    super.end();
  }
}
