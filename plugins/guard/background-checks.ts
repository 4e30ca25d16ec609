import { setTimeout as pause } from 'node:timers/promises';
import type { PluginTools } from 'sluice';
import type { RemotelyChecked } from './checks.ts';
import { runCheck, settle } from './remote-run.ts';
import type { Question } from './remote/judge.ts';
import type { Reporter } from './reporter.ts';

/** Maximum number of checks that run beside calls at once, in one process. */
const maxRunning = 64;
/** Milliseconds that a stopping gateway waits for running checks. */
const lastWait = 5_000;

/** Runs checks that only alert. They continue after the end of their call: only their own timeouts end them. */
export class BackgroundChecks {
  readonly #reporter: Reporter;
  readonly #running = new Set<Promise<void>>();

  constructor(reporter: Reporter, { onClose }: Pick<PluginTools, 'onClose'>) {
    this.#reporter = reporter;
    onClose(() => this.#close());
  }

  /** Starts a check and returns at once. A check beyond the limit counts as one that did not respond. */
  start(check: RemotelyChecked, question: Pick<Question, 'side' | 'call' | 'texts'>): void {
    const reporter = this.#reporter;
    if (this.#running.size >= maxRunning) {
      reporter.down(question.call, check, new Error(`More than ${maxRunning} checks run beside calls.`));
      return;
    }
    const run = runCheck(check, { ...question, signal: undefined, outlivesCall: true }, reporter)
      .then((outcome) => settle(outcome, question.side, question.call, reporter))
      .catch(() => {})
      .finally(() => this.#running.delete(run));
    this.#running.add(run);
  }

  async #close(): Promise<void> {
    await Promise.race([Promise.allSettled(this.#running), pause(lastWait, undefined, { ref: false })]);
  }
}
