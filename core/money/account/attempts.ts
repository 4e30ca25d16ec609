import type { AttemptEvent } from '../../model/event.ts';
import type { Target } from '../../sdk/call.ts';

/** Attempts of one call, as routing, the innermost step and the reader of sockets report them. */
export class CallAttempts {
  readonly #failed: AttemptEvent[] = [];
  #firstAttemptAt: number | undefined = undefined;
  #target: Target | undefined = undefined;
  #latestAt: number | undefined = undefined;
  #watched: Map<Target, number> | undefined = undefined;
  #reached = 0;

  /** Notes the start of an attempt, before its request is sent. */
  start(target: Target): void {
    const now = performance.now();
    this.#firstAttemptAt ??= now;
    this.#latestAt = now;
    this.#target = target;
    this.#watched?.set(target, now);
  }

  /** `performance.now()` at the start of the last attempt at a target; undefined without one, or when another target was tried since. */
  startOf(target: Target): number | undefined {
    return this.#watched?.get(target) ?? (this.#target === target ? this.#latestAt : undefined);
  }

  /** Returns the target of an attempt and its start; undefined where they are not known. */
  answered({ channel, model }: AttemptEvent): { readonly target: Target; readonly at: number } | undefined {
    const isIt = (target: Target): boolean => target.channel.id === channel && target.model === model;
    for (const [target, at] of this.#watched ?? []) if (isIt(target)) return { target, at };
    if (this.#target === undefined || this.#latestAt === undefined || !isIt(this.#target)) return undefined;
    return { target: this.#target, at: this.#latestAt };
  }

  /** An attempt failed. Responses name the attempts before them; where all attempts failed this is the only report. */
  failed(event: AttemptEvent): void {
    this.#failed.push(event);
  }

  /** Counts a request that has reached its provider (1), or takes one off that failed or is free (-1). */
  reached(change: 1 | -1): void {
    this.#reached = Math.max(0, this.#reached + change);
  }

  /** `performance.now()` when the first attempt started; undefined when none has. */
  get firstAttemptAt(): number | undefined {
    return this.#firstAttemptAt;
  }

  /** Target of the last attempt. */
  get target(): Target | undefined {
    return this.#target;
  }

  /** Attempts that failed, the first one first. Grows while the call runs. */
  get failures(): readonly AttemptEvent[] {
    return this.#failed;
  }

  /** Number of providers that have received a request of the call, without those that failed: somebody pays for what they read. */
  get readers(): number {
    return this.#reached;
  }

  /** Returns the targets that are asked from now on, with the time at which each was asked last, for parallel attempts. */
  watch(): ReadonlyMap<Target, number> {
    return (this.#watched = new Map());
  }
}
