/** Finds the references to secrets in what a config file exports, and puts the secrets in their place. */
import { basename } from 'node:path';
import type { Log } from '../../log.ts';
import { settingsSchema } from '../../settings/index.ts';
import { secretsSchema } from '../../settings/secrets.ts';
import { Secrets, startTime } from './index.ts';
import type { KnownSecret } from './known.ts';
import { openSources } from './open.ts';
import { channelPart, eachOf, pluginPart, withSecrets, type Part } from './parts.ts';

/** Options of {@link resolveSecrets}. */
export interface ResolveOptions {
  /** Values that another process of this gateway has read: they stand in for what cannot be read now. */
  readonly known?: readonly KnownSecret[] | undefined;
  /** `settings`: references of channels and plugins stay as they are, for commands that make none. Default: all are read. */
  readonly only?: 'settings' | undefined;
  /** Log of the sources. Default: none. */
  readonly log?: Log | undefined;
}

/** An exported config without references, and the secrets that were read for it. */
export interface ResolvedExport {
  readonly exported: unknown;
  readonly secrets: Secrets;
  readonly problems: readonly string[];
}

/** Reads the secrets that a config refers to. Problems are sentences with file, entry, option and what to do. */
export async function resolveSecrets(
  exported: unknown,
  file: string,
  { known, only, log }: ResolveOptions = {},
): Promise<ResolvedExport> {
  const config = typeof exported === 'object' && exported !== null ? exported : {};
  const { plugins, channels, ...settings } = config as Readonly<Record<string, unknown>>;
  const name = basename(file);
  const problems: string[] = [];
  const limits = secretsSchema.safeParse(settings['secrets']);
  const { timeout } = limits.data ?? secretsSchema.parse(undefined);
  const opened = await openSources(plugins, name, { timeout, log, problems });
  const secrets = new Secrets({
    sources: opened.sources,
    digests: opened.digests,
    timeout,
    close: opened.close,
    ...(known === undefined ? {} : { known }),
  });
  if (problems.length > 0) return { exported, secrets, problems };
  const signal = AbortSignal.timeout(startTime);
  // In the order of the file, whatever is read first.
  const problemsOfParts: string[][] = [];
  const resolve = (part: Part): Promise<unknown> => {
    const own: string[] = [];
    problemsOfParts.push(own);
    return withSecrets(part, secrets, { problems: own, signal });
  };
  const all = only === undefined;
  const [own, ownPlugins, ownChannels] = await Promise.all([
    resolve({ value: settings, schema: settingsSchema, where: name, placed: (value) => value }),
    all ? eachOf(opened.plugins, (entry, index) => resolve(pluginPart(entry, name, index))) : opened.plugins,
    all ? eachOf(channels, (entry, index) => resolve(channelPart(entry, name, index))) : channels,
  ]);
  const isConfig = config === exported && !Array.isArray(exported);
  return {
    exported: isConfig ? { ...(own as object), plugins: ownPlugins, channels: ownChannels } : exported,
    secrets,
    problems: [...new Set(problemsOfParts.flat())],
  };
}
