/** `sluice check`: prints all problems of a config and its stores; without problems, its plugins, channels and models. */
import { ConfigError, importConfig, type LoadedConfig } from '../config/config.ts';
import { inspectWithSecrets, loadConfig } from '../config/load-config.ts';
import type { KnownSecret } from '../config/secrets/known.ts';
import { lentPackages } from '../config/installation/resolve.ts';
import { maskSecrets } from '../log.ts';
import { databaseOf } from '../config/database-of.ts';
import { checkShared } from '../server.ts';
import type { Gateway } from '../front/gateway.ts';
import { checkDatabase } from '../state/database/index.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { describeGateway } from './describe.ts';
import { listedModels } from './listed-models.ts';
import { listOf } from './list-files.ts';
import { channelMatrix } from './matrix.ts';
import { tryGateway } from '../try-gateway.ts';

/** The command. */
export const check: Command = {
  summary: 'Checks the config: prints all its problems, or its plugins, channels and models.',
  help: `Usage: sluice check [--config FILE] [--matrix]
       sluice check --live [CHANNEL] [--model LIST] [--yes] [--config FILE]

Loads the config, its plugins and its channels as "sluice start" does, but neither listens nor writes anything.
Prints all problems and exits with code 1. Without problems it prints the plugins in their order, the channels with
their formats, and the models.

--matrix   Prints a Markdown table of all channel kinds with the formats of each endpoint instead.
--live     Sends about thirty requests to each provider, with the keys of the config. They test text, streams, tools,
           images, documents, structured output, reasoning, caching, limits, errors and the other endpoints of a channel.
           Prints the maximum cost first, and asks for confirmation. Each line of the output is a test and its result:
           holds, differs, or refused by the provider. Exits with code 1 if a channel returns no text.
CHANNEL    With --live: id of the only channel to test. Default: all channels.
--model    With --live: public names of the models to test, separated by commas. Default: for each endpoint the cheapest
           model that the channel is known to serve.
--yes      With --live: skips the confirmation.`,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      matrix: { type: 'boolean' },
      live: { type: 'boolean' },
      model: { type: 'string', multiple: true },
      yes: { type: 'boolean' },
    });
    if (positionals.length > (values.live === true ? 1 : 0))
      throw new UsageError(`Unexpected argument "${positionals.at(-1)}".`);
    if (values.matrix === true) {
      console.log(await channelMatrix());
      return 0;
    }
    if (values.live === true) {
      const { liveCheck } = await import('./live.ts');
      const config = await loadConfig(values.config);
      return liveCheck(config, { channel: positionals[0], models: listOf(values.model), yes: values.yes });
    }
    const { problems, description } = await examine(values.config);
    if (problems.length > 0) {
      console.error(problems.join('\n'));
      console.error(`\n${problems.length === 1 ? '1 problem' : `${problems.length} problems`}.`);
      return 1;
    }
    console.log(`${description}\n\nThe config is valid.`);
    return 0;
  },
};

/** Returns all problems of a config and its stores; without any, a description of what it would run. Changes no data. */
export async function examine(
  option: string | undefined,
  known?: readonly KnownSecret[],
): Promise<{ readonly problems: readonly string[]; readonly description: string }> {
  const { problems, description, config } = await examineConfig(option, known);
  const refused = config === undefined ? [] : (await storeProblems(config)).map(maskSecrets);
  return { problems: [...new Set([...problems, ...refused])], description };
}

/** Result of {@link examineConfig}. */
interface ConfigExamination {
  readonly problems: readonly string[];
  readonly description: string;
  /** The valid part of the config; absent when the file cannot be loaded. */
  readonly config?: LoadedConfig;
}

/**
 * Returns the problems of a config, its plugins and its channels. Connects to no store. `known`: secrets to use in place of those that
 * cannot be read.
 */
export async function examineConfig(
  option: string | undefined,
  known?: readonly KnownSecret[],
): Promise<ConfigExamination> {
  const problems: string[] = [];
  let description = '';
  let config: LoadedConfig | undefined;
  try {
    const { exported, file } = await importConfig(option);
    const inspected = await inspectWithSecrets(exported, file, { known });
    ({ config } = inspected);
    await config.secrets?.close();
    problems.push(...inspected.problems);
    if (inspected.lacksSecrets) return { problems, description };
    description = await tryGateway(config, async (gateway) => {
      const names = await listedModels(gateway);
      return [
        describeGateway(gateway),
        section('Models in the model list', names),
        section(
          'Models without a price (a key with a budget in dollars gets 403 for them: set "prices", or "baseModel" in the channel\'s "models")',
          names.filter((name) => isUnpriced(gateway, name)),
        ),
        section(
          'Packages that your files import but that are not installed (the gateway uses its own copy; tests and editors do not find one)',
          [...lentPackages()].map(([name, importer]) => `${name}, by ${importer}: npm install ${name}`),
        ),
      ]
        .filter((part) => part !== '')
        .join('\n\n');
    });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems);
  }
  return {
    problems: [...new Set(problems.map(maskSecrets))],
    description: maskSecrets(description),
    ...(config === undefined ? {} : { config }),
  };
}

/** Returns the problems of the database and the shared store. */
async function storeProblems(config: LoadedConfig): Promise<string[]> {
  const tried = await Promise.allSettled([checkDatabase(databaseOf(config)), checkShared(config)]);
  return tried.flatMap((one) =>
    one.status === 'fulfilled' ? [] : [one.reason instanceof Error ? one.reason.message : String(one.reason)],
  );
}

/** Maximum number of lines of a section. The last line counts the others. */
const maxLines = 40;

/** Returns a title with a name on each line, or nothing without names. */
function section(title: string, names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > maxLines ? [`and ${names.length - maxLines} more`] : [];
  const lines = [...names.slice(0, maxLines), ...more].map((line) => `  ${line}`);
  return `${title}\n${lines.join('\n')}`;
}

/** Returns true for a model that a channel serves under exactly this name and that has no price. An alias has the price of its model. */
function isUnpriced({ catalog, prices }: Gateway, name: string): boolean {
  return catalog.serves(name) && prices.unpriced(name);
}
