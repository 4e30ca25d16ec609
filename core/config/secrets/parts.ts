/** Parts of a config in which references to secrets may stand: its settings, and the options of plugins and channels. */
import { z } from 'zod';
import { isObject } from '../../model/json.ts';
import type { ChannelEntry, PluginEntry } from '../../sdk/define.ts';
import {
  parseSecretReference,
  referencesIn,
  replaceReferences,
  type SecretReference,
} from '../../settings/secret-reference.ts';
import { walkSecrets } from '../../settings/secret-walk.ts';
import { optionsSchema } from '../channel-options.ts';
import { mayBeReference } from '../runtime-config/secret-values.ts';
import { strictOptions } from '../strict-options.ts';
import type { Secrets } from './index.ts';

/** A part of a config with the schema of its value. */
export interface Part {
  readonly value: unknown;
  readonly schema: z.ZodType;
  /** File, place and name, for sentences. */
  readonly where: string;
  /** Returns the part with another value. */
  placed(value: unknown): unknown;
}

/** Returns the options of an entry of `plugins`, of whatever form it is. */
export function pluginPart(entry: unknown, file: string, index: number): Part {
  const where = `${file}, plugins[${index}]`;
  if (!hasSpec(entry)) return { value: entry, schema: z.unknown(), where, placed: () => entry };
  const { spec, options } = entry as unknown as PluginEntry;
  return {
    value: options,
    schema: strictOptions(spec.options),
    where: `${where} "${spec.name}"`,
    placed: (value) => ({ ...entry, options: value }),
  };
}

/** Returns the options of an entry of `channels`, of whatever form it is. */
export function channelPart(entry: unknown, file: string, index: number): Part {
  const where = `${file}, channels[${index}]`;
  if (!hasSpec(entry)) return { value: entry, schema: z.unknown(), where, placed: () => entry };
  const { spec, options } = entry as unknown as ChannelEntry;
  return {
    // As in a run-time entry, so that the same places may have references.
    value: { options },
    schema: z.object({ options: optionsSchema(entry as unknown as ChannelEntry) }),
    where: `${where} "${options.id ?? spec.name}"`,
    placed: (value) => ({ ...entry, ...(value as object) }),
  };
}

/** Returns true for an entry that what `definePlugin` or `defineChannel` returned has made. */
function hasSpec(entry: unknown): entry is Readonly<Record<string, unknown>> {
  return isObject(entry) && isObject(entry['spec']) && isObject(entry['options']);
}

/** Resolves each element of a list, whatever else a config has in its place. */
export async function eachOf(
  list: unknown,
  resolve: (entry: unknown, index: number) => Promise<unknown>,
): Promise<unknown> {
  return Array.isArray(list) ? Promise.all(list.map(resolve)) : list;
}

/** Options of {@link withSecrets}. */
interface Resolving {
  readonly problems: string[];
  readonly signal?: AbortSignal;
  /** Returns why a reference may not stand in the part; undefined where it may. */
  readonly refuse?: (reference: SecretReference) => string | undefined;
}

/** Returns a part with secrets in place of its references. Those that cannot be read stay, and are problems. */
export async function withSecrets(
  { value, schema, where, placed }: Part,
  secrets: Secrets,
  { problems, signal, refuse = () => undefined }: Resolving,
): Promise<unknown> {
  const found = new Map<string, string>();
  walkSecrets(schema, value, (part, location) => {
    if (typeof part !== 'string') return;
    const option = location.path.replace(/^options\./, '');
    for (const text of referencesIn(part))
      if (mayBeReference(location)) found.set(text, option);
      else
        problems.push(
          `${where}: option "${option}" is not a secret option and would show the value. Remove the reference "${text}".`,
        );
  });
  if (found.size === 0) return placed(value);
  const texts = new Map<string, string>();
  const read = async (text: string) => {
    const reference = parseSecretReference(text);
    if (reference === undefined) return { problem: 'it is not a reference to a secret' };
    const problem = refuse(reference);
    return problem === undefined ? secrets.get(reference, signal) : { problem };
  };
  const all = await Promise.all(
    [...found].map(async ([text, option]) => ({ text, option, got: await read(text) })),
  );
  for (const { text, option, got } of all)
    if ('text' in got) texts.set(text, got.text);
    else problems.push(`${where}: option "${option}": the secret "${text}" cannot be used: ${got.problem}.`);
  return placed(
    walkSecrets(schema, value, (part) =>
      typeof part === 'string' && referencesIn(part).length > 0
        ? replaceReferences(part, (reference) => texts.get(reference) ?? '')
        : undefined,
    ),
  );
}
