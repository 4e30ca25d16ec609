import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { RatesWorld } from './rates-world.ts';
import { Chance } from './time.ts';
import { WindowsWorld } from './windows-world.ts';
import { BrokenRule, World, type Outcome } from './world.ts';

/** Which worlds to simulate. */
export interface Seeds {
  readonly from: number;
  readonly count: number;
  /** Number of broken worlds after which the run ends. */
  readonly most: number;
  /** Leaves out the seeds that make worlds of another kind. */
  readonly only?: string;
}

/** Results of some worlds. */
export interface Summary extends Outcome {
  readonly worlds: number;
  readonly broken: readonly BrokenWorld[];
}

/** A world that broke a rule. */
export interface BrokenWorld {
  readonly seed: number;
  readonly rule: string;
}

const nothing: Summary = { worlds: 0, calls: 0, refused: 0, fromMemory: 0, broken: [] };

interface WorldKind {
  /** Number of seeds of ten that make such a world. */
  readonly share: number;
  readonly make: (seed: number) => { run(): Promise<Outcome> };
}

/**
 * The kinds of worlds: of budgets, of their windows and prices, of limits that a gateway counts, and of limits in a shared store. The shares
 * follow from what the mistakes of slips.ts need: each of those in limits of a gateway is found by one of thirty worlds, while some of those in
 * budgets need a thousand.
 */
const kinds: Readonly<Record<string, WorldKind>> = {
  ledger: { share: 4, make: (seed) => new World(seed) },
  windows: { share: 2, make: (seed) => new WindowsWorld(seed) },
  rates: { share: 1, make: (seed) => new RatesWorld(seed) },
  redis: { share: 3, make: (seed) => new RatesWorld(seed, 'redis') },
};

const shares = Object.entries(kinds).flatMap(([kind, { share }]) =>
  Array.from({ length: share }, () => kind),
);

/** The kinds that `Seeds.only` may name. */
export const worldKinds = Object.keys(kinds);

/** The kind of the world that a seed makes. */
function kindOf(seed: number): string {
  return new Chance(seed ^ 0x2545f491).of(shares);
}

/** Simulates worlds one after the other. `next`: gives out the places of seeds to take, for threads that share them. */
export async function runWorlds(
  { from, count, most, only = '' }: Seeds,
  next = counter(new Int32Array(2)),
): Promise<Summary> {
  let summary = nothing;
  for (let index = next.take(); index < count && next.broken() < most; index = next.take()) {
    const seed = from + index;
    const kind = kindOf(seed);
    if (only !== '' && only !== kind) continue;
    try {
      const world = kinds[kind]?.make(seed);
      if (world === undefined) throw new Error(`There are no worlds of the kind ${kind}.`);
      // oxlint-disable-next-line no-await-in-loop -- one world after the other: each has its thread for itself
      summary = added(summary, { ...nothing, ...(await world.run()), worlds: 1 });
    } catch (error) {
      if (!(error instanceof BrokenRule)) throw new Error(`seed ${seed} (${kind}) failed`, { cause: error });
      next.break();
      summary = added(summary, { ...nothing, worlds: 1, broken: [{ seed, rule: error.message }] });
    }
  }
  return summary;
}

/** Counts seeds that were taken, and worlds that broke a rule, for all threads that have the same array. */
function counter(counts: Int32Array) {
  return {
    take: () => Atomics.add(counts, 0, 1),
    break: () => void Atomics.add(counts, 1, 1),
    broken: () => Atomics.load(counts, 1),
  };
}

/** Input of a thread. */
interface Order {
  readonly seeds: Seeds;
  readonly counts: Int32Array;
}

/** As {@link runWorlds}, on several threads. */
export async function runOnThreads(seeds: Seeds, threads: number): Promise<Summary> {
  const order: Order = { seeds, counts: new Int32Array(new SharedArrayBuffer(8)) };
  const parts = Array.from({ length: Math.min(threads, seeds.count) }, () => {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: order,
      // Most objects live as long as their world: in a small space they would be moved out of it before they are garbage.
      resourceLimits: { maxYoungGenerationSizeMb: 96 },
    });
    return new Promise<Summary>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
    });
  });
  const summary = (await Promise.all(parts)).reduce(added, nothing);
  return { ...summary, broken: summary.broken.toSorted((one, other) => one.seed - other.seed) };
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

if (!isMainThread && parentPort !== null && isOrder(workerData)) {
  // A stack for each refusal takes a tenth of the time. A single seed has them.
  if (workerData.seeds.count > 1) Error.stackTraceLimit = 0;
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of Node has no origins
  parentPort.postMessage(await runWorlds(workerData.seeds, counter(workerData.counts)));
}

/** True for what {@link runOnThreads} gives to a thread: test runners have threads too. */
function isOrder(data: unknown): data is Order {
  return typeof data === 'object' && data !== null && 'seeds' in data && 'counts' in data;
}
