/** Makes a channel of a value that an administrator has not stored yet. */
import type { Log } from '../../log.ts';
import type { JsonValue } from '../../model/json.ts';
import type { Channel } from '../../sdk/call.ts';
import type { Format } from '../../sdk/format.ts';
import type { LoadedConfig } from '../config.ts';
import { makeChannel } from '../configured-channel.ts';
import type { RuntimeDefinitions } from './definitions.ts';
import { describeEntry } from './merge.ts';
import { resolveReferences } from './references.ts';
import { keepStored } from './destination.ts';
import { refused } from './refusals.ts';

/** A channel to be tried, and what it is made with. */
export interface ChannelTrial {
  readonly name: string;
  readonly value: JsonValue;
  /** The stored value of the name, whose secrets stand for those that are hidden in the value. */
  readonly stored: JsonValue | undefined;
  readonly file: LoadedConfig;
  readonly definitions: RuntimeDefinitions;
  readonly log: Log;
  readonly format: (name: string) => Format | undefined;
}

/** Makes a channel, passes it on, and closes it. Throws 400 with what is wrong with it. */
export async function tryChannel<Result>(
  { name, value, stored, file, definitions, log, format }: ChannelTrial,
  use: (channel: Channel) => Promise<Result>,
): Promise<Result> {
  const named = { kind: 'channel', name } as const;
  const where = describeEntry(named);
  const schema = await definitions.schemaOf(named, value);
  const kept = keepStored('channel', schema, value, stored);
  const resolved = await resolveReferences(kept, schema, file, where);
  if ('problem' in resolved) throw refused([resolved.problem]);
  const entry = await definitions.channelEntry(name, resolved.value);
  if (entry === undefined) throw refused([`${where}: unknown channel kind.`]);
  const closers: (() => void | Promise<void>)[] = [];
  const problems: string[] = [];
  try {
    const channel = makeChannel(entry, {
      settings: file.settings,
      where,
      problems,
      warnings: [],
      log,
      format,
      discovery: () => undefined,
      onClose: (job) => void closers.push(job),
    });
    if (channel === undefined) throw refused(problems);
    return await use(channel);
  } finally {
    for (const job of closers.toReversed())
      // oxlint-disable-next-line no-await-in-loop -- in the reverse order of what was opened
      await job();
  }
}
