/**
 * `npm run reload`: 500 open streams through a gateway with two workers, in all formats; a reload with another config and another plugin,
 * one with a config that is wrong, and the end of the gateway, while calls go on. The last line says what must be zero, and the exit code
 * is 1 unless it is.
 *
 * `npm run reload -- --rolling`: two gateways behind a load balancer that polls `/readyz`, restarted one after the other, three times each,
 * while 100 streams and 20 callers go on. They share PostgreSQL and Redis where these are installed; else each has a SQLite database.
 *
 * `npm run reload -- --starts 200`: so many starts, eight at the same time, each followed by 40 connections. Not one may fail.
 *
 * `npm run reload -- --deaths 200`: so many workers are ended by `kill -9` while connections are opened, half of them of a gateway with two workers,
 * half of one with a worker and a spare. No connection may hang, and none may be refused.
 */
import { parseArgs } from 'node:util';
import { tryDeaths, type DeathResult } from './deaths.ts';
import { shareStores } from './shared-stores.ts';
import { tryReloads } from './run.ts';
import { tryRolling } from './rolling.ts';
import { tryStarts } from './starts.ts';

const print = (line: string): void => console.log(line);
const { values } = parseArgs({
  options: {
    rolling: { type: 'boolean', default: false },
    starts: { type: 'string' },
    deaths: { type: 'string' },
  },
});
process.exitCode = (await run()) ? 0 : 1;

function run(): Promise<boolean> {
  if (values.deaths !== undefined) return endOften(Number(values.deaths));
  if (values.starts !== undefined) return startOften(Number(values.starts));
  return values.rolling ? roll() : reload();
}

async function reload(): Promise<boolean> {
  const result = await tryReloads({ streams: 500, pace: 500, longest: 1_000, drain: 10_000, print });
  const { streams, completeWhileStopping, errorsTooEarly, calls, failedCalls, reasons, exit } = result;
  for (const reason of reasons) print(reason);
  print(
    `500 streams: ${streams.complete} complete (${completeWhileStopping} of them while it stopped), ${streams.error} ended by their format's error at the deadline; ${calls} calls meanwhile`,
  );
  print(`broken ${streams.broken}, cut early ${errorsTooEarly}, calls that failed ${failedCalls}`);
  const wrong = streams.broken + errorsTooEarly + failedCalls;
  return wrong === 0 && streams.complete > 0 && streams.error > 0 && exit === 0;
}

async function roll(): Promise<boolean> {
  const stores = await shareStores();
  try {
    print(`stores: ${stores.kind}`);
    const plan = {
      rounds: 3,
      streams: 100,
      callers: 20,
      longest: 60,
      pace: 100,
      poll: 500,
      drainDelay: 5_000,
      hurries: false,
    };
    const result = await tryRolling({ ...plan, members: stores.members, print });
    const { restarts, calls, streams, refused, cut, unserved, failedCalls, brokenStreams, reasons } = result;
    for (const reason of reasons) print(reason);
    print(`${restarts} restarts, ${calls} calls and ${streams} streams meanwhile`);
    print(
      `refused ${refused}, cut ${cut}, without a gateway ${unserved}, calls that failed ${failedCalls}, broken streams ${brokenStreams}`,
    );
    const wrong = refused + cut + unserved + failedCalls + brokenStreams;
    return wrong === 0 && calls > 0 && streams > 0 && result.exits.every((exit) => exit === 0);
  } finally {
    await stores.close();
  }
}

async function startOften(starts: number): Promise<boolean> {
  if (!Number.isSafeInteger(starts) || starts < 1) throw new Error('--starts must be a whole number from 1.');
  const result = await tryStarts({ starts, atOnce: 8, connections: 40, patience: 120_000, print });
  const { failedStarts, connections, failedConnections, wrongExits, reasons } = result;
  for (const reason of reasons) print(reason);
  print(`${result.starts} starts, ${connections} connections`);
  print(`failed starts ${failedStarts}, failed connections ${failedConnections}, wrong exits ${wrongExits}`);
  return failedStarts + failedConnections + wrongExits === 0;
}

async function endOften(deaths: number): Promise<boolean> {
  if (!Number.isSafeInteger(deaths) || deaths < 2) throw new Error('--deaths must be a whole number from 2.');
  const results: DeathResult[] = [];
  for (const [name, members] of [
    ['two workers', 'workers: 2, spareWorker: false'],
    ['a worker and a spare', 'workers: 1, spareWorker: true'],
  ] as const) {
    print(name);
    const plan = {
      rounds: Math.ceil(deaths / 2),
      members,
      ready: 2,
      connections: 60,
      patience: 60_000,
      print,
    };
    // oxlint-disable-next-line no-await-in-loop -- they would take each other's time
    const result = await tryDeaths(plan);
    results.push(result);
    print(
      `${result.rounds} workers killed: answered ${result.answered}, slowest ${result.slowest} ms, ended with the worker that had taken them ${result.cut}`,
    );
    print(`hung ${result.hung}, refused ${result.refused}`);
  }
  return results.every(({ hung, refused, answered }) => hung + refused === 0 && answered > 0);
}
