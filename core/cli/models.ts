/** `sluice models`: the catalogue of models, and what contradicts it. */
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

list     Shows the models that can be called now, or those whose names fit a pattern with *: who serves each, what it is
         for, its context and longest output in tokens, what it takes besides text, and what it is known to do.
check    Lists where channel kinds and the catalogue contradict each other about a model, with the correction that settles it
         (core/models/corrections.json). Ends with 1 when a contradiction is not settled, or a correction is for no model.
import   Writes a list of models by provider, with prices, limits and what each can do, as Sluice brings one along
         (core/models/catalogue.json), from a price list in the form of LiteLLM's model_prices_and_context_window.json.
           --source    Where the figures come from.
           --date      The day for which they hold: 2026-01-31. Models whose end was announced for a day before are marked.
           --licence   A file with the terms under which they may be used.
           --provider  Only entries of these providers, as the list names them, with commas between.
                       Default: those that the kinds of channels name as their catalogue.
           --without   Entries of the price list that are no models: names and * patterns, with commas between.
           --force     Replaces the file when it exists.`;

/** `sluice models`: shows what the models of the config can do, and makes the catalogue that tells it. */
export const models: Command = {
  summary: 'Shows the models and what they can do; checks and imports a catalogue of them.',
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
          ? 'Say what to do: list, check or import.'
          : `"${action}" is none of list, check and import.`,
      );
    if (more.length > 0) throw new UsageError(`"${more.join(' ')}" is one word too many.`);
    if (action === 'check') {
      if (word !== undefined) throw new UsageError(`"${word}" is one word too many.`);
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
    if (!/^\d{4}-\d\d-\d\d$/.test(date)) throw new UsageError(`"${date}" is no day: write 2026-01-31.`);
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
    console.error(`Took ${count} models of ${Object.keys(known.models).length} providers.`);
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
    correction === undefined ? 'NOT SETTLED' : `${correction.date} ${correction.source}`,
  ]);
  if (rows.length > 0)
    console.log(table([['kind', 'model', 'trait', 'code', 'catalogue', 'settled by'], ...rows]).join('\n'));
  for (const { kinds: names, models: about } of idle)
    console.log(
      `The correction for ${about.join(', ')} of ${names.join(', ')} is for no model of the catalogue.`,
    );
  const open = found.filter(({ correction }) => correction === undefined).length;
  console.error(`${found.length} contradictions, ${open} of them not settled.`);
  return open > 0 || idle.length > 0 ? 1 : 0;
}

async function channelKinds(): ReturnType<typeof findChannelKinds> {
  const problems: string[] = [];
  const kinds = await findChannelKinds(home, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return kinds;
}

/** The providers that the kinds of channels name. */
async function catalogues(): Promise<readonly string[]> {
  const kinds = await channelKinds();
  return [...new Set(kinds.flatMap(({ spec }) => spec.catalogue ?? []))];
}

const titles = ['model', 'channel', 'for', 'context', 'output', 'takes', 'can'];

/** The models whose names fit a pattern, as a table. */
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
  return rows.length === 0 ? ['No model fits.'] : table([titles, ...rows]);
}
