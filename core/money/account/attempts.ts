import type { AttemptEvent } from '../../model/event.ts';
import type { Target } from '../../sdk/call.ts';

/** The providers that were asked for one call, as routing, the innermost step and the reader of sockets report them. */
export class CallAttempts {
  readonly #failed: AttemptEvent[] = [];
  #askedAt: number | undefined = undefined;
  #target: Target | undefined = undefined;
  #latestAt: number | undefined = undefined;
  #watched: Map<Target, number> | undefined = undefined;
  #reached = 0;

  /** A provider is about to be asked. */
  asked(target: Target): void {
    const now = performance.now();
    this.#askedAt ??= now;
    this.#latestAt = now;
    this.#target = target;
    this.#watched?.set(target, now);
  }

  /** `performance.now()` when a target was asked last; undefined when it was not, or another one was asked since. */
  startOf(target: Target): number | undefined {
    return this.#watched?.get(target) ?? (this.#target === target ? this.#latestAt : undefined);
  }

  /** The target that answered an attempt, and when it was asked; undefined where that is not known. */
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

  /** A request has reached its provider (1); or the provider failed, or was asked for something that is free (-1). */
  reached(change: 1 | -1): void {
    this.#reached = Math.max(0, this.#reached + change);
  }

  /** `performance.now()` when a provider was asked first; undefined when none was. */
  get askedAt(): number | undefined {
    return this.#askedAt;
  }

  /** The target that was asked last. */
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
