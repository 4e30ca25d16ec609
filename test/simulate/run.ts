import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { RatesWorld } from './rates-world.ts';
import { WindowsWorld } from './windows-world.ts';
import { BrokenRule, World, type Outcome } from './world.ts';

/** Which worlds to simulate. */
export interface Seeds {
  readonly from: number;
  readonly count: number;
  /** Number of broken worlds after which the run ends. */
  readonly most: number;
  /** Those of budgets (`ledger`), of their windows and prices (`windows`), of limits that a gateway counts (`rates`) or of limits in a shared store (`redis`) alone. */
  readonly only?: string;
}

/** What became of some worlds. */
export interface Summary extends Outcome {
  readonly worlds: number;
  /** One line for each that broke a rule, with its seed. */
  readonly broken: readonly string[];
}

const nothing: Summary = { worlds: 0, calls: 0, refused: 0, fromMemory: 0, broken: [] };

/** What is simulated with each seed. */
const worlds: Readonly<Record<string, (seed: number) => { run(): Promise<Outcome> }>> = {
  ledger: (seed) => new World(seed),
  windows: (seed) => new WindowsWorld(seed),
  rates: (seed) => new RatesWorld(seed),
  redis: (seed) => new RatesWorld(seed, 'redis'),
};

/** Simulates worlds one after the other: every `step`-th of the seeds. */
export async function runWorlds({ from, count, most, only = '' }: Seeds, step = 1): Promise<Summary> {
  let summary = nothing;
  for (let seed = from; seed < from + count && summary.broken.length < most; seed += step) {
    try {
      for (const [kind, make] of Object.entries(worlds))
        if (only === '' || only === kind)
          // oxlint-disable-next-line no-await-in-loop -- one world after the other: each has its thread for itself
          summary = added(summary, { ...nothing, ...(await make(seed).run()) });
      summary = added(summary, { ...nothing, worlds: 1 });
    } catch (error) {
      if (!(error instanceof BrokenRule)) throw error;
      summary = added(summary, { ...nothing, worlds: 1, broken: [`seed ${seed}: ${error.message}`] });
    }
  }
  return summary;
}

/** As {@link runWorlds}, on several threads. */
export async function runOnThreads(seeds: Seeds, threads: number): Promise<Summary> {
  const parts = Array.from({ length: Math.min(threads, seeds.count) }, (_, index) => {
    const own: Seeds = { ...seeds, from: seeds.from + index, count: seeds.count - index };
    const worker = new Worker(new URL(import.meta.url), { workerData: { seeds: own, step: threads } });
    return new Promise<Summary>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
  });
  return (await Promise.all(parts)).reduce(added, nothing);
}

function added(one: Summary, other: Summary): Summary {
  return {
    worlds: one.worlds + other.worlds,
    calls: one.calls + other.calls,
    refused: one.refused + other.refused,
    fromMemory: one.fromMemory + other.fromMemory,
    broken: [...one.broken, ...other.broken],
  };
}

if (!isMainThread && parentPort !== null && isOrder(workerData))
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of Node has no origins
  parentPort.postMessage(await runWorlds(workerData.seeds, workerData.step));

/** True for what {@link runOnThreads} gives to a thread: test runners have threads too. */
function isOrder(data: unknown): data is { readonly seeds: Seeds; readonly step: number } {
  return typeof data === 'object' && data !== null && 'seeds' in data && 'step' in data;
}
