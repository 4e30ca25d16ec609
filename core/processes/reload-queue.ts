import type { ReloadOutcome } from '../state/links/processes.ts';

/** Runs one reload at a time. Requests during a reload share one more, because they may be about later changes. */
export class ReloadQueue {
  readonly #reload: (reason: string) => Promise<ReloadOutcome>;
  #running: Promise<ReloadOutcome> | undefined;
  #queued: Promise<ReloadOutcome> | undefined;

  constructor(reload: (reason: string) => Promise<ReloadOutcome>) {
    this.#reload = reload;
  }

  run(reason: string): Promise<ReloadOutcome> {
    if (this.#running !== undefined) {
      this.#queued ??= this.#running.then(() => {
        this.#queued = undefined;
        return this.run(reason);
      });
      return this.#queued;
    }
    this.#running = this.#reload(reason).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }
}
