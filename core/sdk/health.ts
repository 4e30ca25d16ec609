/**
 * Types of the health of targets: circuit breaker states of keys and models, attempt reports, and the registry that decides which targets may
 * be tried.
 */
import type { Target } from './call.ts';
import type { GatewayError } from './errors.ts';

/**
 * State of a key or model: `up`: its circuit breaker is closed. `cooling`: in the cooldown that its provider requested. `resting`: its circuit
 * breaker is open after failures. `probing`: half-open, with one probe call.
 */
export type Standing = 'up' | 'cooling' | 'resting' | 'probing';

/** Identifies a key of a channel, or a model of that key. */
export interface KeyOrModel {
  readonly channel: string;
  /** The key's id. */
  readonly key: string;
  /** The provider's name of the model; absent for what holds for the key as a whole. */
  readonly model?: string;
}

/** Health of one key of a channel, or of one model of that key. */
export interface TargetHealth extends KeyOrModel {
  readonly standing: Standing;
  /** Milliseconds since 1970: when calls may go there again; absent when they may now. */
  readonly until?: number;
  /** Failures within the window. */
  readonly failures: number;
  /** The last failure. `message` is that of the provider, if it sent one. Only for operators. */
  readonly last?: { readonly at: number; readonly code: string; readonly message: string };
}

/** A changed state of a key or model. The end of a cool-down alone is no change. */
export interface HealthChange extends TargetHealth {
  readonly before: Standing;
  /** True when another gateway reported it. */
  readonly elsewhere: boolean;
}

/** Reports the outcome of one attempt at a target. Exactly one of `succeeded`, `failed` and `left` must be called, once. */
export interface AttemptReport {
  /** Reports the first event of the response. At most once, before the outcome. It is the success of a probe. */
  answered(): void;
  /** Reports a complete response. */
  succeeded(): void;
  /** Reports a failure, before the first event or in the middle of the response. Errors of the client count as success. */
  failed(error: GatewayError): void;
  /** Reports that the attempt was abandoned before its outcome. */
  left(): void;
}

/** Health registry of all targets, shared with other gateways where they share a store. */
export interface Health {
  /** Returns 0 when a call may be sent now; else the milliseconds until one may. */
  waitMs(target: Target): number;
  /** Returns the state behind {@link waitMs}. */
  standing(target: Target): Standing;
  /**
   * Begins an attempt. Returns undefined when it is not allowed: another call is the probe, or the provider requested a cooldown. An open
   * breaker allows one early call at a time, and rarely, for calls that have no other target.
   */
  enter(target: Target): AttemptReport | undefined;
  /** Returns everything that is not `up`, and every key that has failed since it was last reset. */
  report(): readonly TargetHealth[];
  /** Resets the health of a channel, in all gateways, so that it may be tried at once. */
  reset(channel: string): void;
  /** Calls the listener for every change until the returned function is called. */
  follow(listener: (change: HealthChange) => void): () => void;
  /** State of the exchange with other gateways: `alone` when nothing is shared. */
  readonly sharing: 'alone' | 'ok' | 'degraded';
  close(): Promise<void>;
}
