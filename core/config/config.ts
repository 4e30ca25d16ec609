/** Loads and checks the config file: imports it, applies SLUICE_* variables, and reports every problem as a sentence. */
import { existsSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { z } from 'zod';
import type { ChannelEntry, PluginEntry } from '../sdk/define.ts';
import { loadModule } from './installation/load.ts';
import { LoadError } from './installation/load-error.ts';
import { maskSecrets } from '../log.ts';
import type { JsonObject } from '../model/json.ts';
import { settingsSchema, type Settings } from '../settings/index.ts';
import { hideSecretsIn } from '../settings/secret.ts';
import { loadEnvironmentFile, env } from '../settings/environment.ts';
import type { Secrets } from './secrets/index.ts';

/** A config that was found and read. */
export interface LoadedConfig {
  /** Absolute path. */
  readonly file: string;
  /** Folder of `plugins/` and `channels/`, and base of relative paths. */
  readonly root: string;
  readonly settings: Settings;
  /** Entries with their place in the file, for messages: `plugins[0]`. */
  readonly plugins: readonly { readonly at: string; readonly entry: PluginEntry }[];
  /** `where` names an entry that the file does not have: `the run-time channel "eu"`. */
  readonly channels: readonly {
    readonly at: string;
    readonly where?: string;
    readonly entry: ChannelEntry;
  }[];
  /** Run-time options of plugins by plugin name. The file has precedence. */
  readonly pluginOptions?: ReadonlyMap<string, JsonObject>;
  /** Reads the secrets that run-time entries refer to. Absent: variables and files alone are read. */
  readonly secrets?: Secrets;
}

/** Wrong configuration: every problem as a sentence with file, entry, option and what to do. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

/** Returns the path of the config: `--config`, else SLUICE_CONFIG, else `gateway.config.ts` in the current folder. */
export function configFile(option: string | undefined): string {
  return resolve(option ?? env('SLUICE_CONFIG', 'gateway.config.ts'));
}

/** Finds and imports a config file, and the `.env` beside it. Throws ConfigError when there is none or it does not load. */
export async function importConfig(
  option?: string,
): Promise<{ readonly exported: unknown; readonly file: string }> {
  const file = configFile(option);
  if (!existsSync(file)) {
    throw new ConfigError([
      `${file} does not exist. Set its path with --config or SLUICE_CONFIG, or create it: docs/guides/configure.md has an example.`,
    ]);
  }
  loadEnvironmentFile(dirname(file));
  try {
    return { exported: (await loadModule(file)).default, file };
  } catch (error) {
    if (!(error instanceof LoadError)) throw error;
    throw new ConfigError([`${error.location} cannot be loaded: ${maskSecrets(error.message)}`]);
  }
}

/** Checks what a config file exports. `file` names it in messages and is where relative paths begin. Throws ConfigError. */
export function readConfig(exported: unknown, file: string): LoadedConfig {
  const { config, problems } = inspectConfig(exported, file);
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** Checks what a config file exports. The config holds all that is sound, with defaults in place of settings that are not. */
export function inspectConfig(
  exported: unknown,
  file: string,
): { readonly config: LoadedConfig; readonly problems: readonly string[] } {
  const name = basename(file);
  const problems: string[] = [];
  const isConfig = typeof exported === 'object' && exported !== null && !Array.isArray(exported);
  if (!isConfig)
    problems.push(
      `${name}: the default export is not a configuration. Write: export default defineConfig({ … }).`,
    );
  const { plugins, channels, ...rest } = (isConfig ? exported : {}) as Record<string, unknown>;
  const { settings, sources } = withEnvironment(rest);
  hideSecretsIn(settingsSchema, settings);
  const parsed = settingsSchema.safeParse(settings);
  if (!parsed.success) problems.push(...sentences(parsed.error, name, sources));
  const database = parsed.data?.database;
  if (database === 'sqlite::memory:' && parsed.data?.workers !== 1)
    problems.push(
      `${name}: several workers cannot share a database in memory. Set "database" to a file or a server, or "workers" to 1.`,
    );
  if (database === 'sqlite::memory:' && settings['spareWorker'] === true)
    problems.push(
      `${name}: a spare worker cannot share a database in memory. Set "database" to a file or a server, or "spareWorker" to false.`,
    );
  const config: LoadedConfig = {
    file,
    root: dirname(file),
    settings: parsed.data ?? settingsSchema.parse({}),
    plugins: readEntries<PluginEntry>(plugins, 'plugins', 'plugin', name, problems),
    channels: readEntries<ChannelEntry>(channels, 'channels', 'channel', name, problems),
  };
  return { config, problems };
}

/** Returns zod's issues as sentences that name file, entry and option. `sources` names the variables that options were read from. */
export function sentences(
  error: z.ZodError,
  where: string,
  sources: ReadonlyMap<string, string> = new Map(),
): string[] {
  return error.issues.map((issue) => {
    const path = issue.path.join('.');
    if (issue.code === 'unrecognized_keys') {
      const location = path === '' ? '' : ` in ${path}`;
      return `${where}: unknown option ${issue.keys.map((key) => `"${key}"`).join(', ')}${location}. Check the spelling, or remove it.`;
    }
    const variable = sources.get(path);
    if (variable !== undefined)
      return `${variable}, which sets "${path}": ${issue.message}. Correct the variable, or unset it.`;
    return `${where}: option "${path || '(all)'}": ${issue.message}.`;
  });
}

/** Variables that stand above the file, and the options they set. Beside them there are SLUICE_CONFIG, and SLUICE_SECRET of state/sealer.ts. */
const variables = {
  SLUICE_PORT: 'listen.port',
  SLUICE_HOST: 'listen.host',
  SLUICE_SHARED: 'shared.url',
  SLUICE_ADMIN_PASSWORD: 'adminPassword',
  SLUICE_LOG: 'log.level',
  SLUICE_DATABASE: 'database',
  SLUICE_DATA: 'data',
  SLUICE_BOOTSTRAP_KEY: 'bootstrapKey',
} as const;

/** Applies the SLUICE_* environment variables to the settings, and records which option came from which variable. */
function withEnvironment(given: Record<string, unknown>): {
  readonly settings: Record<string, unknown>;
  readonly sources: ReadonlyMap<string, string>;
} {
  const settings = { ...given };
  const sources = new Map<string, string>();
  for (const [variable, path] of Object.entries(variables)) {
    const text = env(variable);
    if (text === undefined) continue;
    // Anything but digits stays a text, and is refused as one.
    const value = path === 'listen.port' && /^\d+$/.test(text) ? Number(text) : text;
    const [group = '', member] = path.split('.');
    const before = settings[group];
    // Replaces only the address. The other connection options of the config stay.
    const hasAddress = path === 'database' && typeof before === 'object';
    settings[group] = hasAddress
      ? { ...before, url: value }
      : member === undefined
        ? value
        : { ...(typeof before === 'object' ? before : {}), [member]: value };
    sources.set(path, variable);
  }
  return { settings, sources };
}

function readEntries<E extends { readonly kind: string }>(
  value: unknown,
  list: string,
  kind: E['kind'],
  file: string,
  problems: string[],
): { readonly at: string; readonly entry: E }[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    problems.push(`${file}: "${list}" must be a list.`);
    return [];
  }
  const entries: { at: string; entry: E }[] = [];
  value.forEach((item: unknown, index) => {
    if (!item) return;
    const at = `${list}[${index}]`;
    if (typeof item === 'function' && 'spec' in item) {
      problems.push(
        `${file}, ${at}: the ${kind} is not called. Write it with parentheses: ${(item.spec as { name: string }).name}().`,
      );
    } else if (typeof item === 'object' && 'kind' in item && item.kind === kind) {
      const flaw = flawOf(item, kind);
      if (flaw === undefined) entries.push({ at, entry: item as E });
      else problems.push(`${file}, ${at}: ${flaw}`);
    } else {
      problems.push(
        `${file}, ${at}: not a ${kind}, but ${inWords(item)}. Import one from ${list}/, or from a package, and call it with its options.`,
      );
    }
  });
  return entries;
}

/** Returns the problem of a definition from JavaScript, which no compiler has checked. */
function flawOf(entry: object, kind: string): string | undefined {
  const spec = 'spec' in entry ? entry.spec : undefined;
  if (typeof spec !== 'object' || spec === null || !('name' in spec) || typeof spec.name !== 'string')
    return `the ${kind} has no name. Its author must pass one to define${kind === 'plugin' ? 'Plugin' : 'Channel'} one.`;
  if (!('setup' in spec) || typeof spec.setup !== 'function')
    return `the ${kind} "${spec.name}" has no function "setup". Its author must add one.`;
  return undefined;
}

/** Describes a value that is no definition, for a sentence. */
function inWords(value: unknown): string {
  if (typeof value === 'function') return `the function "${value.name}"`;
  if (typeof value !== 'object' || value === null) return `a ${typeof value}`;
  if (Array.isArray(value)) return 'a list';
  if ('kind' in value && typeof value.kind === 'string') return `a ${value.kind}`;
  const members = Object.keys(value).slice(0, 5);
  return members.length === 0 ? 'an empty object' : `an object with ${members.join(', ')}`;
}
