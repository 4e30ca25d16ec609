import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { isAddressRange } from '../model/addresses.ts';
import type { ChannelEntry, PluginEntry } from '../sdk/define.ts';
import { fetchSchema } from '../settings/fetch.ts';
import { realtimeSchema } from '../settings/realtime.ts';
import { loadModule } from './installation/load.ts';
import { logLevels } from '../log.ts';
import { pricesSchema } from '../money/prices/index.ts';
import { overloadSchema, workersSchema } from '../settings/processes.ts';
import { healthSchema, routingSchema } from '../settings/routing.ts';

type Falsy = false | null | undefined | '' | 0;

/** Everything an operator can set, with its defaults. Times are in milliseconds, sizes in bytes. */
export const settingsSchema = z.strictObject({
  listen: z
    .strictObject({
      port: z.int().min(0).max(65_535).default(8080).describe('0 takes any free port'),
      host: z.string().min(1).default('127.0.0.1').describe('0.0.0.0 listens on every address'),
    })
    .prefault({}),
  /**
   * `sqlite:PATH`, `sqlite::memory:` or `postgres://USER:PASSWORD@HOST/DATABASE`. Default: `sluice.db` in the data folder. A server that
   * says nothing for 0.9 seconds counts as gone; `?answer_timeout=SECONDS` gives a slow one more.
   */
  database: z
    .string()
    .regex(
      /^(sqlite:|postgres(ql)?:\/\/)./i,
      'must be "sqlite:" and the path of a file, "sqlite::memory:", or a postgres:// URL',
    )
    .optional(),
  /** Folder for the database and what else must survive a restart. */
  data: z.string().min(1).default('./data'),
  /** The first API key instead of a random one, for containers and scripts. */
  bootstrapKey: z.string().min(20, 'must have at least 20 characters').optional(),
  log: z.strictObject({ level: z.enum(logLevels).default('info') }).prefault({}),
  /** Name the misbehaving plugin when a handler breaks the rules. Default: on unless NODE_ENV is production. */
  checks: z.boolean().optional(),
  limits: z
    .strictObject({
      body: z
        .int()
        .min(1024)
        .default(128 * 1024 * 1024)
        .describe('largest request body, after decompression'),
      depth: z.int().min(8).max(1000).default(128).describe('deepest nesting of a JSON body'),
      values: z
        .int()
        .min(1000)
        .default(500_000)
        .describe('most values in a JSON body; so many members of one object take about a second'),
      header: z
        .int()
        .min(8192)
        .default(64 * 1024)
        .describe('largest request header'),
      audio: z
        .int()
        .min(1024)
        .default(25 * 1024 * 1024)
        .describe('largest recording'),
      image: z
        .int()
        .min(1024)
        .default(50 * 1024 * 1024)
        .describe('largest image of a form'),
      video: z
        .int()
        .min(1024)
        .default(100 * 1024 * 1024)
        .describe('largest file of a form for videos'),
      files: z.int().min(1).max(1000).default(20).describe('most files of a form'),
      fields: z.int().min(1).max(10_000).default(200).describe('most fields of a form that are no files'),
      inMemory: z
        .int()
        .min(0)
        .default(256 * 1024)
        .describe('size beyond which a file of a form goes to a temporary file'),
    })
    .prefault({}),
  timeouts: z
    .strictObject({
      headers: z.int().min(100).default(60_000).describe('for the client to send its headers'),
      body: z.int().min(100).default(300_000).describe('for the client to send its whole request'),
      connect: z.int().min(50).default(10_000).describe('for a connection to a provider'),
      idle: z.int().min(50).default(300_000).describe('longest silence of a provider'),
      keepAlive: z
        .int()
        .min(20)
        .default(15_000)
        .describe('silence towards the client after which something harmless is sent'),
      stalled: z.int().min(50).default(60_000).describe('longest time a client may leave its buffer full'),
      socket: z
        .int()
        .min(50)
        .default(3_600_000)
        .describe('longest life of a WebSocket; its running calls may end first'),
      drain: z.int().min(0).default(30_000).describe('for open calls to finish when the gateway stops'),
      reload: z
        .int()
        .min(0)
        .max(86_400_000)
        .default(600_000)
        .describe('for open calls to finish in a process that was replaced by a reload'),
    })
    .prefault({}),
  routing: routingSchema,
  health: healthSchema,
  workers: workersSchema,
  overload: overloadSchema,
  fetch: fetchSchema,
  realtime: realtimeSchema,
  /** State that many gateways share and may lose: rate windows, slots. `memory:` or `redis://…`. */
  shared: z
    .strictObject({
      url: z
        .string()
        .regex(/^(memory:|rediss?:\/\/.)/i, 'must be "memory:" or a redis:// URL')
        .refine(URL.canParse, 'is not a URL: passwords are written with % codes')
        .default('memory:'),
      whenDown: z
        .enum(['refuse', 'local'])
        .default('local')
        .describe('calls with limits while it is gone: refused, or counted by each process for itself'),
    })
    .prefault({}),
  /** Addresses and CIDR ranges of proxies whose X-Forwarded-For is believed. */
  trustedProxies: z
    .array(z.string().refine(isAddressRange, 'must be an IP address or a CIDR range, such as 10.0.0.0/8'))
    .default([]),
  /** Dollars per million tokens, and other dimensions, by model name or pattern. */
  prices: pricesSchema,
  /** The password of the dashboard and the admin API; without one a random one is made at the first start. */
  adminPassword: z.string().min(12, 'must have at least 12 characters').optional(),
  /** `exclusive`: chat completions with both temperature and top_p away from 1 are refused. `forward`: they pass. */
  sampling: z.enum(['exclusive', 'forward']).default('exclusive'),
});

/** The settings in force. */
export type Settings = z.output<typeof settingsSchema>;

/**
 * What `gateway.config.ts` exports by default, through `defineConfig`.
 *
 * @example
 * const config: GatewayConfig = { listen: { port: 8080 }, channels: [demo()] };
 */
export type GatewayConfig = z.input<typeof settingsSchema> & {
  /** Adjusts discovered plugins: `quota({ … })`, `logging.off()`. Order here is order within a stage. */
  readonly plugins?: readonly (PluginEntry | Falsy)[];
  /** The providers, each made by a channel kind: `anthropic({ key: env('ANTHROPIC_API_KEY') })`. Falsy entries are passed over. */
  readonly channels?: readonly (ChannelEntry | Falsy)[];
};

/** A config that was found and read. */
export interface LoadedConfig {
  /** Absolute path. */
  readonly file: string;
  /** Where `plugins/`, `channels/` and relative paths are looked for. */
  readonly root: string;
  readonly settings: Settings;
  /** Entries with their place in the file, for messages: `plugins[0]`. */
  readonly plugins: readonly { readonly at: string; readonly entry: PluginEntry }[];
  readonly channels: readonly { readonly at: string; readonly entry: ChannelEntry }[];
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

/**
 * A variable of the environment or of `.env`; empty counts as not set.
 *
 * @example
 * openai({ key: env('OPENAI_API_KEY'), baseUrl: env('OPENAI_URL', 'https://api.openai.com/v1') })
 */
export function env(name: string): string | undefined;
export function env(name: string, fallback: string): string;
export function env(name: string, fallback?: string): string | undefined {
  return process.env[name]?.trim() || fallback;
}

/** Reads `.env` beside the config when there is one; variables that are already set win. */
export function loadEnvironmentFile(root: string): void {
  const file = join(root, '.env');
  if (existsSync(file)) process.loadEnvFile(file);
}

/** True when NODE_ENV says that this is production. */
export function isProduction(): boolean {
  return process.env.NODE_ENV === 'production';
}

/** Where the config is: `--config`, else SLUICE_CONFIG, else `gateway.config.ts` in the current folder. */
export function configFile(option: string | undefined): string {
  return resolve(option ?? env('SLUICE_CONFIG', 'gateway.config.ts'));
}

/** Finds, imports and checks a config. Throws ConfigError with all its problems at once. */
export async function loadConfig(option?: string): Promise<LoadedConfig> {
  const { exported, file } = await importConfig(option);
  return readConfig(exported, file);
}

/** Finds and imports a config file, and the `.env` beside it. Throws ConfigError when there is none or it does not load. */
export async function importConfig(
  option?: string,
): Promise<{ readonly exported: unknown; readonly file: string }> {
  const file = configFile(option);
  if (!existsSync(file)) {
    throw new ConfigError([
      `${file} does not exist. Name the file with --config or SLUICE_CONFIG, or create it: the README shows one.`,
    ]);
  }
  loadEnvironmentFile(dirname(file));
  try {
    return { exported: (await loadModule(file)).default, file };
  } catch (error) {
    throw new ConfigError([
      `${file} does not load: ${error instanceof Error ? error.message : String(error)}`,
    ]);
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
  const parsed = settingsSchema.safeParse(settings);
  if (!parsed.success) problems.push(...sentences(parsed.error, name, sources));
  if (parsed.data?.database === 'sqlite::memory:' && parsed.data.workers !== 1)
    problems.push(
      `${name}: several workers cannot share a database in memory. Set "database" to a file or a server, or "workers" to 1.`,
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

/** zod's issues as sentences that name file, entry and option. `sources` names the variables that options were read from. */
export function sentences(
  error: z.ZodError,
  where: string,
  sources: ReadonlyMap<string, string> = new Map(),
): string[] {
  return error.issues.map((issue) => {
    const path = issue.path.join('.');
    if (issue.code === 'unrecognized_keys') {
      const place = path === '' ? '' : ` in ${path}`;
      return `${where}: unknown option ${issue.keys.map((key) => `"${key}"`).join(', ')}${place}. Check the spelling, or remove it.`;
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

/** The environment's SLUICE_* variables over what the file says, and which option came from which variable. */
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
    settings[group] =
      member === undefined ? value : { ...(typeof before === 'object' ? before : {}), [member]: value };
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

/** What is wrong with a definition that no compiler has seen, as a sentence. */
function flawOf(entry: object, kind: string): string | undefined {
  const spec = 'spec' in entry ? entry.spec : undefined;
  if (typeof spec !== 'object' || spec === null || !('name' in spec) || typeof spec.name !== 'string')
    return `the ${kind} has no name. Whoever made it must give define${kind === 'plugin' ? 'Plugin' : 'Channel'} one.`;
  if (!('setup' in spec) || typeof spec.setup !== 'function')
    return `the ${kind} "${spec.name}" has no function "setup". Whoever made it must give it one.`;
  return undefined;
}

/** What stands in the place of something else, for a sentence. */
function inWords(value: unknown): string {
  if (typeof value === 'function') return `the function "${value.name}"`;
  if (typeof value !== 'object' || value === null) return `a ${typeof value}`;
  if (Array.isArray(value)) return 'a list';
  if ('kind' in value && typeof value.kind === 'string') return `a ${value.kind}`;
  const members = Object.keys(value).slice(0, 5);
  return members.length === 0 ? 'an empty object' : `an object with ${members.join(', ')}`;
}
