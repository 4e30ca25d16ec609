/**
 * `npm run upgrade -- --from COMMIT`: a rolling upgrade from an old version to this one, on one database and one Redis, under load. The old
 * gateway runs, the new one starts beside it, an operator uses what is new, the old one is killed in the middle of streams and starts once more
 * beside the new one, and stops for good. A backup is made under load and restored into databases of both kinds meanwhile. No call may fail, and what was spent must
 * equal the records and what the provider has counted. `--sqlite` takes an SQLite file in the place of PostgreSQL, `--tree PATH` a checkout with
 * its own node_modules in the place of a commit, `--seconds N` is the length of each part.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Balancer } from '../reload/balancer.ts';
import { startPostgres } from '../support/postgres.ts';
import { startRedis } from '../support/redis.ts';
import { administer, type Admin } from './admin.ts';
import { backUpAndRestore } from './backup.ts';
import { OpenStreams } from './cut-calls.ts';
import { adminPassword, price, TreeGateway } from './gateway.ts';
import { Load } from './load.ts';
import { countedModel, startCountingProvider } from './provider.ts';
import { compareSums, compareWithBill } from './sums.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: {
    from: { type: 'string' },
    tree: { type: 'string' },
    sqlite: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '15' },
    rate: { type: 'string', default: '10' },
  },
});
const partMs = Number(values.seconds) * 1_000;
/** The longest that a run may take beyond its parts. */
const limitMs = 15 * 60_000 + 5 * partMs;
/** Time in which a gateway without calls has read the streams of clients that left to their end, and has written its records. */
const restMs = 6_000;
const print = (line: string): void => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`);

const { tree, removeTree } =
  values.tree === undefined
    ? checkOut(values.from ?? 'HEAD')
    : { tree: resolve(values.tree), removeTree: () => {} };
const files = mkdtempSync(join(tmpdir(), 'sluice-upgrade-'));
const postgres = await startPostgres();
const redis = await startRedis();
const provider = await startCountingProvider();
const started: TreeGateway[] = [];
const stopped = new Promise<never>((_, reject) => {
  const stop = (why: string): void => reject(new Error(why));
  setTimeout(() => stop('The run took too long.'), limitMs).unref();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop(`${signal} came.`));
});
try {
  process.exitCode = (await Promise.race([upgrade(), stopped])) ? 0 : 1;
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await Promise.all(started.map((gateway) => gateway.end()));
  await Promise.all([postgres.close(), redis.close(), provider.close()]);
  rmSync(files, { recursive: true, force: true });
  removeTree();
}
// Clients of a run that was stopped would go on.
process.exit();

async function upgrade(): Promise<boolean> {
  const database = values.sqlite ? sqliteFile('sluice.db') : await postgres.createDatabase();
  // Old versions do not know the patience that a busy machine needs.
  const old = await prepare(tree, database.replace(/\?.*/, ''));
  const fresh = await prepare(root, database);
  await old.start();
  const before = await administer(old.url, adminPassword);
  const mixedKeys = await makeKeys(before, 'mixed', ['micro-dollar']);
  const countedKeys = await makeKeys(before, 'counted', ['micro-dollar', 'token']);
  const cutKeys = await makeKeys(before, 'cut', ['micro-dollar', 'token']);
  const keys = [...mixedKeys, ...countedKeys, ...cutKeys];
  const balancer = new Balancer([old.url, fresh.url], 200);
  while (!balancer.isReady(old.url)) await pause(20);
  const url = await balancer.listen();
  const rate = Number(values.rate) / 2;
  const mixed = new Load({ url, keys: mixedKeys.map(({ value }) => value), rate });
  const counted = new Load({
    url,
    keys: countedKeys.map(({ value }) => value),
    rate,
    model: countedModel,
    activities: ['whole', 'stream', 'whole'],
  });
  const problems: string[] = [];
  try {
    print('the old version serves');
    await pause(partMs);
    await fresh.start();
    while (!balancer.isReady(fresh.url)) await pause(20);
    print('both versions serve');
    const after = await administer(fresh.url, adminPassword);
    const fetchJson = (path: string): ReturnType<Admin> => after('GET', path);
    await useWhatIsNew(after);
    await pause(partMs);
    problems.push(...(await restartOld(old, balancer, cutKeys)));
    await pause(partMs);
    problems.push(
      ...(await backUpAndRestore({
        gateway: fresh,
        keys: keys.map(({ id }) => id),
        targets: [
          { name: 'SQLite', database: sqliteFile('restored.db') },
          { name: 'PostgreSQL', database: await postgres.createDatabase() },
        ],
        prepare: (target) => prepare(root, target),
        print,
      })),
    );
    await withoutCalls(old, balancer);
    print(`the old version ended with ${await old.stop()}`);
    print('the new version serves alone');
    await pause(partMs);
    await Promise.all([mixed.stop(), counted.stop()]);
    // Calls that were cut by a kill are not charged: what was reserved for them is free when its lease is over.
    const calls = [...mixed.calls, ...counted.calls, ...cutKeys.map(() => 0)];
    const used = keys.map(({ id }, index) => ({ id, calls: calls[index] ?? 0, owners: [] }));
    const compared = await compareSums(fetchJson, used);
    const { bill } = provider;
    const differences = await compareWithBill(
      fetchJson,
      countedKeys.map(({ id }) => id),
      { bill, price },
    );
    problems.push(...compared.problems, ...differences);
    const { refused, cut, unserved } = balancer.failures;
    for (const line of [...mixed.failures, ...counted.failures, ...problems]) print(`  ${line}`);
    print(`mixed ${JSON.stringify(mixed.done)}, counted ${JSON.stringify(counted.done)}`);
    print(`${compared.calls} calls recorded, ${compared.spent} micro-dollars`);
    print(`the provider: ${JSON.stringify(bill)}, with ${differences.length} differences`);
    const failed = mixed.failed + counted.failed;
    const late = mixed.late + counted.late;
    print(
      `failed ${failed}, refused ${refused}, cut ${cut}, unserved ${unserved}, wrong ${problems.length}, late ${late}`,
    );
    return failed + refused + cut + unserved + problems.length === 0;
  } finally {
    balancer.close();
  }
}

function sqliteFile(name: string): string {
  return `sqlite:${join(files, name)}`;
}

/** Checks a commit out into a folder of its own, with its packages. */
function checkOut(commit: string): { readonly tree: string; readonly removeTree: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-upgrade-tree-'));
  const path = join(folder, 'tree');
  succeed('git', ['-C', root, 'worktree', 'add', '--detach', path, commit], root);
  const remove = (): void => {
    spawnSync('git', ['-C', root, 'worktree', 'remove', '--force', path]);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    succeed('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], path);
    succeed('npm', ['rebuild'], path);
  } catch (error) {
    remove();
    throw error;
  }
  return { tree: path, removeTree: remove };
}

function succeed(program: string, words: readonly string[], cwd: string): void {
  const { status, stderr, stdout } = spawnSync(program, words, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${words.join(' ')}: ${stdout}${stderr}`);
}

async function prepare(at: string, database: string): Promise<TreeGateway> {
  const gateway = await TreeGateway.prepare(at, { database, redis: redis.url, provider: provider.url });
  started.push(gateway);
  return gateway;
}

async function makeKeys(
  admin: Admin,
  name: string,
  units: readonly string[],
): Promise<readonly { readonly id: string; readonly value: string }[]> {
  const budgets = units.map((unit) => ({ unit, period: 'total', amount: 1_000_000_000 }));
  const keys: { id: string; value: string }[] = [];
  for (let count = 0; count < 5; count += 1) {
    const made = await admin('POST', 'keys', {
      name: `${name} ${count}`,
      budgets,
      requestsPerMinute: 100_000,
    });
    keys.push({ id: (made['key'] as { readonly id: string }).id, value: String(made['value']) });
  }
  return keys;
}

/** Things that an operator does with the new version while the old one runs beside it. */
async function useWhatIsNew(admin: Admin): Promise<void> {
  const organisation = await admin('POST', 'owners', { kind: 'organisation', name: 'New' });
  const team = await admin('POST', 'owners', { kind: 'team', name: 'New', organisation: organisation['id'] });
  const made = await admin('POST', 'keys', { name: 'of a team', team: team['id'] });
  const { id } = made['key'] as { readonly id: string };
  await admin('POST', `keys/${id}/rotate`, { graceSeconds: 3_600 });
  await admin('POST', 'users', { email: 'ada@example.com', name: 'Ada', role: 'admin' });
  await admin('POST', 'tokens', { name: 'script', scopes: ['keys:read'] });
  await admin('POST', 'config', { kind: 'alias', name: 'fast', value: 'demo' });
}

/**
 * Kills the old gateway in the middle of streams of these keys and starts it again on tables that the new one has changed. Calls of the other
 * keys go to the new one meanwhile. Returns what is wrong.
 */
async function restartOld(
  old: TreeGateway,
  balancer: Balancer,
  keys: readonly { readonly value: string }[],
): Promise<readonly string[]> {
  await withoutCalls(old, balancer);
  const callers = keys.flatMap(({ value }) => Array.from({ length: 4 }, () => value));
  const streams = await OpenStreams.open(old.url, callers);
  await old.kill();
  const problems = await streams.problems();
  print(`the old version was killed in the middle of ${callers.length} streams`);
  try {
    await old.start();
  } catch (error) {
    return [
      ...problems,
      `the old version does not start beside the new one: ${String(error).slice(0, 1_000)}`,
    ];
  }
  balancer.resume(old.url);
  while (!balancer.isReady(old.url)) await pause(20);
  print('the old version has started again beside the new one');
  return problems;
}

/** Has the balancer send a gateway nothing new, and waits until it has ended and recorded its calls. Old versions close their port at once. */
async function withoutCalls({ url }: TreeGateway, balancer: Balancer): Promise<void> {
  balancer.pause(url);
  while (balancer.runningAt(url) > 0) await pause(20);
  await pause(restMs);
}
