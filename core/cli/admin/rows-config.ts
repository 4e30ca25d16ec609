/** Commands about channels, aliases and prices, in the config file and at run time. */
import type { JsonObject } from '../../model/json.ts';
import type { Row, Shown, Word } from './row.ts';
import { valueAt } from './text.ts';

const entryColumns = ['name', 'origin', 'state', 'value', 'version', 'updatedAt'] as const;
const isInFile = ({ origin }: Readonly<Record<string, unknown>>): boolean => origin === 'file';

type EntryKind = 'channel' | 'alias' | 'price';

/** Returns the commands that all kinds of entries have. `name`: name of an entry in the help. */
function entryRows(kind: EntryKind, name: string): readonly Row[] {
  const prefix = `${kind}:`;
  const aKind = kind === 'alias' ? 'an alias' : `a ${kind}`;
  const entry: Word = { name, field: 'id' };
  const value: Partial<Row> =
    kind === 'alias' ? {} : { value: kind === 'channel' ? ('channel' as const) : ('object' as const) };
  const further: readonly Word[] = kind === 'alias' ? [{ name: 'MODEL', field: 'value' }] : [];
  const says = (did: string): Shown => ({ says: `${did} the ${kind} "{entry.name}".` });
  return [
    {
      group: kind,
      verb: 'show',
      summary: `Shows one ${kind} as it is configured, without secrets`,
      operation: 'findConfig',
      prefix,
      words: [entry],
    },
    {
      group: kind,
      verb: 'create',
      summary: `Adds ${aKind} at run time`,
      operation: 'createConfig',
      fixed: { kind },
      words: [{ name, field: 'name' }, ...further],
      options: ['enabled', 'wait'],
      ...value,
      shown: says('Created'),
    },
    {
      group: kind,
      verb: 'update',
      summary: `Changes ${aKind} that was added at run time`,
      operation: 'updateConfig',
      prefix,
      words: [entry, ...further],
      options: ['wait'],
      ...value,
      shown: says('Changed'),
    },
    ...([true, false] as const).map((on): Row => ({
      group: kind,
      verb: on ? 'enable' : 'disable',
      summary: `${on ? 'Enables' : 'Disables'} ${aKind}`,
      operation: (found) =>
        kind === 'channel' && isInFile(found)
          ? `${on ? 'enable' : 'disable'}Channel`
          : `${on ? 'enable' : 'disable'}Config`,
      prefix,
      words: [entry],
      options: [],
      shown: { says: `${on ? 'Enabled' : 'Disabled'} the ${kind} "{name}".` },
    })),
    {
      group: kind,
      verb: 'delete',
      summary: `Deletes ${aKind} that was added at run time`,
      operation: 'deleteConfig',
      prefix,
      words: [entry],
      options: ['wait'],
      asks: `Delete the ${kind} "{name}"?`,
      shown: { says: `Deleted the ${kind} "{name}". To restore it use sluice ${kind} history and undo.` },
    },
    ...historyRows(kind),
  ];
}

/** Returns the commands about the history of one kind of entries. */
function historyRows(kind: EntryKind): readonly Row[] {
  /** Returns true for a record of the history that is about entries of this kind. */
  const isOwn = ({ changes, order }: JsonObject): boolean =>
    (kind === 'channel' && order !== undefined) ||
    (Array.isArray(changes) && changes.some((one) => String(valueAt(one, 'id')).startsWith(`${kind}:`)));
  return [
    {
      group: kind,
      verb: 'history',
      summary: `Lists the changes of ${kind === 'price' ? 'prices' : kind === 'alias' ? 'aliases' : 'channels'}, newest first`,
      operation: 'listConfigHistory',
      options: [],
      shown: {
        list: 'records',
        columns: ['revision', 'at', 'actor', 'action', 'changes'],
        keeps: isOwn,
      },
    },
    {
      group: kind,
      verb: 'undo',
      summary: 'Reverts a change of the history',
      operation: 'undoConfig',
      words: [{ name: 'REVISION', field: 'id' }],
      undoes: isOwn,
      options: ['wait'],
      shown: { says: 'Reverted the change.' },
    },
  ];
}

/** Returns the command that lists the entries of a kind. */
function listRow(kind: 'alias' | 'price', summary: string): Row {
  return {
    group: kind,
    verb: 'list',
    summary,
    operation: 'listConfig',
    fixed: { kind },
    options: ['origin', 'search'],
    shown: { list: 'entries', columns: entryColumns },
  };
}

const channel: Word = { name: 'CHANNEL', field: 'id' };

const channelRows: readonly Row[] = [
  {
    group: 'channel',
    verb: 'list',
    summary: 'Lists all channels with their health',
    operation: 'listChannels',
    shown: {
      list: 'channels',
      columns: ['id', 'kind', 'enabled', 'standing', 'models', 'failures', 'lastHour.calls'],
    },
  },
  ...entryRows('channel', 'CHANNEL'),
  {
    group: 'channel',
    verb: 'test',
    summary: 'Tests a channel with a small chat call',
    operation: 'testChannel',
    words: [channel],
  },
  {
    group: 'channel',
    verb: 'try',
    summary: 'Tests a channel with a small chat call without storing it; has the options of create',
    operation: 'testConfig',
    words: [{ name: 'CHANNEL', field: 'name' }],
    options: ['model'],
    value: 'channel',
  },
  {
    group: 'channel',
    verb: 'reset',
    summary: 'Closes the circuit breaker of a channel on all gateways: calls use it again at once',
    operation: 'resetChannel',
    words: [channel],
    shown: { says: 'Reset the health of the channel "{channel.id}".' },
  },
  {
    group: 'channel',
    verb: 'order',
    summary: 'Sets the order of all run-time channels: name each of them',
    operation: 'orderConfig',
    words: [{ name: 'CHANNEL', field: 'names', many: true }],
    options: ['wait'],
    shown: { says: 'Changed the order of the channels.' },
  },
  {
    group: 'channel',
    verb: 'types',
    summary: 'Lists the channel kinds',
    operation: 'listChannelTypes',
    shown: { columns: ['types'] },
  },
  {
    group: 'channel',
    verb: 'options',
    summary: 'Prints the options of a channel kind as JSON Schema',
    operation: 'findChannelType',
    words: [{ name: 'TYPE', field: 'id' }],
  },
];

/** The commands. */
export const configRows: readonly Row[] = [
  ...channelRows,
  listRow('alias', 'Lists model aliases'),
  ...entryRows('alias', 'ALIAS'),
  listRow('price', 'Lists model prices'),
  ...entryRows('price', 'MODEL'),
];
