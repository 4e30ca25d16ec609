/** Loads a config with the secrets that it refers to. */
import { ConfigError, importConfig, inspectConfig, type LoadedConfig } from './config.ts';
import { resolveSecrets, type ResolveOptions } from './secrets/in-config.ts';

/** A config as it was exported, checked. `problems` are sentences; the config holds all that is sound. */
export interface InspectedConfig {
  readonly config: LoadedConfig;
  readonly problems: readonly string[];
  /** True where secrets could not be read: nothing else is known of the config then. */
  readonly lacksSecrets: boolean;
}

/** Reads the secrets that an exported config refers to, and checks it. Close `config.secrets` in the end. */
export async function inspectWithSecrets(
  exported: unknown,
  file: string,
  options: ResolveOptions = {},
): Promise<InspectedConfig> {
  const resolved = await resolveSecrets(exported, file, options);
  const { config, problems } = inspectConfig(resolved.exported, file);
  const lacksSecrets = resolved.problems.length > 0;
  return {
    config: { ...config, secrets: resolved.secrets },
    // Without its secrets more than is wrong would look so.
    problems: lacksSecrets ? resolved.problems : problems,
    lacksSecrets,
  };
}

/** Does the same as {@link inspectWithSecrets}. Throws ConfigError for a config that is not sound. */
export async function readWithSecrets(
  exported: unknown,
  file: string,
  options: ResolveOptions = {},
): Promise<LoadedConfig> {
  const { config, problems } = await inspectWithSecrets(exported, file, options);
  if (problems.length === 0) return config;
  await config.secrets?.close();
  throw new ConfigError(problems);
}

/** Finds, imports and checks a config for a gateway, which closes `config.secrets`. Throws ConfigError with all its problems at once. */
export async function loadServedConfig(
  option: string | undefined,
  options: ResolveOptions = {},
): Promise<LoadedConfig> {
  const { exported, file } = await importConfig(option);
  return readWithSecrets(exported, file, options);
}

/** Does the same as {@link loadServedConfig} for a command that reads no more secrets than those of the config. */
export async function loadConfig(
  option?: string,
  options: Pick<ResolveOptions, 'only'> = {},
): Promise<LoadedConfig> {
  const config = await loadServedConfig(option, options);
  await config.secrets?.close();
  return config;
}
