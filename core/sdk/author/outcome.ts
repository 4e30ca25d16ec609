/** Public types of the result of a call: attempts, cost, times, response and final state. */
import type { AttemptEvent, FailureCause } from '../../model/event.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Usage } from '../../model/usage.ts';
import type { GatewayError } from '../errors.ts';

/**
 * One attempt at a target.
 *
 * @example
 * const failed = outcome.attempts.filter(({ failure }) => failure !== undefined);
 */
export interface CallAttempt {
  /** The channel's id. */
  readonly channel: string;
  /** Id of the channel's key; absent if the channel has none. */
  readonly key?: string;
  /** The model's name at the provider. */
  readonly model: string;
  /** The format spoken to the provider; absent when the attempt failed before that was settled. */
  readonly format?: string;
  /** An error code, or `hedged` when a parallel attempt answered first. Absent on the attempt that answered. */
  readonly failure?: string;
  /** The provider's status and message, or the error of the connection. For operators: it may quote the request. */
  readonly cause?: FailureCause;
  /** Milliseconds from the arrival of the call until this attempt was sent; absent when it failed before that. */
  readonly startMs?: number;
  /** Milliseconds from the arrival of the call until this attempt ended. */
  readonly endMs?: number;
}

/**
 * Cost of a call, and the price by which it was computed.
 *
 * @example
 * const dollars = (outcome.cost?.microDollars ?? 0) / 1e6;
 */
export interface CallCost {
  /** Integer. */
  readonly microDollars: number;
  /** The row of the price table, with its model pattern. Absent where nothing was used. */
  readonly price?: JsonObject;
}

/**
 * Durations of a call in milliseconds, each from the arrival of the request.
 *
 * @example
 * const gatewayMs = outcome.times.queuedMs;
 */
export interface CallTimes {
  /** Milliseconds until the first request to a provider. Absent when there was none. */
  readonly queuedMs?: number;
  /** Until the first event of the response. Absent when there was none. */
  readonly firstMs?: number;
  /** Until the response ended. */
  readonly totalMs: number;
}

/**
 * State of a call that is still running: figures grow until it ends.
 *
 * @example
 * addReplyHeaders(call, () => ({ 'x-attempts': String(call.progress.attempts.length) }));
 */
export type CallProgress = Omit<CallOutcome, 'ended' | 'status' | 'error'>;

/**
 * Final state of a call.
 *
 * @example
 * call.onOutcome(({ status, cost, usage }) => log.info({ status, cost, usage }, 'call ended'));
 */
export interface CallOutcome {
  /** The call's id: `req_…`. */
  readonly id: string;
  /**
   * `complete`: the response was sent to its end. `error`: the call failed or was refused. `interrupted`: it failed after a part of the
   * response had been sent. `left`: the client closed the connection first.
   */
  readonly ended: 'complete' | 'error' | 'left' | 'interrupted';
  /** HTTP status that the client saw; 499 when the client left before there was one. */
  readonly status: number;
  /** The error of a call that failed or was refused. */
  readonly error?: GatewayError;
  /** The requested model after all edits; empty when the request was refused before its body was read. */
  readonly model: string;
  /** Charged usage: figures of the provider, or an estimate (`estimated`) if the provider reported none. Absent when nothing was used. */
  readonly usage?: Usage;
  /** Absent when nothing was used, and when the model has no price. */
  readonly cost?: CallCost;
  /** All attempts, at most 50 failed ones. The one that answered is the last. Empty when no channel was called. */
  readonly attempts: readonly CallAttempt[];
  readonly times: CallTimes;
  /** Paths of the fields that the translation dropped, of the request and of the response; at most 50. */
  readonly dropped: readonly string[];
}

/**
 * Facts about a response, updated until it ends: for logs of responses. {@link CallOutcome} has the charge of a call.
 *
 * @example
 * const { response } = call;
 * call.onEnd(() => log.info({ id: call.id, status: response.status, ms: response.ms }, 'call ended'));
 */
export interface CallResponse {
  /** `left` until the response has ended another way. */
  readonly ended: 'complete' | 'error' | 'left';
  /** HTTP status that the client saw; 499 when the client left before there was one. */
  readonly status: number;
  readonly error: GatewayError | undefined;
  /** The requested model after all edits; what the client wrote, which may be nothing, when the call did not come so far. */
  readonly model: string;
  /** The attempt that answered. */
  readonly attempt: AttemptEvent | undefined;
  /** Last usage that the response reported. */
  readonly usage: Usage | undefined;
  /** Milliseconds from the request to the end of the response; until now for a call that runs. */
  readonly ms: number;
  /** Milliseconds from the request to the first event of the response. */
  readonly firstMs: number | undefined;
  /** Returns the paths of the fields that the translation dropped; undefined when there are none. */
  losses(): readonly string[] | undefined;
  /** Returns the attempts that failed, each as `shown` gives it; undefined when there are none. */
  failures<T>(shown: (attempt: AttemptEvent) => T): readonly T[] | undefined;
}

/**
 * A call that has ended and has been charged.
 *
 * @example
 * call.onSettled(({ usage }: SettledCall) => log.info({ id: call.id, input: usage?.input }, 'call ended'));
 */
export interface SettledCall {
  readonly response: CallResponse;
  /** Usage that is charged, or that the response reported where nothing charges. */
  readonly usage: Usage | undefined;
  /** Cost of the usage; undefined where its model has no price. */
  readonly cost: CallCost | undefined;
  /** `plugin:NAME` where a plugin has answered in place of a channel. */
  readonly answeredBy: string | undefined;
}
