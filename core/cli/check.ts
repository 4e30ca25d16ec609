import { ConfigError, importConfig, inspectConfig, type LoadedConfig } from '../config/config.ts';
import { createGateway } from '../gateway.ts';
import { type Gateway } from '../front/gateway.ts';
import { createLog } from '../log.ts';
import { databaseUrl } from '../server.ts';
import { createApiKeys } from '../state/api-keys.ts';
import { checkDatabase } from '../state/database/index.ts';
import { openStores } from '../state/stores.ts';
import { closeSurroundings, openSurroundings } from '../config/surroundings.ts';
import { readArguments, type Command } from './command.ts';
import { describeGateway } from './describe.ts';
import { channelMatrix } from './matrix.ts';

/** `sluice check`: says everything that is wrong with a config, or what it would run. */
export const check: Command = {
  summary: 'Checks the config: shows every problem at once, or the pipeline and the channels.',
  help: `Usage: sluice check [--config FILE] [--matrix]

Reads the config, its plugins and its channels as "start" would, without listening or writing anything.
Prints every problem at once and ends with code 1, or prints the plugins in their order, the channels,
the formats they speak and the models they serve.

--matrix prints which kind of channel speaks which endpoint in which form instead, as a table in Markdown.`,
  async run(args) {
    const { values } = readArguments(args, { matrix: { type: 'boolean' } });
    if (values.matrix === true) {
      console.log(await channelMatrix());
      return 0;
    }
    const { problems, description } = await examine(values.config);
    if (problems.length > 0) {
      console.error(problems.join('\n'));
      console.error(`\n${problems.length === 1 ? '1 problem' : `${problems.length} problems`}.`);
      return 1;
    }
    console.log(`${description}\n\nThe config is sound.`);
    return 0;
  },
};

/** All problems of a config, of whatever kind; without any, a description of what it would run. Writes nothing. */
export async function examine(
  option: string | undefined,
): Promise<{ readonly problems: readonly string[]; readonly description: string }> {
  const problems: string[] = [];
  let description = '';
  try {
    const { exported, file } = await importConfig(option);
    const inspected = inspectConfig(exported, file);
    const { config } = inspected;
    problems.push(...inspected.problems, ...(await databaseProblems(databaseUrl(config))));
    description = await tryGateway(config, (gateway) =>
      [describeGateway(gateway), models(gateway.catalog.list().map(({ id }) => id))]
        .filter((part) => part !== '')
        .join('\n\n'),
    );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    problems.push(...error.problems);
  }
  return { problems: [...new Set(problems)], description };
}

/** Looks at the gateway that a config makes. It listens nowhere, asks nobody and writes nothing. */
export async function tryGateway<Found>(
  config: LoadedConfig,
  look: (gateway: Gateway) => Found,
): Promise<Found> {
  const stores = openStores('sqlite::memory:');
  try {
    const surroundings = openSurroundings(
      createLog('silent'),
      stores,
      createApiKeys(stores),
      // What other gateways share is not touched.
      { ...config.settings, shared: { ...config.settings.shared, url: 'memory:' } },
    );
    const gateway = await createGateway(config, surroundings);
    const found = look(gateway);
    await gateway.close();
    await closeSurroundings(surroundings);
    return found;
  } finally {
    await stores.close();
  }
}

async function databaseProblems(url: string): Promise<string[]> {
  try {
    await checkDatabase(url);
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** Models that are named one by one. */
const shownModels = 40;

function models(names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > shownModels ? [`and ${names.length - shownModels} more`] : [];
  const lines = [...names.slice(0, shownModels), ...more].map((line) => `  ${line}`);
  return `Models in the lists\n${lines.join('\n')}`;
}
