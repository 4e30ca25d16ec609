/** Rate limits and concurrency limits for plugins. */

/**
 * Rate limit of one subject within a minute.
 *
 * @example
 * const rule: RateRule = { subject: 'my-plugin:searches', limit: 100, cost: 1 };
 */
export interface RateRule {
  /** Name of the counter, such as `key:key_…:requests`. */
  readonly subject: string;
  readonly limit: number;
  /** Cost of this call: 1 for a request, the number of tokens for tokens. A cost above the limit counts as the limit, so that the call can run. */
  readonly cost: number;
  /** Additional cost to reserve for following calls, if the limit is far from exceeded. Ignored by limits that are counted in this process only. */
  readonly ahead?: number;
}

/**
 * Concurrency limit of one subject.
 *
 * @example
 * const rule: SlotRule = { subject: 'my-plugin:uploads', limit: 4 };
 */
export interface SlotRule {
  readonly subject: string;
  readonly limit: number;
  /** Additional permits to reserve, as for {@link RateRule.ahead}. */
  readonly ahead?: number;
}

/**
 * State of a rate limit after a call was counted or rejected.
 *
 * @example
 * const [{ remaining, resetMs }] = verdict.states;
 */
export interface RateState {
  readonly subject: string;
  readonly limit: number;
  /** Rest of the limit, at least 0. */
  readonly remaining: number;
  /** Milliseconds until the whole limit is available again. */
  readonly resetMs: number;
  /** Cost that was reserved for following calls. Not included in `remaining`. */
  readonly ahead?: number;
}

/**
 * Permits and counts of a call. The methods never throw or wait, and do not keep the process alive.
 *
 * @example
 * call.onEnd(() => grant.release());
 */
export interface RateGrant {
  /** Corrects the count of a subject. A positive difference counts from now on; a negative one is subtracted at the time of the original count. */
  correct(subject: string, difference: number): void;
  /** Releases the permits. Call it once. A permit that is not released expires with its lease. */
  release(): void;
}

/**
 * Result of counting a call.
 *
 * @example
 * if (!verdict.allowed) throw new GatewayError('rate_limit_exceeded', 'Try again later.', { retryAfter: 60 });
 */
export interface RateVerdict {
  readonly allowed: boolean;
  /** Present when the call was allowed. */
  readonly grant?: RateGrant;
  /** State of each rate limit; empty when the limits could not be checked. */
  readonly states: readonly RateState[];
  /** Subject of the exceeded rule. */
  readonly exceeded?: string;
  /** Milliseconds after which the call may be allowed; 0 when it is allowed. For concurrency limits the time is unknown: 1000. */
  readonly retryMs: number;
  /** True when the shared store was unavailable and `shared.whenDown` applied. */
  readonly degraded?: boolean;
}

/**
 * Counts calls by the minute, and calls that run, for all gateways on one `shared` store. Nothing here takes longer than a second.
 *
 * @example
 * const { allowed, grant } = await rates.take([{ subject: `my-plugin:${user}`, limit: 10, cost: 1 }]);
 */
export interface Rates {
  /** Counts a call against all rules at once, or, when one is exceeded, against none. Never rejects. */
  take(rules: readonly RateRule[], slots?: readonly SlotRule[]): Promise<RateVerdict>;
}
