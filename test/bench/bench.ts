/**
 * What Sluice costs, as operators start it (`sluice start`: primary and worker, log in a file, SQLite, all default plugins, prices),
 * beside a proxy that only passes bytes (`raw-proxy.ts`). Clients, provider and proxies are processes of their own. See `help`.
 */
import { parseArgs } from 'node:util';
import { basename, resolve } from 'node:path';
import { hasProc } from './proc.ts';
import { pinned } from './processes.ts';
import { costHeading, costs, figureHeading, table, varieties, varietyHeading } from './report.ts';
import { profiled, profileHeading } from './profile.ts';
import { Runner } from './rounds.ts';
import { scenarios, type Scenario } from './scenarios.ts';
import { figures } from './figures.ts';
import { buildStage } from './stage.ts';
import { spread } from './statistics.ts';
import { ownTree, peer, type SluiceOptions, type Target } from './targets.ts';
import { sizing } from './sizing.ts';

const help = `Usage: npm run bench -- [options]

  --only NAME        Only these: a name, its beginning with * at the end, or a group (native, translated, variety, figures). May stand
                     more than once. Without it: native and figures.
  --rounds N         Short rounds of each scenario, in turn with all others (5), and how long each is:
  --seconds N        (1)
  --warm N           Seconds of each scenario before the first round, for each worker, at most (30): fewer where
                     6,000 calls have been made and they do not get cheaper.
  --steady N         Seconds of two long rounds of each scenario, after the short ones (0: none).
  --tree PATH        Another checkout with its node_modules, as one more target in the same rounds. May stand more than once.
  --plugin NAME=JSON Sluice with this plugin listed, with these options, as one more target in the same rounds. May stand more than once.
  --peers NAME=PORT  Gateways that run already, with commas between them; NAME=PORT=KEY gives what clients show. They send models named
                     chat.* to the provider, whose port --provider fixes.
  --provider PORT    The port of the fake provider (0: any).
  --workers N        Workers of Sluice (1).
  --postgres         Its database is PostgreSQL, and with --redis it shares limits through Redis: both must be installed.
  --node OPTION      An option for the Node of Sluice, such as --node=--cpu-prof.
  --profile          Instead of ratios: what the calls and chunks of the scenarios are made of, by rooms of the source, libraries and threads.
  --cache            Two more targets in the same rounds: with the plugin cache where every call is a hit, and where every call is a miss
                     whose response is not kept.
  --variety          The table of varieties: requests of one size, written and sent in many ways, beside the simplest; with --only some of
                     its rows.
  --sizing           Instead of all that: what workers and gateways serve together, as the page on sizing has it.

Scenarios: ${scenarios.map(({ name }) => name).join(', ')}.
Figures: ${figures.map(({ name }) => name).join(', ')}.`;

const { values: flags } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    warm: { type: 'string', default: '30' },
    steady: { type: 'string', default: '0' },
    tree: { type: 'string', multiple: true, default: [] },
    plugin: { type: 'string', multiple: true, default: [] },
    peers: { type: 'string', default: '' },
    provider: { type: 'string', default: '0' },
    workers: { type: 'string', default: '1' },
    postgres: { type: 'boolean', default: false },
    redis: { type: 'boolean', default: false },
    node: { type: 'string', multiple: true, default: [] },
    profile: { type: 'boolean', default: false },
    cache: { type: 'boolean', default: false },
    variety: { type: 'boolean', default: false },
    sizing: { type: 'boolean', default: false },
  },
});
const [rounds, seconds, warm, steady, workers] = [
  flags.rounds,
  flags.seconds,
  flags.warm,
  flags.steady,
  flags.workers,
].map(Number) as [number, number, number, number, number];

/** With those that they are compared with, which come first. */
function withSimplest(some: readonly Scenario[]): readonly Scenario[] {
  const wanted = new Set(some.flatMap(({ name, simplest = name }) => [name, simplest]));
  return scenarios.filter(({ name }) => wanted.has(name));
}

const only = flags.only ?? (flags.variety ? ['variety'] : ['native', 'figures']);

function chosen<T extends { readonly name: string; readonly group: string }>(
  all: readonly T[],
): readonly T[] {
  return all.filter(({ name, group }) =>
    only.some((one) =>
      one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : one === name || one === group,
    ),
  );
}

const chosenScenarios = withSimplest(chosen(scenarios));
const chosenFigures = chosen(figures);
if (
  flags.help ||
  chosenScenarios.length + chosenFigures.length === 0 ||
  !(rounds + seconds + warm + steady + workers > 0)
) {
  console.log(help);
  process.exit(flags.help ? 0 : 2);
}
if (!hasProc) console.error('CPU time and memory are read from /proc, which this system does not have.');
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

const stage = await buildStage(Number(flags.provider));
try {
  if (flags.sizing) console.log(await sizing(stage, { seconds: Math.max(3, seconds), rounds }));
  else if (flags.profile) await showProfiles();
  else await measure();
} finally {
  await stage.end();
}

async function gatewayOptions(): Promise<Partial<SluiceOptions>> {
  return {
    workers,
    nodeOptions: flags.node,
    database: flags.postgres ? await stage.database() : undefined,
    shared: flags.redis ? await stage.shared() : undefined,
  };
}

async function showProfiles(): Promise<void> {
  const { rows, failures } = await profiled(
    stage,
    chosenScenarios,
    { name: 'sluice', tree: ownTree, ...(await gatewayOptions()) },
    { warm, seconds: Math.max(4, seconds) },
  );
  printFailures(failures);
  console.log(table([profileHeading, ...rows]));
}

async function measure(): Promise<void> {
  const trees: readonly Pick<SluiceOptions, 'name' | 'tree' | 'cache' | 'plugin'>[] = [
    { name: 'sluice', tree: ownTree },
    ...(flags.cache
      ? [
          { name: 'hits', tree: ownTree, cache: 'cache()' },
          {
            name: 'misses',
            tree: ownTree,
            cache: 'cache({ singleFlight: false, memoryBytes: 0, databaseEntries: 0 })',
          },
        ]
      : []),
    ...flags.plugin.map((listed, index) => {
      const [plugin = '', options = '{}'] = listed.split(/=(.*)/s);
      return { name: `+ ${plugin} (${index + 1})`, tree: ownTree, plugin: { name: plugin, options } };
    }),
    ...flags.tree.map((path) => ({ name: basename(path), tree: resolve(path) })),
  ];
  const start = async (): Promise<readonly Target[]> => {
    const targets = [await stage.raw()];
    for (const tree of trees) targets.push(await stage.sluice({ ...tree, ...(await gatewayOptions()) }));
    return [...targets, ...flags.peers.split(',').filter(Boolean).map(peer)];
  };
  if (chosenScenarios.length > 0) {
    const targets = await start();
    const runner = new Runner(stage, targets);
    const short = await runner.interleaved(chosenScenarios, { warm: warm * workers, rounds, seconds });
    console.log(`\n${rounds} rounds of ${seconds} s each, in turn${afterWarmUps(runner.warmUps)}:\n`);
    const compared = chosenScenarios.filter(({ simplest }) => simplest !== undefined);
    const others = chosenScenarios.filter(({ simplest }) => simplest === undefined);
    if (others.length > 0) console.log(table([costHeading, ...costs(others, short)]));
    if (compared.length > 0) console.log(table([varietyHeading, ...varieties(compared, short)]));
    if (steady > 0) {
      const long = await runner.steady(chosenScenarios, steady);
      console.log(`\n2 rounds of ${steady} s, one scenario after the other:\n`);
      console.log(table([costHeading, ...costs(chosenScenarios, long)]));
    }
    for (const target of targets) await target.end();
    printFailures(runner.failures);
  }
  if (chosenFigures.length > 0) {
    const rows = [];
    for (const figure of chosenFigures)
      rows.push(...(await figure.run(stage, trees, await gatewayOptions(), printFailures)));
    console.log(`\n${table([figureHeading, ...rows])}`);
  }
  console.log(
    `\nNode ${process.version}${pinned ? '; with one worker, gateways have a core of their own' : '; no taskset: processes share cores'}.`,
  );
}

function afterWarmUps(warmUps: readonly number[]): string {
  if (warmUps.length === 0) return '';
  const { low, high } = spread(warmUps);
  return `, after warm-ups of ${low.toFixed(0)} to ${high.toFixed(0)} calls or chunks (quartiles)`;
}

/** Wrong replies make figures worthless. */
function printFailures(failures: Iterable<string>): void {
  const all = [...failures];
  if (all.length === 0) return;
  console.error(`Wrong replies, so that the figures mean nothing:\n${all.slice(0, 10).join('\n')}`);
  process.exitCode = 1;
}
