/** `sluice key`: makes, lists, changes and deletes API keys. */
import { loadConfig } from '../config/config.ts';
import { databaseOf } from '../server.ts';
import { z } from 'zod';
import { apiKeyFields } from '../state/api-keys/fields.ts';
import type { ApiKeys, NewApiKey } from '../state/api-keys/index.ts';
import { createApiKeys } from '../state/api-keys/open.ts';
import type { ApiKey } from '../sdk/api-key.ts';
import type { Budget } from '../sdk/budget.ts';
import { openStores } from '../state/stores.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { table } from './describe.ts';

const help = `Usage: sluice key create --name NAME [--models LIST] [--budget AMOUNT/PERIOD] [--rpm N] [--tpm N]
                         [--concurrency N] [--addresses LIST] [--expires WHEN] [--note TEXT] [--config FILE]
       sluice key list [--config FILE]
       sluice key revoke KEY [--config FILE]

Works on the config's database, also while the gateway runs: the gateway follows within a second.

create   Creates a key. Prints its value to standard output, this once; all else goes to standard error,
         so that KEY=$(sluice key create --name ci) holds the value alone.
           --models       Models the key may use: names and * patterns, separated by commas. Default: all.
           --budget       Most that the key may spend in the last hours (1h to 168h), a day, a week, a month or in total,
                          in dollars or tokens: 2usd/5h, 25usd/month, 2000000tokens/total; in a time zone other than
                          UTC: 0.5usd/day@Europe/Berlin. Repeat it for several budgets.
           --tags         Words by which usage is attributed, separated by commas: at most 20.
           --rpm          Requests per minute.
           --tpm          Tokens per minute.
           --concurrency  Calls at the same time.
           --addresses    IP addresses and CIDR ranges the key may be used from, separated by commas. Default: all.
           --expires      A time from now (12h, 30d, 8w) or a day (2027-01-31: the last on which it works, in UTC).
           --team         Id of its team, whose limits bind it too.
           --member       Id of its member or service account.
           --note         Any text, for people.
list     Shows the keys, never their values.
revoke   Deletes a key. KEY is its id, its name or its first characters.`;

/** `sluice key`: makes, lists and revokes API keys. */
export const key: Command = {
  summary: 'Makes, lists and revokes API keys.',
  help,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      name: { type: 'string' },
      models: { type: 'string', multiple: true },
      budget: { type: 'string', multiple: true },
      rpm: { type: 'string' },
      tpm: { type: 'string' },
      concurrency: { type: 'string' },
      addresses: { type: 'string', multiple: true },
      expires: { type: 'string' },
      note: { type: 'string' },
      team: { type: 'string' },
      member: { type: 'string' },
      tags: { type: 'string', multiple: true },
    });
    const [action, ...words] = positionals;
    if (action === 'create') {
      if (words.length > 0)
        throw new UsageError(`"${words[0]}" is too much here. Give the name with --name.`);
      const wanted = newKey(values);
      return withKeys(values.config, (keys) => create(keys, wanted));
    }
    if (action === 'list' && words.length === 0) return withKeys(values.config, list);
    const [which] = words;
    if (action === 'revoke' && which !== undefined && words.length === 1)
      return withKeys(values.config, (keys) => revoke(keys, which));
    if (action === 'revoke') throw new UsageError('Say which key: sluice key revoke KEY.');
    throw new UsageError(
      action === undefined
        ? 'Say what to do: create, list or revoke.'
        : `"${action}" is none of create, list and revoke.`,
    );
  },
};

function report(error: Error): void {
  console.error(error.message);
}

async function withKeys(option: string | undefined, work: (keys: ApiKeys) => Promise<void>): Promise<number> {
  const config = await loadConfig(option);
  const stores = openStores(databaseOf(config), report);
  try {
    const keys = createApiKeys(stores, report);
    await keys.owners.load();
    await work(keys);
    return 0;
  } finally {
    await stores.close();
  }
}

interface CreateOptions {
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

/** Fields that no option sets are set by the admin API alone. */
type Field = Exclude<keyof typeof apiKeyFields, 'endUserBudget' | 'callTags'>;

/** The option of the command that sets each field of a key. */
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
function newKey(options: CreateOptions): NewApiKey {
  const { name, expires, note } = options;
  if (name === undefined) throw new UsageError('A key needs a name: --name NAME.');
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

/** Reads a whole number. What is none becomes NaN, which the schema refuses. */
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
      `--budget "${text}" cannot be read. Write an amount, a unit and a period: 25usd/month, 2usd/5h, 0.5usd/day@Europe/Berlin, 2000000tokens/total.`,
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

async function create(keys: ApiKeys, wanted: NewApiKey): Promise<void> {
  const { record, value } = await keys.create(wanted);
  console.error(`Made the key "${record.name}" (${record.id}). Its value is shown this once:`);
  console.log(value);
}

async function list(keys: ApiKeys): Promise<void> {
  const records = await keys.list();
  if (records.length === 0) {
    console.log('There are no keys. Make one with: sluice key create --name NAME');
    return;
  }
  const rows = records.map((record) => [
    record.id,
    record.name,
    `${record.prefix}…${record.suffix}`,
    record.models?.join(', ') ?? 'all models',
    limitsOf(record),
    stateOf(record),
    `made ${day(record.createdAt)}`,
    record.lastUsedAt === undefined ? 'never used' : `used ${day(record.lastUsedAt)}`,
    record.note ?? '',
  ]);
  console.log(table(rows).join('\n'));
}

async function revoke(keys: ApiKeys, which: string): Promise<void> {
  const record = await keys.revoke(which);
  console.log(`Revoked the key "${record.name}" (${record.id}).`);
}

/** Describes the limits of a key on one line, in the words of the options that set them. */
/** A budget as `--budget` takes it. */
function budgetText({ unit, period, amount, hours, timeZone }: Budget): string {
  const most = unit === 'token' ? `${amount}tokens` : `${amount / 1e6}usd`;
  const zone = timeZone === undefined ? '' : `@${timeZone}`;
  return `${most}/${period === 'hours' ? `${hours}h` : period}${zone}`;
}

function limitsOf(record: ApiKey): string {
  const { budgets = [], requestsPerMinute, tokensPerMinute, concurrency, addresses } = record;
  const limits = [
    ...budgets.map(budgetText),
    ...(requestsPerMinute === undefined ? [] : [`rpm ${requestsPerMinute}`]),
    ...(tokensPerMinute === undefined ? [] : [`tpm ${tokensPerMinute}`]),
    ...(concurrency === undefined ? [] : [`concurrency ${concurrency}`]),
    ...(addresses === undefined ? [] : [`from ${addresses.join(' ')}`]),
  ];
  return limits.length === 0 ? 'no limits' : limits.join(', ');
}

function stateOf({ enabled, expiresAt }: ApiKey): string {
  if (!enabled) return 'disabled';
  if (expiresAt === undefined) return 'valid';
  return `${expiresAt <= Date.now() ? 'expired' : 'valid until'} ${day(expiresAt)}`;
}

function day(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

const units: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** When a key ends: `30d` after now, or the last millisecond of a day. */
export function expiryOf(text: string, now: number): number {
  const [, count, unit = ''] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  if (count !== undefined) return now + Number(count) * (units[unit] ?? 0);
  const end = Date.parse(`${text}T23:59:59.999Z`);
  // Dates that do not exist, such as 30 February, are read as the next one that does.
  if (Number.isNaN(end) || day(end) !== text)
    throw new UsageError(`"${text}" is no time. Write 12h, 30d, 8w, or a day such as 2027-01-31.`);
  return end;
}
