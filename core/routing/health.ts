import type { GatewayError } from '../errors.ts';
import type { Target } from './target.ts';
import type { HealthSettings } from './settings.ts';

/** How a place stands: `up`; `cooling` after it asked for patience; `resting` after failures; `probing` while one call finds out. */
export type Standing = 'up' | 'cooling' | 'resting' | 'probing';

/** What is known of one key of one channel, or of one model there. */
export interface PlaceHealth {
  readonly channel: string;
  /** The key's id. */
  readonly key: string;
  /** The provider's name of the model; absent for what holds for the key as a whole. */
  readonly model?: string;
  readonly standing: Standing;
  /** Milliseconds since 1970: when calls may go there again; absent when they may now. */
  readonly until?: number;
  /** Failures within the window. */
  readonly failures: number;
  readonly last?: { readonly at: number; readonly code: string; readonly message: string };
}

/** One attempt at a target, as health sees it. Exactly one of its methods is called, once. */
export interface Visit {
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
  waitFor(target: Target): number;
  /** A call goes there. Undefined when it may not after all: another call is the probe. */
  enter(target: Target): Visit | undefined;
  /** All that is not simply up, and every key that has failed lately. */
  report(): readonly PlaceHealth[];
  close(): Promise<void>;
}

/** Nothing is known, and everything may be tried. */
export function createHealth(_settings: HealthSettings): Health {
  const visit: Visit = { succeeded() {}, failed() {}, left() {} };
  return {
    waitFor: () => 0,
    enter: () => visit,
    report: () => [],
    close: () => Promise.resolve(),
  };
}
