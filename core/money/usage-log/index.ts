/** Types of the usage log: filters, pages, sums and retention of the records of all calls. */
import type { UsageRecord } from '../../model/usage-record.ts';
import type { Kept } from '../../state/upkeep.ts';

/** Selects records; all members must match. Times are milliseconds since 1970, `until` is exclusive. */
export interface UsageFilter {
  readonly since?: number;
  readonly until?: number;
  readonly keyId?: string;
  /** Ids of owners of the key at the time of the call. */
  readonly team?: string;
  readonly member?: string;
  readonly organisation?: string;
  /** One of the call's tags. */
  readonly tag?: string;
  readonly endUser?: string;
  readonly model?: string;
  /** A part of the model's name, in letters of any case. */
  readonly modelPart?: string;
  readonly channel?: string;
  readonly format?: string;
  readonly operation?: string;
  /**
   * `refused`: the gateway itself answered with a status from 400 to 498, and sent the call to no provider. `failed`: another status from 400
   * on, or interrupted in the middle of the reply.
   */
  readonly outcome?: 'ok' | 'failed' | 'refused';
  readonly status?: number;
  /** First digit of the status. */
  readonly statusClass?: number;
  /** The id of one call, as its client saw it in `x-request-id`. */
  readonly id?: string;
  /** Duration in milliseconds: at least, at most. */
  readonly minMs?: number;
  readonly maxMs?: number;
  /** Cost in micro-dollars: at least, at most. Calls of models without a price have none. */
  readonly minMicroDollars?: number;
  readonly maxMicroDollars?: number;
}

/** Measure by which the largest records are found: duration or cost. */
export type UsageMeasure = 'ms' | 'microDollars';

/** The largest records of a filter, the largest first, without captured bodies. */
export interface LargestUsage {
  readonly records: readonly UsageRecord[];
  /** Cursor of the following page, which has smaller records. A page of a filter that few records fit may be short, or empty, and have one. */
  readonly next?: string;
  /**
   * Time of the oldest records that were compared, in milliseconds since 1970; absent when all records of the filter were. To compare older
   * ones, ask again with this time as `until`. Only where no index of the measure has the records.
   */
  readonly comparedSince?: number;
}

/**
 * A page of records, newest first and without captured bodies. `next` is the cursor of the following page. One page reads about 10,000
 * records and index entries at most: where few of them fit the filter it is shorter than its limit, or empty, and has a cursor all the same.
 */
export interface UsagePage {
  readonly records: readonly UsageRecord[];
  readonly next?: string;
  /** Time of the oldest records that were looked at, where the page has looked at as many as it may. Older ones follow with `next`. */
  readonly searchedSince?: number;
}

/** Totals of the calls of one group. */
export interface UsageTotals {
  readonly calls: number;
  /** Calls that failed, without those that were refused. */
  readonly failed: number;
  readonly refused: number;
  readonly input: number;
  readonly output: number;
  readonly microDollars: number;
  /** Amount that budgets were charged, where price rules made it another amount than the cost. */
  readonly chargedMicroDollars?: number;
}

/** Sums over the records of one group. */
export interface UsageSums extends UsageTotals {
  /** Common value of the group: the bucket's start, a key id, a model, a channel, a format or a status. Empty where calls have none. */
  readonly group: string | number;
  /** Name of the key or owner, where it was asked for and there is one. */
  readonly name?: string;
  /**
   * Milliseconds at the 50th, 95th and 99th percentile, within two percent; zeros where nothing was measured. Absent where they were not asked
   * for, and from sums by key and of one key.
   */
  readonly ms?: readonly [number, number, number];
  readonly firstMs?: readonly [number, number, number];
}

/** Options for sums. */
export interface UsageSumsOptions {
  /** Maximum number of groups that are not buckets of time; the others are summed as the rest. Default and maximum 5,000. */
  readonly limit?: number;
  /** Which groups come first, and are listed where there are more than `limit`: those of the highest cost (default) or the most calls. */
  readonly order?: 'cost' | 'calls';
  /** Default false. */
  readonly percentiles?: boolean;
  /** False: the groups that are not listed are not summed. Default true. */
  readonly rest?: boolean;
  /** Only these keys or owners, where sums are by these: at most 1,000. The rest is not summed then. Absent for all. */
  readonly groups?: readonly string[];
  /** True: groups have the names of their keys and owners. Default false. */
  readonly names?: boolean;
}

/** Sums by groups, and how complete they are. */
export interface UsageSumsList {
  /** Buckets in the order of time (empty ones are left out), other groups in the order that was asked for. */
  readonly sums: readonly UsageSums[];
  /** The groups that are not listed, together. Absent when all are. */
  readonly rest?: UsageTotals & { readonly groups: number };
  /**
   * Milliseconds since 1970: records from before this time are not all in the sums yet, because they are from before there were sums. Absent
   * when nothing is missing.
   */
  readonly incompleteBefore?: number;
}

/** As {@link UsageSumsList}, with the groups as bytes of JSON: an array of {@link UsageSums} with names. */
export type UsageSumsInJson = Omit<UsageSumsList, 'sums'> & {
  readonly json: Uint8Array;
  /** Groups of the filter `before`, as an array of the same kind. */
  readonly before?: Uint8Array;
};

/** Options of sums in JSON. */
export interface UsageSumsInJsonOptions extends Omit<UsageSumsOptions, 'names' | 'groups'> {
  /**
   * Another time that the groups are compared with. Of keys and owners that are not all listed, it has those that are; of others, it lists the first
   * as `order` says.
   */
  readonly before?: UsageFilter;
}

/**
 * How records are grouped: by a member, or by time in buckets of so many milliseconds. Calls without an owner, a tag or an end user are in no
 * group of these. A call with several tags is in several groups; of an hour 1,000 tags and end users have sums of their own, the others are in the
 * group with an empty name.
 */
export type UsageGrouping =
  | 'keyId'
  | 'team'
  | 'member'
  | 'organisation'
  | 'tag'
  | 'endUser'
  | 'model'
  | 'channel'
  | 'format'
  | 'status'
  | { readonly bucket: number };

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

/** Retention: records for `days` and at most `records` of them, sums for `sumDays`. */
export interface UsageRetention {
  readonly days: number;
  readonly records: number;
  readonly sumDays: number;
}

/** The records of all calls. Written by the ledger, together with what they charge. */
export interface UsageLog {
  /** Throws GatewayError `invalid_value` when `after` is no cursor. */
  page(filter: UsageFilter, limit: number, after?: string): Promise<UsagePage>;
  /**
   * Returns the records with the longest duration or the highest cost, newest first among equals. Throws GatewayError `invalid_value` when
   * `after` is no cursor.
   */
  largest(filter: UsageFilter, by: UsageMeasure, limit: number, after?: string): Promise<LargestUsage>;
  /** One record with all that is known of it, captured bodies included. */
  find(id: string): Promise<UsageRecord | undefined>;
  /**
   * Sums by groups. They are read from sums of hours and days, which are kept when the records have gone. A filter by duration, cost or id
   * reads the records themselves, in slices.
   */
  sums(filter: UsageFilter, grouping: UsageGrouping, options?: UsageSumsOptions): Promise<UsageSumsList>;
  /** As `sums`, for answers that are passed on as they are: thousands of groups need not become objects on the event loop that serves calls. */
  sumsInJson(
    filter: UsageFilter,
    grouping: UsageGrouping,
    options?: UsageSumsInJsonOptions,
  ): Promise<UsageSumsInJson>;
  /**
   * Returns what keys have spent since the beginning of the UTC day of a time, at most 31 days ago. Keys without calls are left out. Reads one
   * row for each key and day. At most 500 keys.
   */
  spentByKeys(
    keyIds: readonly string[],
    since: number,
  ): Promise<ReadonlyMap<string, Pick<UsageTotals, 'calls' | 'microDollars'>>>;
  /**
   * Adds records to the sums: a bounded number of those that are in none yet. Returns true when there may be more. Until they are added they
   * are summed at each request.
   */
  addToSums(): Promise<boolean>;
  /** Failed attempts of the calls since a time (milliseconds since 1970), by channels. */
  failedAttempts(since: number): Promise<ReadonlyMap<string, FailedAttempts>>;
  /** All records of a filter, oldest first, in pages and without captured bodies: for exports. */
  each(filter: UsageFilter): AsyncIterable<UsageRecord>;
  /** Returns the amounts of records and sums, compared with a retention. */
  standing(keep: UsageRetention): Promise<readonly Kept[]>;
  /**
   * Removes records that are too old or too many, and sums that are too old. Returns how many records went, and how many minutes, hours and
   * days of sums. Records that are in no sums yet stay.
   */
  prune(keep: UsageRetention): Promise<{ readonly records: number; readonly sums: number }>;
}
