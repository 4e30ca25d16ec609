/** `sluice prices`: the prices that calls are charged by. */
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

import   Reads a price list in the form of LiteLLM's model_prices_and_context_window.json and writes it in the form of
         the config's "prices": to standard output, or to a file. What was left out is told on standard error.
           --provider  Only entries of these providers, as the list names them, with commas between; their name and
                       a slash are taken off the beginning of models.
           --models    Only these models: names and * patterns, with commas between.
           --out       A .ts file, or .json. The config imports what it exports by default, as "imported" say, and
                       takes it in with prices: { ...imported }.
           --force     Replaces the file when it exists.
show     Shows the price of a model: that of the config, or else what each channel that serves it is known to charge.`;

/** `sluice prices`: imports price lists, and shows the price of a model. */
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
        action === undefined ? 'Say what to do: import or show.' : `"${action}" is none of import and show.`,
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
  if (Object.keys(rows).length === 0) throw new Error('No entry was taken: nothing is written.');
  const text = JSON.stringify(rows, undefined, 2);
  const script = `/** Dollars per million tokens, and dollars for what is not counted in tokens: written by \`sluice prices import\`. */\nexport default ${text};\n`;
  if (out === undefined) {
    process.stdout.write(script);
    return;
  }
  if (!/\.(ts|json)$/.test(out)) throw new UsageError(`"${out}" is neither a .ts nor a .json file.`);
  save(out.endsWith('.json') ? `${text}\n` : script, out, force);
}

/** Lines of the report on entries that were left out. */
const shown = 20;

function printImport({ rows, leftOut, unknown }: ImportedPrices): void {
  console.error(`Took ${Object.keys(rows).length} models.`);
  if (leftOut.length > 0) {
    console.error(`Left out ${leftOut.length} entries:`);
    for (const sentence of leftOut.slice(0, shown)) console.error(`  ${sentence}`);
    if (leftOut.length > shown) console.error(`  and ${leftOut.length - shown} more`);
  }
  if (unknown.size > 0) {
    console.error('Left out of entries that were taken, since nothing here is charged by it:');
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
    if (row === undefined) console.error(`The channel "${channel}" has no price of its own for it.`);
    else printRow(model, row, channel);
  }
  if (missing)
    console.error(
      `The model "${model}" has no price${rows.length === 0 ? ', and no channel serves it' : ''}. Add it to "prices" in the config.`,
    );
  return missing ? 1 : 0;
}

/** `channel`: where it is charged, when it is not what the config says for all. */
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
    console.log('These prices count, also where the provider states what a call cost.');
}
