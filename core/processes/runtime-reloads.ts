/** Reloads for changes of the run-time configuration: few of them, and none that breaks a stream. */
import type { ReloadOutcome, ReloadRequest } from '../state/links/processes.ts';
import type { WorkerProcess } from './worker-process.ts';

/** Time for which a revision that was refused is not tried again, in milliseconds. */
const refusedFor = 30_000;

/** Time for which a reload that is not about the run-time configuration waits for workers to retire, in milliseconds. */
const longestRetirement = 10_000;

/** A replaced worker, as far as these reloads need it. */
export type LeavingWorker = Pick<WorkerProcess, 'generation' | 'letGo' | 'retired' | 'ended'>;

/** Functions of the primary process that these reloads need. */
export interface RuntimeReloadOptions {
  /** Returns the revision that the workers run. */
  revision(): number;
  reload(): Promise<ReloadOutcome>;
  /** Returns the workers that finish their calls; none when the gateway stops. */
  leaving(): readonly LeavingWorker[];
  /** Number of generations that may be leaving: beyond it the oldest end early. */
  readonly maxLeaving: number;
  readonly stopped: Promise<void>;
}

/** Runs one reload after the other. Workers that follow one change, and changes that come during a reload, share a reload. */
export class RuntimeReloads {
  readonly #options: RuntimeReloadOptions;
  #last: Promise<unknown> = Promise.resolve();
  #refused: { readonly revision: number; readonly at: number; readonly outcome: ReloadOutcome } | undefined;

  constructor(options: RuntimeReloadOptions) {
    this.#options = options;
  }

  /**
   * Reloads for a worker: `other` where it is not about the run-time configuration. Resolves when replaced workers take no more connections,
   * because until then the primary process may hand a new connection to one of them. A reload that is not about the run-time configuration
   * waits a limited time for that, because it is also asked for when a worker is stuck.
   */
  async reload(
    { runtimeRevision, restoredFrom }: ReloadRequest,
    other: () => Promise<ReloadOutcome>,
  ): Promise<ReloadOutcome> {
    if (runtimeRevision !== undefined) {
      const outcome = await this.#run(runtimeRevision, restoredFrom);
      await this.#retired();
      return outcome;
    }
    const outcome = await other();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, longestRetirement);
    await Promise.race([this.#retired(), promise]);
    clearTimeout(timer);
    return outcome;
  }

  /** Waits until no worker that is leaving takes connections, or the gateway stops. */
  async #retired(): Promise<void> {
    const { leaving, stopped } = this.#options;
    await Promise.race([Promise.all(leaving().map(({ retired }) => retired)), stopped]);
  }

  /** Has the workers run a revision, or a later one that is not from before a restoration. */
  #run(revision: number, restoredFrom = Infinity): Promise<ReloadOutcome> {
    const result = this.#last.then(async () => {
      const known = this.#known(revision, restoredFrom);
      if (known !== undefined) return known;
      await this.#waitForLeaving();
      const outcome = await this.#options.reload();
      if (!outcome.ok) this.#refused = { revision, at: Date.now(), outcome };
      return outcome;
    });
    this.#last = result.catch(() => {});
    return result;
  }

  /** Returns what is known already of a revision: it runs, or was refused a moment ago. */
  #known(revision: number, restoredFrom: number): ReloadOutcome | undefined {
    const running = this.#options.revision();
    if (running >= revision && running < restoredFrom) return { ok: true, problems: [] };
    const refused = this.#refused;
    const isKnown =
      refused !== undefined &&
      (restoredFrom === Infinity ? refused.revision >= revision : refused.revision === revision) &&
      Date.now() - refused.at < refusedFor;
    return isKnown ? refused.outcome : undefined;
  }

  /** Waits until another generation may leave without one of them having to end early, because its streams would break. */
  async #waitForLeaving(): Promise<void> {
    const { leaving, maxLeaving, stopped } = this.#options;
    for (;;) {
      const workers = leaving();
      if (new Set(workers.map(({ generation }) => generation)).size < maxLeaving) return;
      for (const worker of workers) worker.letGo();
      // oxlint-disable-next-line no-await-in-loop -- one after the other ends
      await Promise.race([...workers.map(({ ended }) => ended), stopped]);
    }
  }
}

/** Ends the workers of the oldest generations early where more than `max` are leaving. */
export function limitLeaving(leaving: readonly WorkerProcess[], max: number): void {
  const generations = [...new Set(leaving.map(({ generation }) => generation))].toSorted((a, b) => b - a);
  const kept = new Set(generations.slice(0, max));
  for (const worker of leaving) if (!kept.has(worker.generation)) worker.stop();
}
