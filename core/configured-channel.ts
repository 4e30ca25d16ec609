import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Channel, ChannelKey, SystemPrompt } from './channel.ts';
import { sentences, type Settings } from './config.ts';
import type { ChannelEntry, ChannelOptions, ChannelParts } from './define.ts';
import type { Format } from './formats/format.ts';
import { createHttpClient } from './http/upstream.ts';
import { hideSecret, type Log } from './log.ts';
import type { ModelTraits } from './model/traits.ts';
import { matchesModel } from './state/api-keys.ts';

const milliseconds = z.int().min(50);

/** What every channel kind takes. */
const commonOptions = z.object({
  id: z.string().min(1).optional(),
  key: z.string().optional(),
  keys: z.array(z.string().min(1)).min(1).optional(),
  baseUrl: z.url({ protocol: /^https?$/ }).optional(),
  models: z
    .union([z.array(z.string().min(1)).min(1), z.record(z.string().min(1), z.string().min(1))])
    .optional(),
  priority: z.number().optional(),
  weight: z.number().positive().optional(),
  headers: z
    .strictObject({
      set: z.record(z.string().min(1), z.string()).optional(),
      remove: z.array(z.string().min(1)).optional(),
    })
    .optional(),
  body: z
    .strictObject({
      set: z.record(z.string().min(1), z.json()).optional(),
      remove: z.array(z.string().min(1)).optional(),
    })
    .optional(),
  systemPrompt: z
    .union([
      z.string().min(1),
      z.strictObject({
        text: z.string().min(1),
        place: z.enum(['before', 'after', 'instead']).optional(),
      }),
    ])
    .optional(),
  proxy: z.url({ protocol: /^https?$/ }).optional(),
  timeouts: z
    .strictObject({
      connect: milliseconds.optional(),
      idle: milliseconds.optional(),
      firstToken: milliseconds.optional(),
      attempt: milliseconds.optional(),
    })
    .optional(),
  tls: z
    .strictObject({
      ca: z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]).optional(),
      cert: z.string().min(1).optional(),
      key: z.string().min(1).optional(),
      servername: z.string().min(1).optional(),
      verify: z.boolean().optional(),
    })
    .optional(),
  traits: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
});

/** What a channel is made with besides its entry. */
export interface Making {
  readonly settings: Settings;
  /** File, place and name of the entry, for sentences about it. */
  readonly where: string;
  /** Takes the sentences. */
  readonly problems: string[];
  readonly log: Log;
  readonly format: (name: string) => Format | undefined;
  readonly onClose: (job: () => void | Promise<void>) => void;
}

/** A channel of the config, checked and set up; undefined when something is wrong with it, which `problems` then tells. */
export function makeChannel(entry: ChannelEntry, making: Making): Channel | undefined {
  const { settings, where, problems, log, format, onClose } = making;
  const { spec } = entry;
  const schema = z.strictObject({ ...commonOptions.shape, ...spec.options?.shape });
  const parsed = schema.safeParse(entry.options);
  if (!parsed.success) {
    problems.push(...sentences(parsed.error, where));
    return undefined;
  }
  const options = parsed.data as ChannelOptions & Record<string, unknown>;
  const keys = keysOf(options);
  for (const key of keys) hideSecret(key);
  if (spec.needsKey !== false && keys.length === 0) {
    problems.push(`${where}: key is empty. Set the variable it is read from, or remove the channel.`);
    return undefined;
  }
  const models = options.models ?? spec.models;
  if (models === undefined) {
    problems.push(`${where}: models is missing. Name the models that this channel serves: models: ['…'].`);
    return undefined;
  }
  const http = createHttpClient({
    connectTimeout: options.timeouts?.connect ?? settings.timeouts.connect,
    idleTimeout: options.timeouts?.idle ?? settings.timeouts.idle,
  });
  onClose(() => http.close());
  let parts: ChannelParts;
  try {
    parts = spec.setup(options as Parameters<typeof spec.setup>[0], {
      log: log.child({ channel: options.id ?? spec.name }),
      keys,
      http,
      format,
      onClose,
    });
  } catch (error) {
    problems.push(`${where}: setup failed: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
  return channelOf(spec.name, { options, models, keys, parts });
}

/** The keys of an entry, each once. */
function keysOf({ key, keys }: ChannelOptions): readonly string[] {
  const all = [key, ...(keys ?? [])].map((one) => one?.trim());
  return [...new Set(all.filter((one) => one !== undefined && one !== ''))] as string[];
}

interface ChannelMembers {
  readonly options: ChannelOptions;
  readonly models: readonly string[] | Readonly<Record<string, string>>;
  readonly keys: readonly string[];
  readonly parts: ChannelParts;
}

function channelOf(kind: string, { options, models, keys, parts }: ChannelMembers): Channel {
  const names: readonly string[] = Array.isArray(models) ? models : Object.keys(models);
  const map = Array.isArray(models) ? undefined : new Map(Object.entries(models));
  const cache = new Map<string, ModelTraits>();
  const patterns = names.filter((name) => name.includes('*')).map((name) => [name] as const);
  const overrides = Object.entries(options.traits ?? {}).map(([name, traits]) => ({
    pattern: [name],
    traits,
  }));
  const systemPrompt = systemPromptOf(options);
  const { firstToken, attempt } = options.timeouts ?? {};
  return {
    id: options.id ?? kind,
    kind,
    models: names,
    priority: options.priority ?? 0,
    weight: options.weight ?? 1,
    keys: channelKeys(keys),
    ...(systemPrompt === undefined ? {} : { systemPrompt }),
    ...(firstToken === undefined ? {} : { firstTokenTimeout: firstToken }),
    ...(attempt === undefined ? {} : { attemptTimeout: attempt }),
    codecs: parts.codecs ?? {},
    speaks: parts.speaks,
    upstreamModel(model) {
      const mapped = map?.get(model);
      if (mapped !== undefined) return mapped;
      if (names.includes(model)) return model;
      const pattern = patterns.find((one) => matchesModel(one, model));
      if (pattern === undefined) return undefined;
      const target = map?.get(pattern[0]);
      return target === undefined || target.includes('*') ? model : target;
    },
    traits(upstreamModel) {
      let traits = cache.get(upstreamModel);
      if (traits === undefined) {
        traits = { ...parts.traits?.(upstreamModel) };
        for (const { pattern, traits: own } of overrides)
          if (matchesModel(pattern, upstreamModel)) traits = { ...traits, ...own };
        if (cache.size < 1000) cache.set(upstreamModel, traits);
      }
      return traits;
    },
    open: (call, request) => parts.open(call, request),
    ...(parts.connect === undefined
      ? {}
      : { connect: (call, request) => parts.connect?.(call, request) ?? Promise.reject(new Error('gone')) }),
    close: () => Promise.resolve(),
  };
}

/** Hashes tell keys apart, in the log and across restarts, and give none of them away. */
function channelKeys(keys: readonly string[]): readonly ChannelKey[] {
  if (keys.length === 0) return [{ id: '', index: 0 }];
  return keys.map((key, index) => ({
    id: createHash('sha256').update(key).digest('hex').slice(0, 12),
    index,
  }));
}

function systemPromptOf({ systemPrompt }: ChannelOptions): SystemPrompt | undefined {
  if (systemPrompt === undefined) return undefined;
  if (typeof systemPrompt === 'string') return { text: systemPrompt, place: 'before' };
  return { text: systemPrompt.text, place: systemPrompt.place ?? 'before' };
}
