/** Finds the formats, channel kinds and plugins of the installation and beside the config, and selects the plugins that run. */
import { basename, join, resolve } from 'node:path';
import type { ChannelKind, Plugin, PluginEntry } from '../sdk/define.ts';
import { isObject, type JsonObject } from '../model/json.ts';
import type { Format } from '../sdk/format.ts';
import type { LoadedConfig } from './config.ts';
import { discover, type Discovered } from './discover.ts';
import { home } from './installation/home.ts';

/** Loads every format that there is. Adds a sentence to `problems` for each that cannot be loaded. */
export async function loadFormats(problems: string[]): Promise<Format[]> {
  const { found, problems: broken } = await discover(join(home, 'core', 'formats'), 'folders');
  problems.push(...broken);
  return found.map(({ value }) => value as Format);
}

/** Returns the folder that comes with Sluice, and the one beside the config where that is another. */
function foldersOf(folder: 'plugins' | 'channels', root: string): readonly string[] {
  return [...new Set([resolve(home, folder), resolve(root, folder)])];
}

/** Returns the definitions in these folders. Of two with one name the last one wins, which is the operator's. */
async function discoverIn(folders: readonly string[], problems: string[]): Promise<Discovered[]> {
  const byName = new Map<string, Discovered>();
  for (const folder of folders) {
    const { found, problems: broken } = await discover(folder);
    problems.push(...broken);
    for (const one of found) byName.set(one.name, one);
  }
  return [...byName.values()];
}

/** Returns all channel kinds: those of Sluice, and those beside a config. Adds a problem for each file that is not a channel kind. */
export function findChannelKinds(root: string, problems: string[]): Promise<readonly ChannelKind[]> {
  return channelKindsIn(foldersOf('channels', root), problems);
}

/**
 * Finds one channel kind by its name, without loading the others. Returns undefined where there is none; a file that does not load is a
 * problem.
 */
export async function findChannelKind(
  root: string,
  name: string,
  problems: string[],
): Promise<ChannelKind | undefined> {
  const found: ChannelKind[] = [];
  for (const folder of foldersOf('channels', root)) {
    // oxlint-disable-next-line no-await-in-loop -- the operator's folder is the last, and wins
    const { found: definitions, problems: broken } = await discover(folder, undefined, name);
    problems.push(...broken);
    found.push(...definitions.map(({ value }) => value).filter(isChannelKind));
  }
  return found.at(-1);
}

/**
 * Finds what is wrong with the channel kinds beside a config, as sentences. Those that come with Sluice are not looked at: they would be a
 * tenth of all that a start loads, and a config imports those that it has.
 */
export async function checkOwnChannelKinds(root: string, problems: string[]): Promise<void> {
  await channelKindsIn([resolve(root, 'channels')], problems);
}

async function channelKindsIn(
  folders: readonly string[],
  problems: string[],
): Promise<readonly ChannelKind[]> {
  const kinds: ChannelKind[] = [];
  for (const { name, file: path, value } of await discoverIn(folders, problems)) {
    if (!isChannelKind(value)) {
      problems.push(
        `${path}: its default export is not a channel kind. Export defineChannel({ … }) by default.`,
      );
      continue;
    }
    if (value.spec.name !== name)
      problems.push(
        `${path}: its name is "${value.spec.name}". A channel kind must have the name of its file.`,
      );
    kinds.push(value);
  }
  return kinds;
}

/** Returns all plugins: those of Sluice, and those beside a config. Adds a problem for each file that is not a plugin. */
export async function findPlugins(root: string, problems: string[]): Promise<readonly Plugin[]> {
  const found = await discoverIn(foldersOf('plugins', root), problems);
  return found.map(({ value }) => value).filter(isPlugin);
}

function isPlugin(value: unknown): value is Plugin {
  return typeof value === 'function' && 'spec' in value && 'off' in value;
}

function isChannelKind(value: unknown): value is ChannelKind {
  return typeof value === 'function' && 'spec' in value && !('off' in value);
}

/** Plugins that run, and those that could. */
export interface ChosenPlugins {
  readonly chosen: readonly { readonly entry: PluginEntry; readonly where: string }[];
  /** Names of those that were found but wait to be listed. */
  readonly unlisted: ReadonlySet<string>;
}

/** Returns the discovered plugins with their defaults, adjusted by the config; listed ones first, in the config's order. */
export async function choosePlugins(config: LoadedConfig, problems: string[]): Promise<ChosenPlugins> {
  const file = basename(config.file);
  const chosen = new Map<string, { entry: PluginEntry; where: string }>();
  const unlisted = new Set<string>();
  for (const { at, entry } of config.plugins) {
    const { name } = entry.spec;
    const where = `${file}, ${at} "${name}"`;
    if (chosen.has(name)) problems.push(`${where}: the plugin is listed twice. Keep one of the entries.`);
    chosen.set(name, { entry, where });
  }
  for (const { name, file: path, value } of await discoverIn(foldersOf('plugins', config.root), problems)) {
    if (!isPlugin(value)) {
      problems.push(
        `${path}: its default export is not a plugin. Export definePlugin({ … }) by default, or begin the name with "_".`,
      );
      continue;
    }
    if (value.spec.name !== name)
      problems.push(`${path}: its name is "${value.spec.name}". A plugin must have the name of its file.`);
    if (chosen.has(value.spec.name)) continue;
    if (value.spec.whenListed === true) unlisted.add(value.spec.name);
    else chosen.set(value.spec.name, { entry: value() as PluginEntry, where: path });
  }
  const running = [...chosen.values()].filter(({ entry }) => entry.enabled);
  return {
    chosen: running.map(({ entry, where }) => ({
      entry: withOptions(entry, config.pluginOptions?.get(entry.spec.name)),
      where,
    })),
    unlisted,
  };
}

/** Adds run-time options to those of an entry, which win. Tables that both have are joined, so that each adds rows. */
function withOptions(entry: PluginEntry, added: JsonObject | undefined): PluginEntry {
  if (added === undefined || !isObject(entry.options)) return entry;
  const options: Record<string, unknown> = { ...added, ...entry.options };
  for (const [name, value] of Object.entries(added)) {
    const own = entry.options[name];
    if (isObject(own) && isObject(value)) options[name] = { ...value, ...own };
  }
  return { ...entry, options };
}
