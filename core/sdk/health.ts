import type { Target } from './call.ts';
import type { GatewayError } from './errors.ts';

/**
 * How a key or model stands: `up`, its circuit closed; `cooling`, in the cool-down that its provider asked for; `resting` after failures, its
 * circuit open; `probing`, half-open, while one call finds out whether it answers again.
 */
export type Standing = 'up' | 'cooling' | 'resting' | 'probing';

/** Which key of which channel, or which model behind it. */
export interface PlaceName {
  readonly channel: string;
  /** The key's id. */
  readonly key: string;
  /** The provider's name of the model; absent for what holds for the key as a whole. */
  readonly model?: string;
}

/** What is known of one key of one channel, or of one model there. */
export interface PlaceHealth extends PlaceName {
  readonly standing: Standing;
  /** Milliseconds since 1970: when calls may go there again; absent when they may now. */
  readonly until?: number;
  /** Failures within the window. */
  readonly failures: number;
  /** What went wrong last. The sentence is the provider's own where it gave one: for operators alone. */
  readonly last?: { readonly at: number; readonly code: string; readonly message: string };
}

/** A place stands differently than before. That a cool-down has passed is no change of its own. */
export interface HealthChange extends PlaceHealth {
  readonly before: Standing;
  /** True when another gateway found it out. */
  readonly elsewhere: boolean;
}

/** One attempt at a target, as health sees it. One of the last three is called, once, whatever becomes of the attempt. */
export interface Visit {
  /** The first event of its reply has come. At most once, before the outcome: where this attempt is a probe, it has shown enough. */
  answered(): void;
  /** It answered and its reply came to a sound end. */
  succeeded(): void;
  /** It failed: before its first event, or in the middle of its reply. The caller's own mistakes count as success. */
  failed(error: GatewayError): void;
  /** Nobody waited for the outcome any more. */
  left(): void;
}

/** Who may be asked: the one owner of what is known about targets' health, shared with other gateways where they share a store. */
export interface Health {
  /** 0 when a call may go there now; else milliseconds until one may. */
  waitMs(target: Target): number;
  /** Why {@link waitMs} says what it says. */
  standing(target: Target): Standing;
  /**
   * A call goes there. Undefined when it may not: another call is the probe, or the provider asked for patience. A target that rests
   * lets one call at a time in before its time, and not often: for calls that have nowhere else to go.
   */
  enter(target: Target): Visit | undefined;
  /** All that is not simply up, and every key that has failed since it was last forgotten. */
  report(): readonly PlaceHealth[];
  /** Forgets what is known of a channel, in all gateways: it may be asked at once. */
  reset(channel: string): void;
  /** Tells of every change until the returned function is called. */
  follow(listener: (change: HealthChange) => void): () => void;
  /** Whether other gateways are heard: `alone` when nothing is shared. */
  readonly sharing: 'alone' | 'ok' | 'degraded';
  close(): Promise<void>;
}
