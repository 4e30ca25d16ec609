/** Limits of rates, as plugins count by them. */

/**
 * A limit on how much may be counted for one subject within a minute.
 *
 * @example
 * const rule: RateRule = { subject: 'my-plugin:searches', limit: 100, cost: 1 };
 */
export interface RateRule {
  /** What is counted together: `key:key_…:requests` and the like. */
  readonly subject: string;
  readonly limit: number;
  /** How much this call counts: 1 for a request, its tokens for tokens. More than the limit counts as the whole limit, or the call could never run. */
  readonly cost: number;
  /** How much more is counted, for calls that follow, where the limit has ample room. Those that count in this process alone ignore it. */
  readonly ahead?: number;
}

/**
 * A limit on how many calls of one subject run at the same time.
 *
 * @example
 * const rule: SlotRule = { subject: 'my-plugin:uploads', limit: 4 };
 */
export interface SlotRule {
  readonly subject: string;
  readonly limit: number;
  /** How many more slots are taken, as for {@link RateRule.ahead}. */
  readonly ahead?: number;
}

/**
 * How a minute stands after a call was counted, or refused.
 *
 * @example
 * const [{ remaining, resetMs }] = verdict.states;
 */
export interface RateState {
  readonly subject: string;
  readonly limit: number;
  /** Never negative. */
  readonly remaining: number;
  /** Milliseconds until the whole limit is free again. */
  readonly resetMs: number;
  /** What was counted for calls that follow; `remaining` is without it. */
  readonly ahead?: number;
}

/**
 * What a call holds once it was counted. Nothing in it throws, waits, or keeps the process alive.
 *
 * @example
 * call.onEnd(() => grant.release());
 */
export interface RateGrant {
  /** Corrects the count of a subject by the true figure: what is added counts from now on, what is given back is taken off where it was counted. */
  correct(subject: string, difference: number): void;
  /** Gives the slots back, once. A slot that nobody gives back is free again when its lease has passed. */
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
  /** One for each rule that counts by the minute; empty when nobody could be asked. */
  readonly states: readonly RateState[];
  /** The rule that refused the call. */
  readonly exceeded?: string;
  /** Milliseconds after which the call may be allowed; 0 when it is. Unknown for slots: a second. */
  readonly retryMs: number;
  /** True when the shared store could not be asked and the configured way out was taken. */
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
