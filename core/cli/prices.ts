/** `sluice prices`: imports price lists, and shows the price of a model. */
import { loadConfig } from '../config/load-config.ts';
import type { JsonObject } from '../model/json.ts';
import { createPrices } from '../money/prices/index.ts';
import { importPriceList, type ImportedPrices } from '../money/prices/import-list.ts';
import { matchesModel } from '../sdk/allowed-models.ts';
import { tryGateway } from '../try-gateway.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { table } from './describe.ts';
import { listOf, readList, save } from './list-files.ts';

const help = `Usage: sluice prices import FILE [--provider LIST] [--models LIST] [--out FILE [--force]]
       sluice prices show MODEL [--config FILE]

import   Converts a price list in the format of LiteLLM's model_prices_and_context_window.json into "prices" for the config.
         Prints them to standard output, or writes a file. Lists skipped entries on standard error.
           --provider  Providers to import, by their names in the list, separated by commas. The name of the provider and
                       a slash are removed from the beginning of model names. Default: all.
           --models    Models to import: names and * patterns, separated by commas. Default: all.
           --out       .ts or .json file to write. To use it in the config: import imported from './FILE', and set
                       prices: { ...imported }.
           --force     Replaces the file if it exists.
show     Shows the price of a model: the one in the config, else the known price of each channel that serves the model.`;

/** The command. */
export const prices: Command = {
  summary: 'Imports price lists, and shows the price of a model.',
  help,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      provider: { type: 'string', multiple: true },
      models: { type: 'string', multiple: true },
      out: { type: 'string' },
      force: { type: 'boolean' },
    });
    const [action, word, ...more] = positionals;
    if (action !== 'import' && action !== 'show')
      throw new UsageError(
        action === undefined
          ? 'Name a subcommand: import or show.'
          : `Unknown subcommand "${action}". Use import or show.`,
      );
    if (word === undefined || more.length > 0)
      throw new UsageError(
        action === 'import'
          ? 'Name one file: sluice prices import FILE.'
          : 'Name one model: sluice prices show MODEL.',
      );
    if (action === 'show') return show(word, values.config);
    const models = listOf(values.models);
    const providers = listOf(values.provider);
    const imported = importPriceList(readList(word), {
      ...(providers === undefined ? {} : { providers }),
      ...(models === undefined ? {} : { wants: (model) => matchesModel(models, model) }),
    });
    write(imported, values.out, values.force === true);
    printImport(imported);
    return 0;
  },
};

function write({ rows }: ImportedPrices, out: string | undefined, force: boolean): void {
  if (Object.keys(rows).length === 0)
    throw new Error(
      'No entry was imported, and no file was written. Check the list, --provider and --models.',
    );
  const text = JSON.stringify(rows, undefined, 2);
  const script = `/** Prices in dollars: per million tokens, or per unit for what is not counted in tokens. Written by \`sluice prices import\`. */\nexport default ${text};\n`;
  if (out === undefined) {
    process.stdout.write(script);
    return;
  }
  if (!/\.(ts|json)$/.test(out)) throw new UsageError(`Invalid --out "${out}". Use a .ts or a .json file.`);
  save(out.endsWith('.json') ? `${text}\n` : script, out, force);
}

/** Maximum number of skipped entries that are printed. */
const shown = 20;

function printImport({ rows, leftOut, unknown }: ImportedPrices): void {
  console.error(`Imported ${Object.keys(rows).length} models.`);
  if (leftOut.length > 0) {
    console.error(`Skipped ${leftOut.length} entries:`);
    for (const sentence of leftOut.slice(0, shown)) console.error(`  ${sentence}`);
    if (leftOut.length > shown) console.error(`  and ${leftOut.length - shown} more`);
  }
  if (unknown.size > 0) {
    console.error('Skipped fields of imported entries, because Sluice charges nothing by them:');
    for (const [member, count] of [...unknown].toSorted(([, one], [, other]) => other - one))
      console.error(`  ${member} (${count})`);
  }
}

async function show(model: string, option: string | undefined): Promise<number> {
  const config = await loadConfig(option);
  const own = createPrices(config.settings.prices).row(model);
  if (own !== undefined) {
    printRow(model, own);
    return 0;
  }
  const { rows, missing } = await tryGateway(config, ({ catalog, prices: inForce }) => ({
    rows: catalog.candidates(model).map(({ channel, targets: [target] }) => ({
      channel: channel.id,
      row: inForce.row(model, { channel: channel.id, model: target?.model ?? model }),
    })),
    missing: inForce.unpriced(model),
  }));
  for (const { channel, row } of rows) {
    if (row === undefined) console.error(`The channel "${channel}" has no known price for this model.`);
    else printRow(model, row, channel);
  }
  if (missing)
    console.error(
      `The model "${model}" has no price${rows.length === 0 ? ', and no channel serves it' : ''}. Add it to "prices" in the config.`,
    );
  return missing ? 1 : 0;
}

/** Prints a price. `channel`: channel that charges it; undefined for a price of the config. */
function printRow(requested: string, row: JsonObject, channel?: string): void {
  const { model, source, tiers, serviceTiers, providerCost, ...members } = row;
  if (channel !== undefined)
    console.log(`at the channel ${channel}, as "${String(model)}", ${String(source)}`);
  else if (model !== requested) console.log(`by the pattern ${String(model)}`);
  const lines = (dollarsBy: object): string[] =>
    table(
      Object.entries(dollarsBy).flatMap(([member, dollars]) =>
        typeof dollars === 'object' && dollars !== null
          ? Object.entries(dollars as object).map(([name, one]) => [
              `${member} ${name}`,
              `$${String(one)}`,
              '',
            ])
          : [[member, `$${String(dollars)}`, member.startsWith('per') ? '' : 'per million tokens']],
      ),
    );
  const printPart = (title: string, dollarsBy: object): void =>
    console.log([`${title}:`, ...lines(dollarsBy).map((line) => `  ${line}`)].join('\n'));
  console.log(lines(members).join('\n'));
  const printTiers = (of: unknown, before = ''): void => {
    for (const { above, ...changed } of (of ?? []) as readonly { readonly above: number }[])
      printPart(`${before}above ${above} input tokens`, changed);
  };
  printTiers(tiers);
  for (const [name, tier] of Object.entries(serviceTiers ?? {})) {
    const { tiers: steps, ...changed } = tier as JsonObject;
    printPart(`service tier ${name}`, changed);
    printTiers(steps, `service tier ${name}, `);
  }
  if (providerCost === false)
    console.log('These prices are charged even when the provider reports the cost of a call.');
}
