/** Counts calls and failures by channel and by model within a window, and finds those that fail too often. */
import type { CallOutcome } from 'sluice';
import type { Condition } from './alert.ts';
import type { AlertsOptions } from './options.ts';

type Rule = Exclude<AlertsOptions['errorRate'], false>;

/** Parts of the window that are dropped one by one. */
const parts = 10;

/** The most channels and models that are counted: names of models come from clients. */
const maxNames = 500;

/** Codes of failed attempts that say nothing about the channel. */
const harmless: ReadonlySet<string> = new Set(['hedged', 'client_closed_request']);

/** Number of calls, and of those that failed. */
type Count = [calls: number, failed: number];

/** The counts of this process. */
export class ErrorRates {
  readonly #partMs: number;
  readonly #parts: { readonly at: number; readonly counts: Map<string, Count> }[] = [];

  constructor({ window }: Rule) {
    this.#partMs = window / parts;
  }

  /** Counts a call that has ended. Calls that reached no channel are not counted. */
  count({ attempts, ended, model, status }: CallOutcome, now: number): void {
    if (attempts.length === 0) return;
    const counts = this.#current(now);
    for (const { channel, failure } of attempts)
      if (failure === undefined || !harmless.has(failure))
        add(counts, `channel ${channel}`, failure !== undefined);
    if (ended !== 'left')
      add(counts, `model ${model.slice(0, 200)}`, status >= 500 || ended === 'interrupted');
  }

  /** Returns the counts within the window. */
  read(now: number): Record<string, Count> {
    const sums = new Map<string, Count>();
    for (const { at, counts } of this.#parts)
      if (at > now - parts * this.#partMs)
        for (const [name, [calls, failed]] of counts) {
          const sum = sums.get(name) ?? [0, 0];
          sums.set(name, [sum[0] + calls, sum[1] + failed]);
        }
    return Object.fromEntries(sums);
  }

  #current(now: number): Map<string, Count> {
    const last = this.#parts.at(-1);
    if (last !== undefined && now - last.at < this.#partMs) return last.counts;
    const counts = new Map<string, Count>();
    this.#parts.push({ at: now, counts });
    if (this.#parts.length > parts + 1) this.#parts.shift();
    return counts;
  }
}

function add(counts: Map<string, Count>, name: string, isFailed: boolean): void {
  const count = counts.get(name);
  if (count !== undefined) {
    count[0] += 1;
    if (isFailed) count[1] += 1;
  } else if (counts.size < maxNames) counts.set(name, [1, isFailed ? 1 : 0]);
}

/** Returns the conditions of what fails too often, in the sum of all processes. */
export function failingTooOften(
  reports: readonly Readonly<Record<string, Count>>[],
  { calls: least, share, window }: Rule,
): readonly Condition[] {
  const sums = new Map<string, Count>();
  for (const report of reports)
    for (const [name, [calls, failed]] of Object.entries(report)) {
      const sum = sums.get(name) ?? [0, 0];
      sums.set(name, [sum[0] + calls, sum[1] + failed]);
    }
  return [...sums].flatMap(([name, [calls, failed]]): Condition[] => {
    if (calls < least || failed / calls < share) return [];
    const [what = '', ...rest] = name.split(' ');
    return [
      {
        id: `error-rate ${name}`,
        kind: 'error-rate',
        subject: name,
        severity: failed / calls >= 0.5 ? 'critical' : 'warning',
        text: `${failed} of ${calls} calls of the ${what} "${rest.join(' ')}" failed within ${Math.round(window / 1_000)} seconds.`,
        view: what === 'channel' ? 'channels' : 'usage',
      },
    ];
  });
}
