/** Types of what the core gives this plugin, by the names that the plugin uses. */
import type { InternalTools, accountOf } from 'sluice/internal';

/** Records of calls, and sums of them. */
export type UsageLog = InternalTools['usageLog'];

/** Record of a call. */
export type UsageRecord = NonNullable<Awaited<ReturnType<UsageLog['find']>>>;

/** Retention of records and sums. */
export type UsageRetention = Parameters<UsageLog['prune']>[0];

/** Account of a call. */
export type Account = ReturnType<typeof accountOf>;

/** State of the stored records and sums. */
export type Upkeep = InternalTools['upkeep'];
