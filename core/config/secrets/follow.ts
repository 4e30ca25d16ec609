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

/** What one process tells the others. */
interface Told {
  readonly pid: number;
  readonly digests: Readonly<Record<string, string>>;
  readonly failing: readonly FailingSecret[];
  readonly changed: readonly string[];
}

/**
 * The first of the processes that serve reads for all of them, so that the manager is asked once; the others tell what it found. It asks for a
 * reload, as does one whose values are not those of the first.
 */
export class SecretsFollower {
  readonly #parts: FollowerParts;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  readonly #forget: () => void;
  #failing: readonly FailingSecret[];
  #changed: readonly string[] = [];
  /** What the log was told last, so that it is not told again at each look. */
  #logged = '';
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
        changed: this.#changed,
      } satisfies Told,
    }));
    this.#tell();
    this.#arm();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    this.#forget();
  }

  /** Looks later. The next time comes when this one is over, so that a slow manager is not asked by several at once. */
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
      // One that finishes its calls keeps its values.
      const own = status.workers.find(({ pid }) => pid === process.pid)?.state;
      if (own !== 'serving' && own !== 'spare') return;
      const first = firstOf(status);
      const isFirst = first === process.pid;
      if (isFirst) this.#changed = await this.#refresh();
      else await this.#follow(first);
      this.#tell();
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
    const told = gathered?.answers.map(({ value }) => value as Told).find(({ pid }) => pid === first);
    if (told === undefined) return;
    this.#failing = told.failing;
    const own = secrets.digests();
    this.#changed = Object.keys(own).filter(
      (reference) => told.digests[reference] !== undefined && told.digests[reference] !== own[reference],
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
      log.error({ references, problems }, 'changed secrets could not be put in force: the old values stay');
  }

  /** Tells the status and the log how secrets stand. */
  #tell(): void {
    const { secrets, refresh, upkeep, log } = this.#parts;
    const { references } = secrets.standing();
    if (references === 0) return;
    const failing = this.#failing;
    const sentences = [
      ...failing
        .slice(0, mostNamed)
        .map(
          ({ reference, reason }) =>
            `The secret "${reference}" cannot be read: ${reason}. Its last value stays in force.`,
        ),
      ...(this.#changed.length === 0
        ? []
        : [
            `Changed and not in force yet: ${this.#changed.slice(0, mostNamed).join(', ')}. They are in force after a reload or a restart.`,
          ]),
    ];
    const since = Math.min(Date.now(), ...failing.map((one) => one.since));
    upkeep.set({
      what,
      rule: `Secrets by reference are read every ${refresh / 1_000} seconds. Where a manager fails, the last value stays in force.`,
      rows: references,
      overdueSeconds: Math.round((Date.now() - since) / 1_000),
      ...(sentences.length === 0 ? {} : { warning: sentences.join(' ') }),
    });
    const state = failing.map(({ reference, reason }) => `${reference}: ${reason}`).join('\n');
    if (state === this.#logged) return;
    this.#logged = state;
    if (failing.length === 0) log.info({ references }, 'all secrets can be read again');
    else
      log.warn(
        { failing: failing.slice(0, mostNamed).map(({ reference, reason }) => ({ reference, reason })) },
        'secrets cannot be read: their last values stay in force',
      );
  }
}

/** Returns the process id of the first process that serves. */
function firstOf({ workers }: ProcessesStatus): number | undefined {
  const serving = workers.filter(({ state }) => state === 'serving');
  return serving.toSorted((one, other) => one.worker - other.worker)[0]?.pid;
}
