/** `sluice models`: lists models, and checks and imports the model catalogue. */
import { ConfigError } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { home } from '../config/installation/home.ts';
import { findChannelKinds } from '../config/definitions.ts';
import { type Gateway } from '../front/gateway.ts';
import { contradictionsOf, idleCorrections } from '../models/contradictions.ts';
import { traitsOfKinds } from '../models/kind-traits.ts';
import { importKnownModels, writeKnownModels } from '../models/import.ts';
import { matchesModel } from '../sdk/allowed-models.ts';
import { tryGateway } from '../try-gateway.ts';
import { readArguments, UsageError, type Command } from './command.ts';
import { table } from './describe.ts';
import { listOf, readList, readText, save } from './list-files.ts';

const help = `Usage: sluice models list [PATTERN] [--config FILE]
       sluice models check
       sluice models import FILE --source TEXT --date DATE --licence FILE --out FILE [--force]
                                 [--provider LIST] [--without LIST]

list     Lists the models that the gateway serves, or those that match a pattern with *: channel, operation, maximum input and
         output in tokens, accepted input besides text, and known capabilities.
check    Lists contradictions between channel kinds and the catalogue about a model, and the correction that resolves each
         (core/models/corrections.json). Exits with code 1 if one has no correction, or if a correction matches no model.
import   Writes a catalogue of models with their prices, limits and capabilities, such as core/models/catalogue.json. Reads a
         price list in the format of LiteLLM's model_prices_and_context_window.json.
           --source    Source of the figures.
           --date      Day on which the figures were valid: 2026-01-31. Models that are retired by then are marked.
           --licence   File with the licence of the price list.
           --provider  Providers to import, by their names in the list, separated by commas.
                       Default: all providers that channel kinds name as their catalogue.
           --without   Entries to skip, because they are not models: names and * patterns, separated by commas.
           --out       File to write.
           --force     Replaces the file if it exists.`;

/** The command. */
export const models: Command = {
  summary: 'Lists models with their capabilities; checks and imports a model catalogue.',
  help,
  async run(args) {
    const { values, positionals } = readArguments(args, {
      provider: { type: 'string', multiple: true },
      without: { type: 'string', multiple: true },
      source: { type: 'string' },
      date: { type: 'string' },
      licence: { type: 'string' },
      out: { type: 'string' },
      force: { type: 'boolean' },
    });
    const [action, word, ...more] = positionals;
    if (action !== 'import' && action !== 'list' && action !== 'check')
      throw new UsageError(
        action === undefined
          ? 'Name a subcommand: list, check or import.'
          : `Unknown subcommand "${action}". Use list, check or import.`,
      );
    if (more.length > 0) throw new UsageError(`Unexpected argument "${more.join(' ')}".`);
    if (action === 'check') {
      if (word !== undefined) throw new UsageError(`Unexpected argument "${word}".`);
      return checked();
    }
    if (action === 'list') {
      const config = await loadConfig(values.config);
      const lines = await tryGateway(config, (gateway) => listed(gateway, word ?? '*'));
      console.log(lines.join('\n'));
      return 0;
    }
    if (word === undefined) throw new UsageError('Name one file: sluice models import FILE.');
    const { source, date, licence, out } = values;
    if (source === undefined || date === undefined || licence === undefined || out === undefined)
      throw new UsageError('A catalogue needs --source, --date, --licence and --out.');
    if (!/^\d{4}-\d\d-\d\d$/.test(date))
      throw new UsageError(`Invalid --date "${date}". Use a day such as 2026-01-31.`);
    const without = listOf(values.without);
    const known = importKnownModels(readList(word), {
      source,
      date,
      licence: readText(licence).trim(),
      providers: listOf(values.provider) ?? (await catalogues()),
      ...(without === undefined ? {} : { without: (name) => matchesModel(without, name) }),
    });
    save(writeKnownModels(known), out, values.force === true);
    const count = Object.values(known.models).reduce((sum, own) => sum + Object.keys(own).length, 0);
    console.error(`Imported ${count} models of ${Object.keys(known.models).length} providers.`);
    return 0;
  },
};

/** Prints the contradictions between channel kinds and the catalogue. Returns the exit code. */
async function checked(): Promise<number> {
  const kinds = traitsOfKinds(await channelKinds());
  const found = contradictionsOf(kinds);
  const idle = idleCorrections(kinds);
  const rows = found.map(({ kind, model, trait, code, catalogue, correction }) => [
    kind,
    model,
    trait,
    JSON.stringify(code),
    JSON.stringify(catalogue),
    correction === undefined ? 'NOT RESOLVED' : `${correction.date} ${correction.source}`,
  ]);
  if (rows.length > 0)
    console.log(table([['kind', 'model', 'trait', 'code', 'catalogue', 'resolved by'], ...rows]).join('\n'));
  for (const { kinds: names, models: about } of idle)
    console.log(
      `The correction for ${about.join(', ')} of ${names.join(', ')} matches no model of the catalogue. Remove it.`,
    );
  const open = found.filter(({ correction }) => correction === undefined).length;
  console.error(`${found.length} contradictions, ${open} of them not resolved.`);
  return open > 0 || idle.length > 0 ? 1 : 0;
}

async function channelKinds(): ReturnType<typeof findChannelKinds> {
  const problems: string[] = [];
  const kinds = await findChannelKinds(home, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return kinds;
}

/** Returns the providers that channel kinds name as their catalogue. */
async function catalogues(): Promise<readonly string[]> {
  const kinds = await channelKinds();
  return [...new Set(kinds.flatMap(({ spec }) => spec.catalogue ?? []))];
}

const titles = ['model', 'channel', 'for', 'context', 'output', 'takes', 'can'];

/** Returns the models that match a pattern, as a table. */
function listed({ catalog }: Gateway, pattern: string): readonly string[] {
  const rows = catalog
    .list()
    .filter(({ id }) => matchesModel([pattern], id))
    .map(({ id, ownedBy, operation = 'chat', inputLimit, outputLimit, takes, can }) => [
      id,
      ownedBy,
      operation,
      inputLimit === undefined ? '?' : String(inputLimit),
      outputLimit === undefined ? '?' : String(outputLimit),
      takes?.join(', ') ?? '',
      can?.join(', ') ?? '',
    ]);
  return rows.length === 0 ? ['No model matches the pattern.'] : table([titles, ...rows]);
}
