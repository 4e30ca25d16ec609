/** Parses the options of `sluice key`. */
import { z } from 'zod';
import type { Budget } from '../../sdk/budget.ts';
import { apiKeyFields } from '../../state/api-keys/fields.ts';
import type { NewApiKey } from '../../state/api-keys/index.ts';
import { longestGraceMs } from '../../state/api-keys/old-secrets.ts';
import { UsageError } from '../command.ts';

/** The options of `sluice key create`. */
export interface CreateOptions {
  readonly name?: string | undefined;
  readonly models?: readonly string[] | undefined;
  readonly budget?: readonly string[] | undefined;
  readonly rpm?: string | undefined;
  readonly tpm?: string | undefined;
  readonly concurrency?: string | undefined;
  readonly addresses?: readonly string[] | undefined;
  readonly expires?: string | undefined;
  readonly note?: string | undefined;
  readonly team?: string | undefined;
  readonly member?: string | undefined;
  readonly tags?: readonly string[] | undefined;
}

/** Fields that options set. The excluded ones can only be set with the admin API. */
type Field = Exclude<keyof typeof apiKeyFields, 'endUserBudget' | 'callTags'>;

/** Options by the field of a key that they set. */
const optionOf: Readonly<Record<Field, string>> = {
  name: '--name',
  note: '--note',
  models: '--models',
  budgets: '--budget',
  requestsPerMinute: '--rpm',
  tokensPerMinute: '--tpm',
  concurrency: '--concurrency',
  addresses: '--addresses',
  expiresAt: '--expires',
  team: '--team',
  member: '--member',
  tags: '--tags',
};

/** Reads the options into the fields of a key. Throws UsageError, naming the option, for what the admin API would refuse. */
export function newKey(options: CreateOptions): NewApiKey {
  const { name, expires, note } = options;
  if (name === undefined) throw new UsageError('A key needs a name: add --name NAME.');
  const fields: { readonly [F in Field]: unknown } = {
    name,
    note,
    models: entriesOf(options.models),
    budgets: options.budget?.map(budgetOf),
    requestsPerMinute: numberOf(options.rpm),
    tokensPerMinute: numberOf(options.tpm),
    concurrency: numberOf(options.concurrency),
    addresses: entriesOf(options.addresses),
    expiresAt: expires === undefined ? undefined : expiryOf(expires, Date.now()),
    team: options.team,
    member: options.member,
    tags: entriesOf(options.tags),
  };
  const parsed = z.object(apiKeyFields).partial().required({ name: true }).safeParse(fields);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new UsageError(`${optionOf[issue?.path[0] as Field]} ${issue?.message ?? 'is not valid'}.`);
}

/** Splits lists at commas. */
function entriesOf(lists: readonly string[] | undefined): readonly string[] | undefined {
  return lists
    ?.flatMap((text) => text.split(','))
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
}

/** Parses a whole number. Returns NaN for other text, which the schema rejects. */
function numberOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

/** Reads `25.5usd/month` or `2000000tokens/day`. */
export function budgetOf(text: string): Budget {
  const [, whole = '', decimals = '', unit, period = '', timeZone] =
    /^(\d{1,9})(?:\.(\d{1,6}))?(usd|tokens)\/(day|week|month|total|[1-9]\d{0,2}h)(?:@([\w/+-]{1,64}))?$/.exec(
      text,
    ) ?? [];
  const isDollars = unit === 'usd';
  if (unit === undefined || (!isDollars && decimals !== ''))
    throw new UsageError(
      `Invalid --budget "${text}". Use an amount, a unit and a period, such as 25usd/month, 2usd/5h, 0.5usd/day@Europe/Berlin, 2000000tokens/total.`,
    );
  return {
    unit: isDollars ? 'micro-dollar' : 'token',
    ...(/^\d/.test(period)
      ? { period: 'hours', hours: Number(period.slice(0, -1)) }
      : { period: period as Budget['period'] }),
    ...(timeZone === undefined ? {} : { timeZone }),
    amount: isDollars ? Number(whole + decimals.padEnd(6, '0')) : Number(whole),
  };
}

/** Returns the day of a time, in UTC, as 2027-01-31. */
export function day(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

const units: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Reads a time such as `7d`, in milliseconds. */
export function graceOf(text: string): number {
  const [, count, unit = ''] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  const graceMs = Number(count) * (units[unit] ?? 0);
  if (count === undefined || graceMs > longestGraceMs)
    throw new UsageError('--grace must be a time such as 12h, 7d or 4w. Maximum: 30d.');
  return graceMs;
}

/** Returns when a key expires, in milliseconds since 1970: so long after `now` (`30d`), or the last millisecond of a day. */
export function expiryOf(text: string, now: number): number {
  const [, count, unit = ''] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  if (count !== undefined) return now + Number(count) * (units[unit] ?? 0);
  const end = Date.parse(`${text}T23:59:59.999Z`);
  // Date.parse moves dates that do not exist, such as 30 February, to the next month.
  if (Number.isNaN(end) || day(end) !== text)
    throw new UsageError(
      `Invalid time "${text}". Use a time such as 12h, 30d or 8w, or a day such as 2027-01-31.`,
    );
  return end;
}
