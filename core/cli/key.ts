import { loadConfig } from '../config/config.ts';
import { databaseUrl } from '../server.ts';
import type { ApiKeys } from '../state/api-keys/index.ts';
import { createApiKeys } from '../state/api-keys/open.ts';
import { type ApiKey } from '../sdk/api-key.ts';
import { openStores } from '../state/stores.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { table } from './describe.ts';

const help = `Usage: sluice key create --name NAME [--models LIST] [--expires WHEN] [--note TEXT] [--config FILE]
       sluice key list [--config FILE]
       sluice key revoke KEY [--config FILE]

Works on the config's database, also while the gateway runs: it follows within a second.

create   Makes a key. Its value goes to standard output and is shown this once; all else goes to standard
         error, so that KEY=$(sluice key create --name ci) holds the value alone.
           --models   Models the key may use: names and * patterns, with commas between. Default: all.
           --expires  A time from now (12h, 30d, 8w) or a day (2027-01-31: the last on which it works, in UTC).
           --note     Anything worth knowing about it.
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
      expires: { type: 'string' },
      note: { type: 'string' },
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
  const stores = openStores(databaseUrl(config), report);
  try {
    await work(createApiKeys(stores, report));
    return 0;
  } finally {
    await stores.close();
  }
}

interface CreateOptions {
  readonly name?: string | undefined;
  readonly models?: readonly string[] | undefined;
  readonly expires?: string | undefined;
  readonly note?: string | undefined;
}

function newKey({ name, models, expires, note }: CreateOptions): Parameters<ApiKeys['create']>[0] {
  if (name === undefined) throw new UsageError('A key needs a name: --name NAME.');
  const allowed = models
    ?.flatMap((names) => names.split(','))
    .map((model) => model.trim())
    .filter((model) => model !== '');
  return {
    name,
    models: allowed,
    expiresAt: expires === undefined ? undefined : expiryOf(expires, Date.now()),
    note,
  };
}

async function create(keys: ApiKeys, wanted: Parameters<ApiKeys['create']>[0]): Promise<void> {
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
