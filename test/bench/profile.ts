/** What a call or chunk is made of: the CPU time of a gateway by who spent it, from V8's profile of its worker and from the system's threads. */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { threadsOf } from './proc.ts';
import { digits, type Row } from './report.ts';
import type { Scenario } from './scenarios.ts';
import type { Stage } from './stage.ts';
import type { SluiceOptions, Target } from './targets.ts';

/** The parts of a profile that are read here: `--cpu-prof` writes it. Times are microseconds of the system's monotonic clock. */
export interface CpuProfile {
  readonly startTime: number;
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[];
}

/** Heading of the rows of {@link profiled}. */
export const profileHeading: Row = ['scenario', 'spent by', 'CPU', 'share'];

/** Share of a call below which entries are combined in one row. */
const smallest = 0.01;

/** Runs each scenario against a gateway of its own, and divides what its calls cost among rooms of the source, libraries and threads. */
export async function profiled(
  stage: Stage,
  scenarios: readonly Scenario[],
  options: Partial<SluiceOptions> & Pick<SluiceOptions, 'name' | 'tree'>,
  { warm, seconds }: { readonly warm: number; readonly seconds: number },
): Promise<{ readonly rows: readonly Row[]; readonly failures: readonly string[] }> {
  const rows: Row[] = [];
  const failures: string[] = [];
  for (const scenario of scenarios) {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-profile-'));
    try {
      const nodeOptions = ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=1000'];
      const target = await stage.sluice({ ...options, nodeOptions });
      await scenario.run(stage, target, warm);
      const [from, before] = [now(), spent(target)];
      const measured = await scenario.run(stage, target, seconds);
      const [to, after] = [now(), spent(target)];
      failures.push(...measured.failures.map((failure) => `${scenario.name}: ${failure}`));
      await target.end();
      const parts = new Map<string, number>();
      for (const [part, used] of after) parts.set(part, used - (before.get(part) ?? 0));
      const all = [...parts.values()].reduce((sum, used) => sum + used, 0);
      const main = parts.get(mainThread) ?? 0;
      parts.delete(mainThread);
      for (const [room, share] of roomShares(largestProfile(folder), from, to)) parts.set(room, share * main);
      rows.push(...rowsFor(scenario, parts, all, measured.cpu));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  return { rows, failures };
}

function rowsFor(
  { name, title, unit }: Scenario,
  parts: ReadonlyMap<string, number>,
  all: number,
  each: number,
): readonly Row[] {
  const sorted = [...parts].toSorted(([, a], [, b]) => b - a);
  const shown = sorted.filter(([, used]) => used >= smallest * all);
  const rest = sorted.slice(shown.length);
  const line = (what: string, used: number): Row => [
    '',
    what,
    `${digits((used / all) * each)} us`,
    `${((100 * used) / all).toFixed(1)} %`,
  ];
  return [
    [`${name}: ${title}`, `all, per ${unit}`, `${digits(each)} us`, ''],
    ...shown.map(([what, used]) => line(what, used)),
    line(
      `${rest.length} with less than 1 % each`,
      rest.reduce((sum, [, used]) => sum + used, 0),
    ),
  ];
}

const mainThread = 'main thread';

/** Microseconds of CPU time so far: of the worker's main thread, and of all other threads by what they are for. */
function spent(target: Target): ReadonlyMap<string, number> {
  const [, worker] = target.pids();
  const parts = new Map<string, number>();
  for (const pid of target.pids())
    for (const { name, isMain, used } of threadsOf(pid)) {
      const part = partOf(name, isMain, pid === worker);
      parts.set(part, (parts.get(part) ?? 0) + used);
    }
  return parts;
}

function partOf(thread: string, isMain: boolean, isWorker: boolean): string {
  if (thread.includes('ProfEvntProc')) return 'the profiler itself';
  if (!isWorker) return 'primary process';
  if (isMain) return mainThread;
  return thread.includes('V8Worker') ? 'V8: other threads (garbage collection, compiler)' : 'other threads';
}

/** Microseconds of the clock that profiles are written with. */
function now(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** Returns the profile of the worker, which is the largest, because the primary does little. */
function largestProfile(folder: string): CpuProfile {
  const texts = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  const [largest] = texts.toSorted((a, b) => b.length - a.length);
  if (largest === undefined) throw new Error('No gateway has left a profile.');
  return JSON.parse(largest) as CpuProfile;
}

/** The share of each room of the time between two moments in which the thread did anything; all together are 1. */
export function roomShares(
  { startTime, nodes, samples, timeDeltas }: CpuProfile,
  from: number,
  to: number,
): ReadonlyMap<string, number> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const owners = new Map<number, string | undefined>();
  const ownerOf = (id: number): string | undefined => {
    if (!owners.has(id)) {
      const stack: ProfileNode['callFrame'][] = [];
      for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
        const node = byId.get(at);
        if (node !== undefined) stack.push(node.callFrame);
      }
      owners.set(id, roomOf(stack));
    }
    return owners.get(id);
  };
  const times = new Map<string, number>();
  let at = startTime;
  let all = 0;
  for (const [index, sample] of samples.entries()) {
    const delta = timeDeltas[index] ?? 0;
    at += delta;
    const owner = at < from || at > to ? undefined : ownerOf(sample);
    if (owner === undefined) continue;
    all += delta;
    times.set(owner, (times.get(owner) ?? 0) + delta);
  }
  return new Map([...times].map(([room, time]) => [room, time / all]));
}

/** Native functions that hand bytes to the system. */
const socketWrites = new Set(['writev', 'writeBuffer', 'writeLatin1String', 'writeUtf8String']);

/**
 * Who spent the time at the top of a stack, the innermost frame first: the innermost file of ours or of a library, as what Node and
 * WebAssembly do is done for it. Undefined: nobody.
 */
function roomOf(stack: readonly ProfileNode['callFrame'][]): string | undefined {
  const [leaf] = stack;
  if (leaf === undefined || leaf.functionName === '(idle)') return undefined;
  if (leaf.functionName === '(garbage collector)') return 'V8: garbage collection';
  if (leaf.functionName === '(program)') return 'V8: the rest, and the system';
  if (leaf.url === '' && socketWrites.has(leaf.functionName)) return 'writes to sockets';
  for (const { url } of stack) {
    const library = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
    if (library !== undefined) return `library: ${library}`;
    const path = /^file:.*?\/((?:core|plugins|channels)\/.*?)(?:\.[jt]s)?$/.exec(url)?.[1];
    if (path !== undefined) return path.split('/', path.startsWith('core/formats/') ? 3 : 2).join('/');
  }
  const outermost = stack.findLast(({ url }) => url.startsWith('node:'))?.url ?? '';
  if (outermost.includes('task_queues')) return 'node: promises and ticks';
  return outermost.includes('_http') ? 'node: HTTP' : 'node: the rest';
}
