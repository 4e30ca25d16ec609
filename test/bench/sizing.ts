/** The page on sizing: what workers and gateways serve together, and what they share for it. */
import { cpus } from 'node:os';
import type { ClosedLoad, Done, Shot, StreamLoad } from './load.ts';
import { memoryOfStreams } from './figures.ts';
import { cpuOf, familyOf } from './proc.ts';
import { digits } from './report.ts';
import { inputs } from './sessions.ts';
import type { Stage } from './stage.ts';
import { spread } from './statistics.ts';
import { ownTree, type Target } from './targets.ts';

interface Setup {
  readonly title: string;
  readonly gateways: number;
  readonly workers: number;
  /** PostgreSQL and Redis. */
  readonly shared: boolean;
}

const setups: readonly Setup[] = [
  { title: '1 worker, SQLite', gateways: 1, workers: 1, shared: false },
  { title: '2 workers, SQLite', gateways: 1, workers: 2, shared: false },
  { title: '4 workers, SQLite', gateways: 1, workers: 4, shared: false },
  { title: '1 gateway, PostgreSQL and Redis', gateways: 1, workers: 1, shared: true },
  { title: '2 gateways, PostgreSQL and Redis', gateways: 2, workers: 1, shared: true },
];

type LoadName = 'limited' | 'levels' | 'unlimited' | 'turn30' | 'paced';

/**
 * What is called, first what a company's clients do: with a key that has a budget and limits by the minute, which all processes share, alone
 * or together with those of its team and organisation.
 */
const loads: readonly { readonly name: LoadName; readonly title: string; readonly unit: string }[] = [
  { name: 'limited', title: 'small chat, limited key', unit: 'calls' },
  { name: 'levels', title: 'small chat, limits at three levels', unit: 'calls' },
  { name: 'unlimited', title: 'small chat, no limits', unit: 'calls' },
  { name: 'turn30', title: 'agent turn 30, limited key', unit: 'calls' },
  { name: 'paced', title: 'paced streams, limited key', unit: 'chunks' },
];
/** Scenarios whose statements to PostgreSQL and commands to Redis are counted. */
const counted = ['limited', 'levels', 'unlimited'] as const;

/** A setup that runs. */
interface Running {
  readonly setup: Setup;
  readonly gateways: readonly Target[];
  readonly counts: () => Promise<Shared>;
}

/** Counters of the shared servers. */
interface Shared {
  readonly transactions: number;
  readonly scripts: number;
}

/** Seconds of each load before the first round, for each worker of all gateways. */
const warmUp = 3;

/** Result of one round. */
interface Cost {
  readonly workers: number;
  readonly primary: number;
  /** The share of calls that were not answered as they should be. */
  readonly failed: number;
}

/** Measures and writes the page, in Markdown. All setups run side by side and are asked in turn. */
export async function sizing(
  stage: Stage,
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<string> {
  const running: Running[] = [];
  for (const setup of setups) running.push(await start(stage, setup));
  const costs = new Map<string, Cost[]>();
  const of = (setup: Setup, name: LoadName): Cost[] => {
    const key = `${setup.title} ${name}`;
    const list = costs.get(key) ?? [];
    costs.set(key, list);
    return list;
  };
  // V8 compiles what a worker has often called: each needs as many calls before it costs what it will cost.
  for (const one of running)
    for (const { name } of loads)
      await measure(stage, one, name, warmUp * one.setup.workers * one.setup.gateways);
  for (let round = 0; round < rounds; round += 1)
    for (const { name } of loads)
      for (const one of running) of(one.setup, name).push(await measure(stage, one, name, seconds));
  const shared = new Map<string, Shared>();
  for (const one of running.filter(({ setup }) => setup.shared))
    for (const name of counted)
      shared.set(`${one.setup.title} ${name}`, await sharedPerCall(stage, one, name));
  for (const { gateways } of running) for (const gateway of gateways) await gateway.end();
  const fresh = await stage.sluice({ name: 'fresh', tree: ownTree, core: undefined });
  const { settled, before } = await memoryOfStreams(stage, fresh, 5_000, 2_500);
  await fresh.end();
  const memory = { stream: settled, before: before / 1e6 };
  return page((setup, name) => of(setup, name), shared, memory);
}

async function start(stage: Stage, setup: Setup): Promise<Running> {
  const database = setup.shared ? await stage.database() : undefined;
  const shared = setup.shared ? await stage.shared() : undefined;
  const gateways = [];
  for (let count = 0; count < setup.gateways; count += 1) {
    const name = `${setup.title} ${count}`;
    const options = { name, tree: ownTree, workers: setup.workers, database, shared, core: undefined };
    gateways.push(await stage.sluice(options));
  }
  return { setup, gateways, counts: () => stage.counts(database) };
}

async function measure(stage: Stage, one: Running, name: LoadName, seconds: number): Promise<Cost> {
  const primaries = one.gateways.map((gateway) => gateway.pids()[0] ?? 0);
  const everyone = primaries.flatMap(familyOf);
  const used = (): readonly [number, number] => [cpuOf(everyone), cpuOf(primaries)];
  const [all, primary] = used();
  const done = await Promise.all(one.gateways.map((gateway) => sendCall(stage, gateway, name, seconds)));
  const [allAfter, primaryAfter] = used();
  // A database that many wait for makes some calls fail: that belongs to the page.
  const failures = done.flatMap((part) => part.failures);
  if (failures[0] !== undefined)
    process.stderr.write(`${one.setup.title}, ${name}: ${failures.length} failed: ${failures[0]}\n`);
  const count = done.reduce((sum, { replies, deltas }) => sum + (name === 'paced' ? deltas : replies), 0);
  return {
    workers: (allAfter - all - (primaryAfter - primary)) / count,
    primary: (primaryAfter - primary) / count,
    failed: failures.length / (failures.length + done.reduce((sum, { replies }) => sum + replies, 0)),
  };
}

async function sendCall(
  stage: Stage,
  gateway: Running['gateways'][number],
  name: LoadName,
  seconds: number,
): Promise<Done> {
  const { url } = gateway;
  const key = await keyFor(gateway, name);
  const base = { url, key, wire: 'chat' } as const;
  if (name === 'paced') {
    const deltas = Math.round(seconds * 50);
    const shot: Shot = { ...base, input: 'small', model: `chat.paced-${deltas}-20`, stream: true, deltas };
    return stage.load.request('streams', { shot, streams: 100, spread: 20 } satisfies StreamLoad);
  }
  const input = name === 'turn30' ? 'turn30' : 'small';
  const { concurrency } = inputs[input];
  const shot: Shot = { ...base, input, model: 'chat.small', stream: false };
  const load: ClosedLoad = { shot, concurrency, seconds, least: 8 * concurrency };
  return stage.load.request('closed', load);
}

function keyFor(gateway: Target, name: LoadName): Promise<string> | string {
  if (name === 'unlimited') return gateway.key;
  return name === 'levels' ? gateway.levelsKey() : gateway.limitedKey();
}

/** Transactions of PostgreSQL and scripts of Redis for each of many calls. The counts of the former come a second late. */
async function sharedPerCall(stage: Stage, one: Running, name: LoadName): Promise<Shared> {
  const settled = async (): Promise<Shared> => {
    await new Promise((done) => setTimeout(done, 3_000));
    return one.counts();
  };
  const idleFrom = performance.now();
  const before = await settled();
  const between = await settled();
  const idle = (performance.now() - idleFrom) / 2;
  const begin = performance.now();
  const done = await Promise.all(one.gateways.map((gateway) => sendCall(stage, gateway, name, 3)));
  const after = await settled();
  const calls = done.reduce((sum, { replies }) => sum + replies, 0);
  const share = (performance.now() - begin) / idle;
  const each = (member: keyof Shared): number =>
    Math.max(0, after[member] - between[member] - share * (between[member] - before[member])) / calls;
  return { transactions: each('transactions'), scripts: each('scripts') };
}

function page(
  of: (setup: Setup, name: LoadName) => readonly Cost[],
  shared: ReadonlyMap<string, Shared>,
  memory: { readonly stream: number; readonly before: number },
): string {
  const median = (setup: Setup, name: LoadName, value: (cost: Cost) => number): number =>
    spread(of(setup, name).map(value)).median;
  const perCore = (setup: Setup, name: LoadName): number =>
    1e6 / median(setup, name, ({ workers, primary }) => workers + primary);
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = (columns: number): string => row(Array.from({ length: columns }, () => '---'));
  const [base] = setups;
  if (base === undefined) return '';
  const perGigabyte = 1024 ** 2 / memory.stream;
  const sharing = setups.filter((setup) => setup.shared);
  return `# Sizing

What a core and a gigabyte serve, as measured by \`npm run bench -- --sizing\`, which writes this page. Calls have agents' sizes: a small
chat of 1 KB, and turn 30 of a session with 250 KB and 12 tools; a stream has 50 chunks a second. The provider answers at once.
Measured on ${cpus()[0]?.model.trim() ?? 'an unknown processor'} with Node ${process.version}, where clients and provider shared ${cpus().length} cores with the gateways: what a core
serves follows from the CPU time of a call, of all processes of the gateway, and not from a clock. Each worker has answered some thousand
calls before, so that V8 has compiled what they need. On your machine measure again.

## In a second, on one core

${row(['', ...loads.map(({ title }) => title)])}
${rule(loads.length + 1)}
${setups
  .map((setup) =>
    row([
      setup.title,
      ...loads.map(({ name, unit }) => {
        const failed = of(setup, name).reduce((most, cost) => Math.max(most, cost.failed), 0);
        const note = failed === 0 ? '' : ` (up to ${(100 * failed).toFixed(1)} % failed)`;
        return `${digits(perCore(setup, name))} ${unit}${note}`;
      }),
    ]),
  )
  .join('\n')}

One core carries about ${digits(perCore(base, 'paced') / 50)} streams of 50 chunks a second. Plan for half of these figures: beyond that calls wait for each other.

## What is not shared out

A worker works on its calls alone. The primary process accepts connections and gives them to workers, and counts limits for them where
there is no Redis; its part of the CPU time of a call:

${row(['', ...loads.map(({ title }) => title)])}
${rule(loads.length + 1)}
${setups
  .map((setup) =>
    row([
      setup.title,
      ...loads.map(({ name }) => {
        const share = median(setup, name, ({ workers, primary }) => primary / (workers + primary));
        return `${(100 * share).toFixed(1)} %`;
      }),
    ]),
  )
  .join('\n')}

A core for the primary is needed when the cores of the workers times its share come near one.

With PostgreSQL and Redis, calls of a key with a budget or limits ask both; rows of the usage log go to PostgreSQL in batches. For each call:

${row(['', ...loads.slice(0, counted.length).map(({ title }) => title)])}
${rule(counted.length + 1)}
${sharing
  .map((setup) =>
    row([
      setup.title,
      ...counted.map((name) => {
        const { transactions = NaN, scripts = NaN } = shared.get(`${setup.title} ${name}`) ?? {};
        return `${transactions.toFixed(2)} transactions, ${scripts.toFixed(2)} scripts in Redis`;
      }),
    ]),
  )
  .join('\n')}

## Memory

A gateway with one worker holds ${digits(memory.before)} MB after its first calls, and ${digits(memory.stream)} KB for each open stream: about ${digits(perGigabyte)} streams in a gigabyte.
A call holds its body while it is sent: four times its bytes at worst, for \`overload.bodies\` bytes of bodies at most in each worker.
`;
}
