import type { AttemptEvent } from '../../model/event.ts';
import type { Target } from '../../sdk/call.ts';

/** The providers that were asked for one call, as routing, the innermost step and the reader of sockets report them. */
export class CallAttempts {
  readonly #failed: AttemptEvent[] = [];
  #askedAt: number | undefined = undefined;
  #target: Target | undefined = undefined;
  #watched: Set<Target> | undefined = undefined;
  #reached = 0;

  /** A provider is about to be asked. */
  asked(target: Target): void {
    this.#askedAt ??= performance.now();
    this.#target = target;
    this.#watched?.add(target);
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

  /** Returns the set of targets that are asked from now on, for parallel attempts. */
  watch(): ReadonlySet<Target> {
    return (this.#watched = new Set());
  }
}
