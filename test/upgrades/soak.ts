/**
 * `npm run soak -- --minutes 45 --rate 2`: a gateway with two workers on PostgreSQL and Redis under mixed load, with keys whose limits are checked
 * at four levels. Each minute its memory, open files, connections to PostgreSQL and response times are noted; at the end sums are compared, and
 * nothing may have grown since the warm-up. The exit code is 1 where something is wrong.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { configWith, operate, password, type OperatedGateway } from '../reload/gateway.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { Load } from './load.ts';
import { administer, type Admin } from './admin.ts';
import { compareSums } from './sums.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '45' }, rate: { type: 'string', default: '2' } },
});
const minutes = Number(values.minutes);
/** Share of the time after which nothing should grow any more, and the growth that is allowed then. */
const warmUp = 0.3;
const growth = 0.15;

/** State of the gateway at one moment. */
interface Sample {
  readonly minute: number;
  readonly calls: number;
  readonly failed: number;
  /** MiB of all processes of the gateway. */
  readonly memory: number;
  readonly files: number;
  readonly connections: number;
  /** Milliseconds of whole replies in this minute. */
  readonly half: number;
  readonly slow: number;
  /** Share of one core that the processes took in this minute. */
  readonly cpu: number;
}

const postgres = await startPostgres();
const redis = await startRedis();
const database = await postgres.createDatabase();
const gateway = await operate({
  'gateway.config.mjs': configWith(`workers: 2, spareWorker: true, timeouts: { drainDelay: 0 },
    database: '${database}', shared: { url: '${redis.url}' },
    prices: { '*': { input: 3, output: 15 } }, channels: [demo({ pace: 20 })]`),
});
try {
  process.exitCode = (await soak()) ? 0 : 1;
} finally {
  await gateway.end();
  await Promise.all([postgres.close(), redis.close()]);
}

async function soak(): Promise<boolean> {
  const admin = await administer(gateway.url, password);
  const { keys, owners } = await makeKeys(admin);
  const load = new Load({
    url: gateway.url,
    keys: keys.map(({ value }) => value),
    rate: Number(values.rate),
  });
  const samples: Sample[] = [];
  const began = performance.now();
  let cpuBefore = cpuOf(gateway);
  for (let minute = 1; minute <= minutes; minute += 1) {
    await pause(Math.max(0, began + minute * 60_000 - performance.now()));
    await visitPages(admin, minute);
    const cpu = cpuOf(gateway);
    const sample = await sampleOf(minute, load, cpu - cpuBefore);
    cpuBefore = cpu;
    samples.push(sample);
    console.log(JSON.stringify(sample));
  }
  await load.stop();
  const used = keys.map(({ id }, index) => ({ id, calls: load.calls[index] ?? 0, owners }));
  const { calls, spent, problems } = await compareSums((path) => admin('GET', path), used);
  const warmed = samples.slice(Math.floor(minutes * warmUp));
  const grown = (['memory', 'files', 'connections'] as const).flatMap((name) => grownBy(warmed, name));
  print(samples);
  console.log(`${JSON.stringify(load.done)}, ${calls} calls recorded, ${spent} micro-dollars`);
  for (const line of [...load.failures, ...problems, ...grown]) console.log(`  ${line}`);
  console.log(
    `failed ${load.failed}, sums that differ ${problems.length}, grown ${grown.length}, late ${load.late}`,
  );
  return load.failed + problems.length + grown.length + load.late === 0;
}

/** Makes keys that are limited by themselves, by a member, a team and an organisation. */
async function makeKeys(admin: Admin): Promise<{
  readonly keys: readonly { readonly id: string; readonly value: string }[];
  readonly owners: readonly string[];
}> {
  const budgets = [
    { unit: 'micro-dollar', period: 'total', amount: 1_000_000_000_000 },
    { unit: 'token', period: 'day', amount: 1_000_000_000_000 },
  ];
  const limits = { budgets, requestsPerMinute: 100_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000 };
  const make = async (owner: object): Promise<string> =>
    String((await admin('POST', 'owners', { ...limits, ...owner }))['id']);
  const organisation = await make({ kind: 'organisation', name: 'Soaked' });
  const team = await make({ kind: 'team', name: 'Soaked team', organisation });
  const member = await make({ kind: 'member', name: 'Soaked member', organisation });
  const keys: { id: string; value: string }[] = [];
  for (let count = 0; count < 7; count += 1) {
    const made = await admin('POST', 'keys', { name: `soaked ${count}`, team, member, ...limits });
    keys.push({ id: (made['key'] as { readonly id: string }).id, value: String(made['value']) });
  }
  return { keys, owners: [organisation, team, member] };
}

/** Looks at what the dashboard shows, and makes and deletes a key. */
async function visitPages(admin: Admin, minute: number): Promise<void> {
  for (const path of [
    'overview',
    'usage?limit=50',
    'usage/sums?by=model',
    'keys',
    'owners',
    'audit',
    'status',
  ])
    await admin('GET', path);
  const { key } = await admin('POST', 'keys', { name: `of minute ${minute}` });
  await admin('DELETE', `keys/${(key as { readonly id: string }).id}`);
}

async function sampleOf(minute: number, load: Load, seconds: number): Promise<Sample> {
  const processes = [gateway.pid, ...gateway.workers()];
  const times = load.takeTimes();
  const [row] = await postgres.run(
    database,
    'SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database()',
  );
  return {
    minute,
    calls: load.calls.reduce((sum, count) => sum + count, 0),
    failed: load.failed,
    memory: Math.round(processes.reduce((sum, pid) => sum + memoryOf(pid), 0)),
    files: processes.reduce((sum, pid) => sum + readdirSync(`/proc/${pid}/fd`).length, 0),
    connections: Number(row?.['count']),
    half: Math.round(times[times.length >> 1] ?? 0),
    slow: Math.round(times[Math.floor(times.length * 0.99)] ?? 0),
    cpu: Number((seconds / 60).toFixed(3)),
  };
}

/** MiB that a process holds. */
function memoryOf(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) / 1024;
}

/** Seconds of processor time that all processes of a gateway have taken. */
function cpuOf({ pid, workers }: OperatedGateway): number {
  return [pid, ...workers()].reduce((sum, one) => {
    const fields = readFileSync(`/proc/${one}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return sum + (Number(fields[11]) + Number(fields[12])) / 100;
  }, 0);
}

/** Compares the middle of the last third with that of the first. */
function grownBy(samples: readonly Sample[], name: 'memory' | 'files' | 'connections'): string[] {
  const third = Math.ceil(samples.length / 3);
  const middle = (some: readonly Sample[]): number =>
    some.map((sample) => sample[name]).toSorted((one, other) => one - other)[some.length >> 1] ?? 0;
  const [before, after] = [middle(samples.slice(0, third)), middle(samples.slice(-third))];
  return after > before * (1 + growth) + 2 ? [`${name} grew from ${before} to ${after}`] : [];
}

function print(samples: readonly Sample[]): void {
  console.log('| minute | calls | failed | MiB | files | connections | p50 ms | p99 ms | CPU |');
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- | --- |');
  const every = Math.max(1, Math.round(minutes / 12));
  for (const one of samples.filter(({ minute }) => minute % every === 0 || minute === 1))
    console.log(
      `| ${one.minute} | ${one.calls} | ${one.failed} | ${one.memory} | ${one.files} | ${one.connections} | ${one.half} | ${one.slow} | ${one.cpu} |`,
    );
}
