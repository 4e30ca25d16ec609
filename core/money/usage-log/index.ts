import type { UsageRecord } from '../../model/usage-record.ts';

/** Which records are wanted; all members narrow. Times are milliseconds since 1970, `until` is exclusive. */
export interface UsageFilter {
  readonly since?: number;
  readonly until?: number;
  readonly keyId?: string;
  readonly model?: string;
  readonly channel?: string;
  readonly format?: string;
  readonly operation?: string;
  /** `failed`: a status from 400 on, or interrupted in the middle of the reply. */
  readonly outcome?: 'ok' | 'failed';
  readonly status?: number;
  /** The id of one call, as its client saw it in `x-request-id`. */
  readonly id?: string;
  /** Duration in milliseconds: at least, at most. */
  readonly minMs?: number;
  readonly maxMs?: number;
  /** Cost in micro-dollars: at least, at most. Calls of models without a price have none. */
  readonly minMicroDollars?: number;
  readonly maxMicroDollars?: number;
}

/** What the largest records are compared by: duration or cost. */
export type UsageMeasure = 'ms' | 'microDollars';

/** The largest records of a filter, the largest first, without captured bodies. */
export interface LargestUsage {
  readonly records: readonly UsageRecord[];
  /**
   * Time of the oldest records that were compared, in milliseconds since 1970; absent when all records of the filter were. To compare older
   * ones, ask again with this time as `until`.
   */
  readonly comparedSince?: number;
}

/**
 * A page of records, newest first and without captured bodies. `next` is the cursor of the following page. One page reads 250,000 records
 * at most: where few of them fit the filter it is shorter than its limit, or empty, and has a cursor all the same.
 */
export interface UsagePage {
  readonly records: readonly UsageRecord[];
  readonly next?: string;
}

/** Sums over the records of one group. */
export interface UsageSums {
  /** What they have in common: the bucket's start, a key id, a model, a channel, a format or a status. Empty where they have none. */
  readonly group: string | number;
  readonly calls: number;
  readonly failed: number;
  readonly input: number;
  readonly output: number;
  readonly microDollars: number;
  /** Milliseconds at the 50th, 95th and 99th percentile, within two percent; zeros where nothing was measured. */
  readonly ms: readonly [number, number, number];
  readonly firstMs: readonly [number, number, number];
}

/** How records are grouped: by a member, or by time in buckets of so many milliseconds. */
export type UsageGrouping = 'keyId' | 'model' | 'channel' | 'format' | 'status' | { readonly bucket: number };

/** Attempts at one channel that failed, also where another channel answered the call. */
export interface FailedAttempts {
  readonly count: number;
  /** The latest of them. `at` is when its call came in; `message` is empty where the provider gave none. */
  readonly last: {
    readonly at: number;
    readonly model: string;
    readonly code: string;
    readonly message: string;
  };
}

/** The records of all calls. Written by the ledger, together with what they charge. */
export interface UsageLog {
  /** Throws GatewayError `invalid_value` when `after` is no cursor. */
  page(filter: UsageFilter, limit: number, after?: string): Promise<UsagePage>;
  /**
   * Returns the records with the longest duration or the highest cost, newest first among equals. Compares the newest 250,000 records of
   * the filter's time range at most.
   */
  largest(filter: UsageFilter, by: UsageMeasure, limit: number): Promise<LargestUsage>;
  /** One record with all that is known of it, captured bodies included. */
  find(id: string): Promise<UsageRecord | undefined>;
  /**
   * Buckets in the order of time (empty ones are left out), other groups with the most calls first; beyond 5,000 groups the others are one,
   * named `…`. What is asked at once with the same filter costs little more than one question.
   */
  sums(filter: UsageFilter, grouping: UsageGrouping): Promise<readonly UsageSums[]>;
  /** Failed attempts of the calls since a time (milliseconds since 1970), by channels. */
  failedAttempts(since: number): Promise<ReadonlyMap<string, FailedAttempts>>;
  /** All records of a filter, oldest first, in pages and without captured bodies: for exports. */
  each(filter: UsageFilter): AsyncIterable<UsageRecord>;
  /** Removes what is older, and the oldest beyond a number; returns how many went. */
  prune(keep: { readonly days: number; readonly records: number }): Promise<number>;
}
