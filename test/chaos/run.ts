import { setTimeout as pause } from 'node:timers/promises';
import { audit, leftOver, mebibytes, type Made } from './accounts.ts';
import { matrix, nameOf, type Case } from './cases.ts';
import { startClients, type Clients } from './clients.ts';
import { patience } from '../support/patience.ts';
import type { UpstreamState } from './faulty-upstream.ts';
import type { Books, Probe } from './gateway-process.ts';
import { judge, type Outcome } from './oracles.ts';
import type { Seam } from './seams.ts';
import { buildStage, type Stage } from './stage.ts';

/** Options of a chaos run. */
export interface ChaosOptions {
  readonly seed: number;
  readonly only?: string | undefined;
  readonly rounds?: number;
  readonly most?: number;
  /** Calls at the same time. */
  readonly parallel?: number;
  readonly seam?: Seam;
  /** Longest wait in milliseconds until idle connections have been closed: both sides keep them for some seconds. */
  readonly quietAfter?: number;
  readonly print?: (line: string) => void;
}

/** Result of a run. */
export interface ChaosResult {
  readonly cases: number;
  readonly violations: readonly string[];
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
}

/**
 * Times in milliseconds. A machine that makes many calls at once, or has other things to do, needs seconds for a sound answer. No target
 * ever rests for long, so that every case meets the fault that it is about.
 */
export const patient = {
  timeouts: { idle: 10_000, connect: 10_000 },
  routing: { firstToken: 8000, attempt: 8000 },
  health: { failures: 1_000_000, rest: 10, mostRest: 10, refusedRest: 10, coolDown: 10, mostCoolDown: 10 },
};

/** The share of the cases after which nothing should grow any more. */
const warmUp = 0.4;

/** Goes through the matrix with many calls at once, judges each, and then looks for what is left over. */
export async function chaos(options: ChaosOptions): Promise<ChaosResult> {
  const { parallel = 48, seam, quietAfter = patience.wait, print = () => {} } = options;
  const cases = matrix(options);
  const stage = await buildStage({ settings: patient, seam });
  const clients = startClients(stage.gateway.ready.url, stage.gateway.ready.keys);
  const violations: string[] = [];
  const made: Made[] = [];
  const outcomes: Partial<Record<Outcome, number>> = {};
  const play = async (some: readonly Case[]): Promise<void> => {
    await inParallel(some, parallel, async (one) => {
      const seen = await clients.run(one);
      const { outcome, problems } = judge(one, seen);
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      made.push({ name: `${one.number} ${nameOf(one)}`, id: seen.id, status: seen.status, outcome });
      for (const problem of problems) violations.push(`${one.number} ${nameOf(one)}: ${problem}`);
    });
  };
  try {
    // What a process needs for its work it has taken by then.
    const warm = Math.ceil(cases.length * warmUp);
    await play(cases.slice(0, warm));
    const { probe: before } = await settle(stage, clients, { quietAfter });
    await play(cases.slice(warm));
    const { probe, upstream } = await settle(stage, clients, { before, quietAfter });
    const books = await stage.gateway.request<Books>('books');
    violations.push(
      ...audit(made, books),
      ...leftOver(before, probe, { ...upstream, temporary: stage.temporary() }),
    );
    print(
      `memory ${mebibytes(before.rss)} after ${warm} calls, ${mebibytes(probe.rss)} after ${made.length}; heap ${mebibytes(before.heap)}, ${mebibytes(probe.heap)}`,
    );
    print(`handles ${JSON.stringify(before.handles)}, ${JSON.stringify(probe.handles)}`);
    print(
      `charged ${books.keys.reduce((all, { spent }) => all + spent, 0)} micro-dollars in ${books.records.length} records`,
    );
    await stage.gateway.request('close');
  } finally {
    clients.close();
    await stage.end();
  }
  return { cases: made.length, violations, outcomes };
}

/** Runs a job for each item, so many at once. */
export async function inParallel<T>(
  items: readonly T[],
  parallel: number,
  job: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const item = items[next];
      next += 1;
      if (item !== undefined) await job(item);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
}

/** Waits until nothing is going on any more, or has had time enough for it; then what is held is what nobody lets go of. */
export async function settle(
  stage: Stage,
  clients: Clients,
  { before, quietAfter = patience.wait }: { readonly before?: Probe; readonly quietAfter?: number } = {},
): Promise<{ readonly probe: Probe; readonly upstream: UpstreamState }> {
  clients.close();
  const deadline = performance.now() + quietAfter;
  for (;;) {
    const upstream = await stage.upstream.request<UpstreamState>('state');
    const isQuiet = upstream.running === 0 && upstream.connections === 0;
    if (isQuiet || performance.now() > deadline) {
      const probe = await stage.gateway.request<Probe>('probe');
      const isSettled = probe.reservations === 0 && probe.unsettled === 0;
      const isClean =
        before === undefined ||
        leftOver(before, probe, { ...upstream, temporary: stage.temporary() }).length === 0;
      if ((isSettled && isClean) || performance.now() > deadline) return { probe, upstream };
    }
    await pause(200);
  }
}
