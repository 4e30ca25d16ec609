/** Commands about channels, aliases and prices, in the config file and at run time. */
import type { JsonObject } from '../../model/json.ts';
import type { Row, Shown, Word } from './row.ts';
import { valueAt } from './text.ts';

const entryColumns = ['name', 'origin', 'state', 'value', 'version', 'updatedAt'] as const;
const isInFile = ({ origin }: Readonly<Record<string, unknown>>): boolean => origin === 'file';

type EntryKind = 'channel' | 'alias' | 'price';

/** Returns what the commands about one kind of entries have in common. `word` names an entry. */
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
      shown: { says: `Deleted the ${kind} "{name}". Use sluice ${kind} history and undo to restore it.` },
    },
    ...historyRows(kind),
  ];
}

/** Returns the commands about the history of one kind of entries. */
function historyRows(kind: EntryKind): readonly Row[] {
  /** True for a record of the history that is about entries of this kind. */
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
      summary: 'Restores what was before a change of the history',
      operation: 'undoConfig',
      words: [{ name: 'REVISION', field: 'id' }],
      undoes: isOwn,
      options: ['wait'],
      shown: { says: 'Restored what was before.' },
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
    summary: 'Sends a tiny chat call through a channel',
    operation: 'testChannel',
    words: [channel],
  },
  {
    group: 'channel',
    verb: 'try',
    summary: 'Sends a tiny chat call through a channel that is not stored; takes the options of create',
    operation: 'testConfig',
    words: [{ name: 'CHANNEL', field: 'name' }],
    options: ['model'],
    value: 'channel',
  },
  {
    group: 'channel',
    verb: 'reset',
    summary: 'Forgets the failures of a channel on all gateways: it is asked again at once',
    operation: 'resetChannel',
    words: [channel],
    shown: { says: 'The health of the channel "{channel.id}" is as new.' },
  },
  {
    group: 'channel',
    verb: 'order',
    summary: 'Puts the channels that were added at run time in an order: name all of them',
    operation: 'orderConfig',
    words: [{ name: 'CHANNEL', field: 'names', many: true }],
    options: ['wait'],
    shown: { says: 'The channels have the new order.' },
  },
  {
    group: 'channel',
    verb: 'types',
    summary: 'Lists the kinds of channels',
    operation: 'listChannelTypes',
    shown: { columns: ['types'] },
  },
  {
    group: 'channel',
    verb: 'options',
    summary: 'Prints the options of a kind of channel as a JSON Schema',
    operation: 'findChannelType',
    words: [{ name: 'TYPE', field: 'id' }],
  },
];

/** The commands. */
export const configRows: readonly Row[] = [
  ...channelRows,
  listRow('alias', 'Lists the other names of models'),
  ...entryRows('alias', 'ALIAS'),
  listRow('price', 'Lists the prices of models'),
  ...entryRows('price', 'MODEL'),
];
