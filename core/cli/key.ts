/** `sluice key`: creates, lists, rotates and revokes API keys, in the database of the config or at another gateway. */
import { loadConfig } from '../config/load-config.ts';
import { databaseOf } from '../config/database-of.ts';
import { createApiKeys } from '../state/api-keys/open.ts';
import type { Budget } from '../sdk/budget.ts';
import { AuditLog } from '../state/audit-log.ts';
import { openStores } from '../state/stores.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { table } from './describe.ts';
import {
  localKeys,
  remoteKeys,
  type KeyAdministration,
  type KeyWithValue,
  type ListedKey,
} from './keys/administration.ts';
import { audited } from './keys/audited.ts';
import { day, graceOf, newKey, type CreateOptions } from './keys/options.ts';
import { remoteAccess, remoteOptions, withRemote } from './remote.ts';

const help = `Usage: sluice key create --name NAME [--models LIST] [--budget AMOUNT/PERIOD] [--rpm N] [--tpm N]
                         [--concurrency N] [--addresses LIST] [--expires WHEN] [--note TEXT] [--config FILE]
       sluice key list [--config FILE]
       sluice key rotate KEY [--grace TIME] [--config FILE]
       sluice key end-grace KEY [--config FILE]
       sluice key revoke KEY [--config FILE]

Works on the config's database. Running gateways apply a change within a second. With --gateway URL the command uses the admin API
of that gateway instead. KEY is the id, the name or the first characters of a key.

create     Creates a key. Prints its value to standard output, only this once, and everything else to standard error,
           so that KEY=$(sluice key create --name ci) contains the value alone.
             --models       Models that the key may use: names and * patterns, separated by commas. Default: all.
             --budget       Maximum spending in the last hours (1h to 168h), in a day, week or month, or in total, in dollars
                            or tokens: 2usd/5h, 25usd/month, 2000000tokens/total. Append a time zone other than UTC:
                            0.5usd/day@Europe/Berlin. Repeat the option for several budgets.
             --tags         Labels of the usage of this key, separated by commas. Maximum: 20.
             --rpm          Maximum requests per minute.
             --tpm          Maximum tokens per minute.
             --concurrency  Maximum concurrent calls.
             --addresses    IP addresses and CIDR ranges from which the key may be used, separated by commas. Default: all.
             --expires      Time from now (12h, 30d, 8w), or the last day on which the key is valid, in UTC (2027-01-31).
             --team         Id of the team of the key. The limits of the team apply too.
             --member       Id of the member or the service account that owns the key.
             --note         Note for people.
list       Lists the keys, without their values.
rotate     Replaces the value of a key, and prints the new value as "create" does.
             --grace        How long the old value stays valid: 12h, 7d, 4w. Maximum: 30d. Default: not at all.
end-grace  Ends the grace period of a rotated key: its old value becomes invalid at once.
revoke     Deletes a key.

  --json     Prints JSON: an object, or for "list" an array.
  --gateway  Address of a gateway, such as https://gateway.example.com. Default: $SLUICE_GATEWAY.
  --token    Token of its admin API, or - to read it from standard input. Default: $SLUICE_TOKEN. Prefer the variable,
             because other users of the machine can see the arguments of a command.`;

/** The subcommands, and whether each takes a key. */
const actions = {
  create: { hasKey: false },
  list: { hasKey: false },
  rotate: { hasKey: true },
  'end-grace': { hasKey: true },
  revoke: { hasKey: true },
} as const;

/** The command. */
export const key: Command = {
  summary: 'Creates, lists, rotates and revokes API keys.',
  help,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      ...remoteOptions,
      json: { type: 'boolean' },
      grace: { type: 'string' },
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
    const [action, which = '', ...more] = positionals;
    const known = Object.keys(actions).join(', ');
    if (action === undefined) throw new UsageError(`Name a subcommand: ${known}.`);
    if (!Object.hasOwn(actions, action))
      throw new UsageError(`Unknown subcommand "${action}". Use one of: ${known}.`);
    const { hasKey } = actions[action as keyof typeof actions];
    if (hasKey && which === '') throw new UsageError(`Name a key: sluice key ${action} KEY.`);
    if (!hasKey && which !== '')
      throw new UsageError(`Unexpected argument "${which}". Set the name of a key with --name.`);
    if (more.length > 0) throw new UsageError(`Unexpected argument "${more[0]}".`);
    const json = values.json === true;
    const work = workOf(action as keyof typeof actions, which, values, json);
    const access = remoteAccess(values);
    if (access === undefined) return withKeys(values.config, work);
    await withRemote(access, (request) => work(remoteKeys(request)));
    return 0;
  },
};

/** Reads the options before anything is opened, and returns what to do with the keys. */
function workOf(
  action: keyof typeof actions,
  which: string,
  values: CreateOptions & { readonly grace?: string | undefined },
  json: boolean,
): (keys: KeyAdministration) => Promise<void> {
  switch (action) {
    case 'create': {
      const wanted = newKey(values);
      return async (keys) => print(await keys.create(wanted), 'Created', json);
    }
    case 'rotate': {
      const graceMs = values.grace === undefined ? 0 : graceOf(values.grace);
      return async (keys) => print(await keys.rotate(which, graceMs), 'Rotated', json);
    }
    case 'list':
      return (keys) => list(keys, json);
    case 'end-grace':
      return async (keys) => {
        const ended = (await keys.endOldSecret(which)) !== undefined;
        console.log(
          json
            ? JSON.stringify({ ended })
            : ended
              ? 'The old value is invalid from now on.'
              : 'The key has no old value: it was not rotated with --grace, or its grace period has ended.',
        );
      };
    case 'revoke':
      return async (keys) => {
        const record = await keys.revoke(which);
        console.log(json ? JSON.stringify(record) : `Revoked the key "${record.name}" (${record.id}).`);
      };
  }
}

function report(error: Error): void {
  console.error(error.message);
}

async function withKeys(
  option: string | undefined,
  work: (keys: KeyAdministration) => Promise<void>,
): Promise<number> {
  const config = await loadConfig(option, { only: 'settings' });
  const stores = openStores(databaseOf(config), report);
  try {
    const keys = createApiKeys(stores, report);
    await keys.owners.load();
    await work(audited(localKeys(keys), keys, new AuditLog(stores)));
    return 0;
  } finally {
    await stores.close();
  }
}

function print({ key: record, value }: KeyWithValue, verb: string, json: boolean): void {
  if (json) {
    console.log(JSON.stringify({ key: record, value }));
    return;
  }
  console.error(`${verb} the key "${record.name}" (${record.id}). Its value is shown only this once:`);
  console.log(value);
}

async function list(keys: KeyAdministration, json: boolean): Promise<void> {
  const records = await keys.list();
  if (json) {
    console.log(JSON.stringify(records));
    return;
  }
  if (records.length === 0) {
    console.log('There are no keys. Create one with: sluice key create --name NAME');
    return;
  }
  const rows = records.map((record) => [
    record.id,
    record.name,
    `${record.prefix}…${record.suffix}`,
    record.models?.join(', ') ?? 'all models',
    limitsOf(record),
    stateOf(record),
    `created ${day(record.createdAt)}`,
    record.lastUsedAt === undefined ? 'never used' : `last used ${day(record.lastUsedAt)}`,
    record.note ?? '',
  ]);
  console.log(table(rows).join('\n'));
}

/** Returns a budget in the form of `--budget`. */
function budgetText({ unit, period, amount, hours, timeZone }: Budget): string {
  const most = unit === 'token' ? `${amount}tokens` : `${amount / 1e6}usd`;
  const zone = timeZone === undefined ? '' : `@${timeZone}`;
  return `${most}/${period === 'hours' ? `${hours}h` : period}${zone}`;
}

/** Describes the limits of a key on one line, in the words of the options that set them. */
function limitsOf(record: ListedKey): string {
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

function stateOf({ enabled, expiresAt }: ListedKey): string {
  if (!enabled) return 'disabled';
  if (expiresAt === undefined) return 'valid';
  return `${expiresAt <= Date.now() ? 'expired' : 'valid until'} ${day(expiresAt)}`;
}
