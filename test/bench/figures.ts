/** What is no ratio of CPU time: memory, delays, behaviour under too many calls, and the start. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Done, Rated, Shot, Timed } from './load.ts';
import { familyOf, rssOf } from './proc.ts';
import { endsWithUs } from './processes.ts';
import { judged, digits, type Row } from './report.ts';
import type { Stage } from './stage.ts';
import { delays, spread } from './statistics.ts';
import {
  asOperators,
  benchKey,
  configFor,
  memoryHeld,
  serving,
  type SluiceOptions,
  type Target,
} from './targets.ts';
import { freePort } from '../support/free-port.ts';

/** A checkout that is measured, by name. */
export type Tree = Pick<SluiceOptions, 'name' | 'tree'>;

/** Some rows of the second table. */
export interface Figure {
  readonly name: string;
  readonly group: 'figures';
  run(
    stage: Stage,
    trees: readonly Tree[],
    options: Partial<SluiceOptions>,
    report: (failures: Iterable<string>) => void,
  ): Promise<readonly Row[]>;
}

const milliseconds = (value: number): string => `${digits(value)} ms`;
const megabytes = (bytes: number): string => `${digits(bytes / 1e6)} MB`;

function shotOf(target: Pick<Target, 'url' | 'key'>, reply: string, rest: Partial<Shot> = {}): Shot {
  const { url, key } = target;
  return { url, key, wire: 'chat', input: 'small', model: `chat.${reply}`, stream: false, ...rest };
}

/**
 * Kilobytes that a target which was just started holds for each open stream of one chunk in `pace` milliseconds: as it is, and after a
 * full collection. `before`: bytes without any stream.
 */
export async function memoryOfStreams(
  stage: Stage,
  target: Target,
  streams: number,
  pace: number,
): Promise<{ before: number; settled: number; asIs: number; failures: readonly string[] }> {
  const shot = shotOf(target, `open-${pace}`, { stream: true });
  // Some streams first, so that code that is loaded and compiled once is not counted as theirs.
  await stage.load.request('openStreams', { shot, streams: 200 });
  await stage.load.request('closeStreams');
  await target.settle();
  const held = (): number => memoryHeld(target).reduce((sum, bytes) => sum + bytes, 0);
  const before = held();
  const each = (bytes: number): number => (bytes - before) / 1024 / streams;
  await stage.load.request('openStreams', { shot, streams });
  await pause(2 * pace);
  const asIs = each(held());
  await target.settle();
  const settled = each(held());
  const { failures } = await stage.load.request<Done>('counted');
  await stage.load.request('closeStreams');
  return { before, settled, asIs, failures };
}

/** Memory per open stream, of all processes, after a full collection where that can be had. */
function openStreams(streams: number, pace: number): Figure {
  return {
    name: `open-${streams}`,
    group: 'figures',
    async run(stage, trees, options, report) {
      const rows: Row[] = [];
      for (const tree of ['raw', ...trees] as const) {
        const target = tree === 'raw' ? await stage.raw() : await stage.sluice({ ...tree, ...options });
        const { settled, asIs, failures } = await memoryOfStreams(stage, target, streams, pace);
        report(failures.map((failure) => `${streams} open streams, ${target.name}: ${failure}`));
        await target.end();
        const first = `RSS per open stream, ${streams.toLocaleString('en')} open`;
        const value = `${digits(settled)} KB settled, ${digits(asIs)} KB before`;
        rows.push([
          tree === 'raw' ? first : '',
          target.name,
          value,
          tree === 'raw' ? '' : judged(settled, 45, ' KB'),
        ]);
      }
      return rows;
    },
  };
}

/** Time to first byte, and what each chunk is late; each alone, and beside half of the small calls that the first gateway can take. */
const firstByte: Figure = {
  name: 'first-byte',
  group: 'figures',
  async run(stage, trees, options, report) {
    const targets = [await stage.raw()];
    for (const tree of trees) targets.push(await stage.sluice({ ...tree, ...options }));
    const background = await stage.background();
    const direct = { name: 'provider', url: stage.upstream, key: 'none' };
    const all = [direct, ...targets];
    const [, sluice] = targets;
    if (sluice === undefined) return [];
    for (const target of targets)
      await stage.load.request('closed', { shot: shotOf(target, 'small'), concurrency: 32, seconds: 3 });
    const most = await stage.load.request<Done>('closed', {
      shot: shotOf(sluice, 'small'),
      concurrency: 64,
      seconds: 2,
    });
    const rows: Row[] = [];
    for (const perSecond of [0, most.replies / most.seconds / 2]) {
      const timed = new Map<string, Timed[]>(all.map(({ name }) => [name, []]));
      for (let count = 0; count < 10; count += 1)
        for (const target of all) {
          const busy = background.request('rate', {
            shot: shotOf(target, 'small'),
            perSecond,
            seconds: 2,
            most: 500,
          });
          const shot = shotOf(target, 'timed-10-10', { stream: true });
          const one = await stage.load.request<Timed>('timed', { shot, streams: 12 });
          report(one.failures.map((failure) => `timed streams, ${target.name}: ${failure}`));
          timed.get(target.name)?.push(one);
          await busy;
        }
      const when = perSecond === 0 ? 'idle' : `${digits(perSecond)} small calls in a second`;
      for (const part of ['firstByte', 'chunk'] as const) {
        const of = (name: string) => delays((timed.get(name) ?? []).flatMap((one) => one[part]));
        const base = of('provider').p50;
        for (const [index, { name }] of all.entries()) {
          const { p50, p99 } = of(name);
          const title = part === 'firstByte' ? 'time to first byte' : 'delay of a chunk';
          const added = p50 - base;
          rows.push([
            index === 0 ? `${title}, ${when}` : '',
            name,
            `p50 ${milliseconds(p50)}, p99 ${milliseconds(p99)}${index === 0 ? '' : `, p50 added ${milliseconds(added)}`}`,
            index > 1 && part === 'firstByte' && perSecond === 0 ? judged(added, 0.5, ' ms') : '',
          ]);
        }
      }
    }
    await background.end();
    for (const target of targets) await target.end();
    return rows;
  },
};

/** Shares of what a target can take at which {@link overload} sends calls, and how often and for how many seconds. */
const loadShares = [0.5, 1, 2];
const overloadRounds = 3;
const overloadSeconds = 3;

/**
 * Small calls at fixed rates, beside the raw proxy in interleaved rounds, over kept connections and with a new connection for each call. The
 * lag of the clients tells whether they were the bottleneck.
 */
const overload: Figure = {
  name: 'overload',
  group: 'figures',
  async run(stage, trees, options) {
    const targets = [await stage.raw()];
    for (const tree of trees) targets.push(await stage.sluice({ ...tree, ...options, refusesLate: true }));
    const rows: Row[] = [];
    for (const newConnections of [false, true]) {
      const shots = targets.map((target) => shotOf(target, 'small', { newConnections }));
      const most: number[] = [];
      for (const shot of shots) {
        await stage.load.request('closed', { shot, concurrency: 64, seconds: 3 });
        const done = await stage.load.request<Done>('closed', { shot, concurrency: 64, seconds: 2 });
        most.push(done.replies / done.seconds);
      }
      for (const share of loadShares) {
        const rated = targets.map((): Rated[] => []);
        for (let round = 0; round < overloadRounds; round += 1)
          for (const [index, shot] of shots.entries()) {
            const load = {
              shot,
              perSecond: share * (most[index] ?? 0),
              seconds: overloadSeconds,
              most: 5_000,
            };
            rated[index]?.push(await stage.load.request<Rated>('rate', load));
          }
        const title = `small calls, ${share} x capacity, ${newConnections ? 'new' : 'kept'} connections`;
        for (const [index, { name }] of targets.entries())
          rows.push([index === 0 ? title : '', name, overloadText(most[index] ?? 0, rated[index] ?? []), '']);
      }
    }
    for (const target of targets) await target.end();
    return rows;
  },
};

function overloadText(capacity: number, rounds: readonly Rated[]): string {
  const median = (value: (one: Rated) => number): number => spread(rounds.map(value)).median;
  const time = (value: (one: Rated) => number): string => milliseconds(median(value));
  const sum = (value: (one: Rated) => number): number => rounds.reduce((all, one) => all + value(one), 0);
  const refused = sum((one) => one.refused);
  const refusals =
    refused === 0
      ? '0 refused'
      : `${refused} refused after p99 ${time(({ refusedAfter }) => refusedAfter.p99)}`;
  return [
    `capacity ${digits(capacity)}/s`,
    `${sum((one) => one.served)} served after p50 ${time(({ servedAfter }) => servedAfter.p50)}, p99 ${time(({ servedAfter }) => servedAfter.p99)}`,
    refusals,
    `${sum((one) => one.unsent)} not sent, 5,000 being open`,
    `lag of clients p99 ${time(({ clientLag }) => clientLag)}`,
  ].join('; ');
}

/** `npm start` in the tree, until a call is answered, and what its two processes hold some seconds later. */
const startAndIdle: Figure = {
  name: 'start',
  group: 'figures',
  async run(stage, trees) {
    const rows: Row[] = [];
    for (const { name, tree } of trees) {
      const times: number[] = [];
      let held: readonly number[] = [];
      for (let count = 0; count < 5; count += 1) {
        const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-start-'));
        const port = await freePort();
        const config = join(folder, 'gateway.config.ts');
        writeFileSync(config, configFor({ upstream: stage.upstream, workers: 1, folder }, port));
        const begin = performance.now();
        const child = spawn('npm', ['start'], {
          cwd: tree,
          stdio: 'ignore',
          detached: true,
          env: { ...asOperators(), SLUICE_CONFIG: config },
        });
        endsWithUs(child);
        await serving(`http://127.0.0.1:${port}/readyz`, 60_000);
        const shot = shotOf({ url: `http://127.0.0.1:${port}`, key: benchKey }, 'small');
        await stage.load.request('closed', { shot, concurrency: 1, seconds: 0 });
        times.push((performance.now() - begin) / 1000);
        if (count === 0) {
          // By then it has given back what its start took.
          await pause(18_000);
          held = familyOf(child.pid ?? 0)
            .slice(-2)
            .map(rssOf);
        }
        const ended = once(child, 'exit');
        process.kill(-(child.pid ?? 0), 'SIGTERM');
        await ended;
        rmSync(folder, { recursive: true, force: true });
      }
      const { median } = spread(times);
      const [primary = 0, worker = 0] = held;
      rows.push(
        ['npm start to the first answer', name, `${median.toFixed(2)} s`, judged(median, 1, ' s')],
        ['RSS when idle, primary', name, megabytes(primary), judged(primary / 1e6, 50, ' MB')],
        ['RSS when idle, worker', name, megabytes(worker), judged(worker / 1e6, 110, ' MB')],
      );
    }
    return rows;
  },
};

/** All of them, in the order of the table. */
export const figures: readonly Figure[] = [
  openStreams(1_000, 500),
  openStreams(5_000, 2_500),
  openStreams(10_000, 5_000),
  firstByte,
  overload,
  startAndIdle,
];
