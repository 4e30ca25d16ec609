/** Has a process follow the run-time configuration that any gateway on the database has changed. */
import type { Log } from '../../log.ts';
import type { Processes, ReloadOutcome } from '../../state/links/processes.ts';
import type { RuntimeConfigStore } from '../../state/runtime-config/index.ts';
import type { Upkeep } from '../../state/upkeep.ts';
import type { RunningRuntime } from './contract.ts';

/** Interval for reading the revision, and interval for retrying a failed reload, in milliseconds. */
const followEvery = 1_000;
const retryEvery = 60_000;

/** Name of the warning in `/readyz` and in the status. */
const what = 'run-time-configuration';

interface FollowerParts {
  readonly store: RuntimeConfigStore;
  readonly processes: Processes;
  readonly upkeep: Upkeep;
  readonly log: Log;
}

/** Asks for a reload whenever the revision in the database is not the one that this process runs. */
export class Follower {
  readonly #parts: FollowerParts;
  readonly #running: () => RunningRuntime;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  #isFailing = false;
  /** The latest revision for which a reload was requested, and the time of the request. */
  #requested: { readonly revision: number; readonly at: number } | undefined;

  constructor(parts: FollowerParts, running: () => RunningRuntime) {
    this.#parts = parts;
    this.#running = running;
  }

  start(): void {
    const { problems } = this.#running();
    this.#report(problems.length === 0 ? undefined : `Omitted at the start: ${problems.join(' ')}`);
    this.#arm();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Has this gateway run a revision, or a later one of the same history. Resolves to what came of it. */
  async apply(revision: number): Promise<ReloadOutcome> {
    this.#requested = { revision, at: Date.now() };
    const running = this.#running().revision;
    // Revisions only rise: one below the running one is that of a database that was restored.
    const request = {
      runtimeRevision: revision,
      ...(running > revision ? { restoredFrom: running } : {}),
    };
    const outcome = await this.#parts.processes.reload(request);
    if (!outcome.ok) {
      this.#report(
        `Revision ${revision} could not be applied, and the previous one stays in force: ${outcome.problems.join(' ')}`,
      );
      this.#parts.log.error(
        { revision, running: this.#running().revision, problems: outcome.problems },
        'the run-time configuration could not be applied: the previous one stays in force',
      );
    }
    return outcome;
  }

  /** Schedules the next read after this one has ended, so that reads of a slow database do not overlap. */
  #arm(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.#look().finally(() => this.#arm()), followEvery).unref();
  }

  async #look(): Promise<void> {
    try {
      const revision = await this.#parts.store.revision();
      this.#isFailing = false;
      if (revision === this.#running().revision) return;
      const isRequested = this.#requested !== undefined && this.#requested.revision === revision;
      if (isRequested && Date.now() - (this.#requested?.at ?? 0) < retryEvery) return;
      // Not awaited, because a later revision may arrive meanwhile.
      void this.apply(revision).catch((error: unknown) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Logs once per failure of the database. What was known stays in force. */
  #failed(error: unknown): void {
    if (!this.#isFailing) this.#parts.log.error({ error }, 'the run-time configuration could not be read');
    this.#isFailing = true;
  }

  #report(warning: string | undefined): void {
    this.#parts.upkeep.set({
      what,
      rule: 'Run-time entries are stored until an administrator deletes them. The history has the last 500 changes.',
      overdueSeconds: 0,
      ...(warning === undefined ? {} : { warning: warning.slice(0, 2_000) }),
    });
  }
}
