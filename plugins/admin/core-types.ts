/** Types of what the core gives this plugin, by the names that the plugin uses. */
import type {
  InternalTools,
  accountOf,
  isInScope,
  openAdminPassword,
  openAdminTokens,
} from 'sluice/internal';

/** Stores of the gateway. */
export type Stores = InternalTools['stores'];

/** People who sign in. */
export type Users = InternalTools['users'];

/** One of them. */
export type User = Awaited<ReturnType<Users['update']>>;

/** Fields of a user that change. */
export type UserChanges = Parameters<Users['update']>[1];

/** Permissions of a user. */
export type UserRole = User['role'];

/** Place of a user in a team. */
export type TeamMembership = User['teams'][number];

/** Outcome of the check of a second factor. */
export type CodeCheck = Awaited<ReturnType<InternalTools['credentials']['checkCode']>>;

/** API keys, with those who own them. */
export type ApiKeys = InternalTools['apiKeys'];

/** Fields of an API key that change. */
export type ApiKeyChanges = Parameters<ApiKeys['update']>[1];

/** Secret that a key had before, while it is valid. */
export type OldSecret = NonNullable<Awaited<ReturnType<ApiKeys['oldSecretsOf']>>[number]>;

/** Organisations, teams, members and service accounts. */
export type Owners = ApiKeys['owners'];

/** Fields of an owner that change. */
export type OwnerChanges = Parameters<Owners['update']>[1];

/** Keys that an actor may see, by their owners. */
export type KeyScope = NonNullable<Parameters<typeof isInScope>[0]>;

/** Owners of a key, by their ids. */
export type KeyOwners = Parameters<typeof isInScope>[1];

/** Entries of the config that administrators have made. */
export type RuntimeConfig = NonNullable<InternalTools['runtimeConfig']>;

/** Outcome of a change of entries. */
export type ChangeResult = Awaited<ReturnType<RuntimeConfig['undo']>>;

/** Kind and name of an entry. */
export type EntryName = Parameters<RuntimeConfig['remove']>[0];

/** An entry, and how it stands. */
export type StandingEntry = Awaited<ReturnType<RuntimeConfig['list']>>['entries'][number];

/** Records of calls, and sums of them. */
export type UsageLog = InternalTools['usageLog'];

/** Which records count. */
export type UsageFilter = Parameters<UsageLog['sums']>[0];

/** Groupings of sums of records. */
export type UsageGrouping = Parameters<UsageLog['sums']>[1];

/** Sums of records by a grouping. */
type UsageSumsList = Awaited<ReturnType<UsageLog['sums']>>;

/** Sum of one group. */
export type UsageSums = UsageSumsList['sums'][number];

/** Sum of records. */
export type UsageTotals = Omit<NonNullable<UsageSumsList['rest']>, 'groups'>;

/** Record of a call. */
export type UsageRecord = NonNullable<Awaited<ReturnType<UsageLog['find']>>>;

/** Channels, and the models that they serve. */
export type Catalog = InternalTools['catalog'];

/** A channel of the config. */
export type Channel = Catalog['channels'][number];

/** State of a key of a channel, or of one model there. */
export type BreakerStatus = ReturnType<InternalTools['health']['report']>[number];

/** Calls of the gateway's own. */
export type DirectCalls = InternalTools['calls'];

/** Limits of rates. */
export type Rates = InternalTools['rates'];

/** Password of the operator. */
export type AdminPassword = ReturnType<typeof openAdminPassword>;

/** Tokens of the admin API. */
export type AdminTokens = ReturnType<typeof openAdminTokens>;

/** One of them. */
export type AdminToken = NonNullable<Awaited<ReturnType<AdminTokens['find']>>>;

/** Facts about the response of a call. */
export type CallRecord = ReturnType<typeof accountOf>['record'];

/** Options of sums in JSON. */
export type UsageSumsInJsonOptions = NonNullable<Parameters<UsageLog['sumsInJson']>[2]>;
