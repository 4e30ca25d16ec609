/** Reads secrets again while the gateway runs, and has it reload where one has changed. */
import type { Log } from '../../log.ts';
import type { Processes, ProcessesStatus } from '../../state/links/processes.ts';
import type { Upkeep } from '../../state/upkeep.ts';
import type { FailingSecret, Secrets } from './index.ts';

/** Name of the warning in `/readyz` and in the status, and of the question that processes ask each other. */
const what = 'secrets';

/** Most references that a sentence names. */
const mostNamed = 5;

interface FollowerParts {
  readonly secrets: Secrets;
  /** Time between two reads, in milliseconds. */
  readonly refresh: number;
  readonly processes: Processes;
  readonly upkeep: Upkeep;
  readonly log: Log;
  /** Called when values were read that another process may need. */
  readonly onRead?: (() => void) | undefined;
}

/** State of the secrets of one process, which it sends to the others. */
interface SecretsReport {
  readonly pid: number;
  readonly digests: Readonly<Record<string, string>>;
  readonly failing: readonly FailingSecret[];
}

/**
 * Follows the secrets of one process. The first process that serves reads them, so that the manager gets each request once; the other processes take
 * over what it found. A process asks for a reload where its values are not the newest ones.
 */
export class SecretsFollower {
  readonly #parts: FollowerParts;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  readonly #forget: () => void;
  #failing: readonly FailingSecret[];
  #changed: readonly string[] = [];
  /** Failures and changes of the last lines in the log, so that each is logged once. */
  #loggedFailures = '';
  #loggedChanges = '';

  constructor(parts: FollowerParts) {
    this.#parts = parts;
    const { secrets, processes } = parts;
    this.#failing = secrets.standing().failing;
    this.#forget = processes.peers.answer(what, () => ({
      value: {
        pid: process.pid,
        digests: secrets.digests(),
        failing: this.#failing,
      } satisfies SecretsReport,
    }));
    this.#report();
    this.#arm();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#forget();
  }

  /** Starts the timer for the next look. It starts again only after that look, so that two reads of a slow manager never overlap. */
  #arm(): void {
    if (this.#isStopped) return;
    // Gateways that were started together do not ask together.
    const time = this.#parts.refresh * (0.9 + Math.random() / 5);
    this.#timer = setTimeout(() => void this.#look().finally(() => this.#arm()), time).unref();
  }

  async #look(): Promise<void> {
    const { processes, log } = this.#parts;
    try {
      const status = await processes.status();
      // A process that only finishes its calls keeps its values.
      const own = status.workers.find(({ pid }) => pid === process.pid)?.state;
      if (own !== 'serving' && own !== 'spare') return;
      const first = firstOf(status);
      const isFirst = first === process.pid;
      if (isFirst) this.#changed = await this.#refresh();
      else await this.#follow(first);
      this.#report();
      if (!this.#isStopped && this.#changed.length > 0) await this.#reload(status);
    } catch (error) {
      log.error({ error }, 'secrets could not be read again');
    }
  }

  async #refresh(): Promise<readonly string[]> {
    const { secrets, onRead } = this.#parts;
    const changed = await secrets.refresh();
    this.#failing = secrets.standing().failing;
    onRead?.();
    return changed;
  }

  /** Takes over what the first process has found. Where values differ that are in force in both, this process has an old one. */
  async #follow(first: number | undefined): Promise<void> {
    const { secrets, processes } = this.#parts;
    const gathered = await processes.peers.gather(what);
    const reports = gathered?.answers.map(({ value }) => value as SecretsReport);
    const newest = reports?.find(({ pid }) => pid === first);
    if (newest === undefined) return;
    this.#failing = newest.failing;
    const own = secrets.digests();
    this.#changed = Object.keys(own).filter(
      (reference) => newest.digests[reference] !== undefined && newest.digests[reference] !== own[reference],
    );
  }

  async #reload({ reloads }: ProcessesStatus): Promise<void> {
    const { log, processes } = this.#parts;
    const references = this.#changed.slice(0, mostNamed);
    if (!reloads) {
      const state = this.#changed.join('\n');
      if (state !== this.#loggedChanges)
        log.warn({ references }, 'secrets have changed: restart the gateway');
      this.#loggedChanges = state;
      return;
    }
    log.info({ references }, 'secrets have changed: reloading');
    const { ok, problems } = await processes.reload();
    if (!ok)
      log.error(
        { references, problems },
        'changed secrets could not be applied: the previous values stay in force',
      );
  }

  /** Writes the state of the secrets into the status and the log. */
  #report(): void {
    const { secrets, refresh, upkeep, log } = this.#parts;
    const { references } = secrets.standing();
    const failing = this.#failing;
    const sentences = [
      ...failing
        .slice(0, mostNamed)
        .map(
          ({ reference, reason, isInForce }) =>
            `The secret "${reference}" cannot be read: ${reason}. ${isInForce ? 'Its last value stays in force' : 'The run-time entries that refer to it are omitted'}.`,
        ),
      ...(this.#changed.length === 0
        ? []
        : [
            `Changed, but not in force yet: ${this.#changed.slice(0, mostNamed).join(', ')}. Reload or restart the gateway.`,
          ]),
    ];
    const since = Math.min(Date.now(), ...failing.map((one) => one.since));
    upkeep.set({
      what,
      rule: `Secrets by reference are read every ${refresh / 1_000} seconds. If a secret manager fails, the last value stays in force.`,
      rows: references,
      overdueSeconds: Math.round((Date.now() - since) / 1_000),
      ...(sentences.length === 0 ? {} : { warning: sentences.join(' ') }),
    });
    const state = failing.map(({ reference, reason }) => `${reference}: ${reason}`).join('\n');
    if (state === this.#loggedFailures) return;
    this.#loggedFailures = state;
    if (failing.length === 0) log.info({ references }, 'all secrets can be read again');
    else
      log.warn(
        { failing: failing.slice(0, mostNamed).map(({ reference, reason }) => ({ reference, reason })) },
        failing.every(({ isInForce }) => isInForce)
          ? 'secrets cannot be read: their last values stay in force'
          : 'secrets cannot be read: last values stay in force, and run-time entries without one are omitted',
      );
  }
}

/** Returns the process id of the first process that serves. */
function firstOf({ workers }: ProcessesStatus): number | undefined {
  const serving = workers.filter(({ state }) => state === 'serving');
  return serving.toSorted((one, other) => one.worker - other.worker)[0]?.pid;
}
