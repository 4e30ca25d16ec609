/**
 * What Sluice costs, as a ratio to a proxy that only passes bytes (`raw-proxy.ts`): CPU time of the process per request or chunk, and
 * memory per open stream. Both run in turn, several rounds, on a core of their own; only the ratios mean something on another machine.
 *
 *     npm run bench -- --only small --only stream --rounds 7 --seconds 3
 */
import { parseArgs } from 'node:util';
import { pinned } from './processes.ts';
import { heading, line, table, type Round } from './report.ts';
import { scenarios, type Measured, type Proxy, type Scenario } from './scenarios.ts';
import { buildStage, type ProxyName, type Stage } from './stage.ts';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1.5' },
    /** Seconds before the first round: a server runs for days, and V8 compiles for some thousand requests until it has seen enough of one. */
    warm: { type: 'string', default: '8' },
    only: { type: 'string', multiple: true, default: [] },
    /** An option for Sluice's Node: `--node=--cpu-prof`. */
    node: { type: 'string', multiple: true, default: [] },
  },
});
const rounds = Math.max(1, Number(flags.rounds));
const seconds = Math.max(0.2, Number(flags.seconds));
const warm = Math.max(0.5, Number(flags.warm));
const chosen =
  flags.only.length === 0 ? scenarios : scenarios.filter(({ name }) => flags.only.includes(name));
if (chosen.length === 0 || Number.isNaN(rounds + seconds + warm)) {
  console.error(
    `Usage: npm run bench -- [--rounds N] [--seconds N] [--warm N] [--only NAME]…   Names: ${scenarios.map(({ name }) => name).join(', ')}`,
  );
  process.exit(2);
}

const names: readonly ProxyName[] = ['raw', 'sluice'];
const failures: string[] = [];

/** One scenario: a warm-up, then the rounds. Who goes first changes, so that a slow minute of the machine hits both alike. */
async function measure(
  stage: Stage,
  scenario: Scenario,
  shared: Readonly<Record<ProxyName, Proxy>>,
): Promise<readonly Round[]> {
  const once = async (name: ProxyName, time: number): Promise<Measured> => {
    const proxy = scenario.fresh === true ? await stage.proxy(name) : shared[name];
    const measured = await scenario.run(stage, proxy, name, time);
    for (const failure of measured.failures.slice(0, 3))
      failures.push(`${scenario.name}, ${name}: ${failure}`);
    if (scenario.fresh === true) await proxy.end();
    return measured;
  };
  if (scenario.fresh !== true) for (const name of names) await once(name, warm);
  const done: Round[] = [];
  for (let round = 0; round < (scenario.fresh === true ? Math.ceil(rounds / 2) : rounds); round += 1) {
    const results: Partial<Record<ProxyName, Measured>> = {};
    for (const name of round % 2 === 0 ? names : names.toReversed())
      results[name] = await once(name, seconds);
    done.push(results as Round);
    process.stderr.write('.');
  }
  return done;
}

const stage = await buildStage(flags.node);
try {
  const shared = { raw: await stage.proxy('raw'), sluice: await stage.proxy('sluice') };
  const rows: (readonly string[])[] = [heading];
  for (const scenario of chosen) rows.push(line(scenario, await measure(stage, scenario, shared)));
  process.stderr.write('\n');
  console.log(table(rows));
  console.log(
    `\n${rounds} rounds of ${seconds} s after ${warm} s each, Node ${process.version}${pinned ? ', proxies on a core of their own' : ', no taskset: processes share cores'}.`,
  );
} finally {
  await stage.end();
}
if (failures.length > 0) {
  console.error(
    `Wrong replies, so that the figures above mean nothing:\n${[...new Set(failures)].slice(0, 10).join('\n')}`,
  );
  process.exitCode = 1;
}
