/**
 * `npm run upgrade -- --from COMMIT`: a rolling upgrade from an old version to this one, on one PostgreSQL and one Redis, under load. The old
 * gateway runs, the new one starts beside it, an operator uses what is new, the old one stops and starts once more beside the new one, and stops
 * for good. A backup is made and restored meanwhile. No call may fail, and what was spent must equal the records. `--tree PATH` takes a
 * checkout with its own node_modules in the place of a commit, `--seconds N` is the length of each part.
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
import { adminPassword, TreeGateway } from './gateway.ts';
import { Load } from './load.ts';
import { compareSums } from './sums.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { values } = parseArgs({
  options: {
    from: { type: 'string' },
    tree: { type: 'string' },
    seconds: { type: 'string', default: '15' },
    rate: { type: 'string', default: '10' },
  },
});
const partMs = Number(values.seconds) * 1_000;
const say = (line: string): void => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`);

const { tree, removeTree } =
  values.tree === undefined
    ? checkOut(values.from ?? 'HEAD')
    : { tree: resolve(values.tree), removeTree: () => {} };
const postgres = await startPostgres();
const redis = await startRedis();
const started: TreeGateway[] = [];
try {
  process.exitCode = (await upgrade()) ? 0 : 1;
} finally {
  await Promise.all(started.map((gateway) => gateway.end()));
  await Promise.all([postgres.close(), redis.close()]);
  removeTree();
}

async function upgrade(): Promise<boolean> {
  const database = await postgres.createDatabase();
  // Old versions do not know the patience that a busy machine needs.
  const old = await prepare(tree, { database: database.replace(/\?.*/, ''), redis: redis.url });
  const fresh = await prepare(root, { database, redis: redis.url });
  await old.start();
  const before = await administer(old.url, adminPassword);
  const keys = await makeKeys(before);
  const balancer = new Balancer([old.url, fresh.url], 200);
  while (!balancer.isReady(old.url)) await pause(20);
  const load = new Load({
    url: await balancer.listen(),
    keys: keys.map(({ value }) => value),
    rate: Number(values.rate),
  });
  const problems: string[] = [];
  try {
    say('the old version serves');
    await pause(partMs);
    await fresh.start();
    while (!balancer.isReady(fresh.url)) await pause(20);
    say('both versions serve');
    const after = await administer(fresh.url, adminPassword);
    await useWhatIsNew(after);
    await pause(partMs);
    problems.push(...(await restartOld(old, balancer)));
    await pause(partMs);
    problems.push(...(await backUpAndRestore(fresh, keys)));
    await stopOld(old, balancer);
    say('the new version serves alone');
    await pause(partMs);
    await load.stop();
    const used = keys.map(({ id }, index) => ({ id, calls: load.calls[index] ?? 0, owners: [] }));
    const compared = await compareSums((path) => after('GET', path), used);
    problems.push(...compared.problems);
    const { refused, cut, unserved } = balancer.failures;
    for (const line of [...load.failures, ...problems]) say(`  ${line}`);
    say(`${JSON.stringify(load.done)}, ${compared.calls} calls recorded, ${compared.spent} micro-dollars`);
    say(
      `failed ${load.failed}, refused ${refused}, cut ${cut}, unserved ${unserved}, wrong ${problems.length}`,
    );
    return load.failed + refused + cut + unserved + problems.length === 0;
  } finally {
    balancer.close();
  }
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

async function prepare(
  at: string,
  stores: { readonly database: string; readonly redis: string },
): Promise<TreeGateway> {
  const gateway = await TreeGateway.prepare(at, stores);
  started.push(gateway);
  return gateway;
}

async function makeKeys(admin: Admin): Promise<readonly { readonly id: string; readonly value: string }[]> {
  const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 1_000_000_000 }];
  const keys: { id: string; value: string }[] = [];
  for (let count = 0; count < 5; count += 1) {
    const made = await admin('POST', 'keys', {
      name: `upgraded ${count}`,
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

/** Has the old gateway end and start again on tables that the new one has changed. Returns what is wrong. */
async function restartOld(old: TreeGateway, balancer: Balancer): Promise<readonly string[]> {
  await stopOld(old, balancer);
  try {
    await old.start();
  } catch (error) {
    return [`the old version does not start beside the new one: ${String(error).slice(0, 1_000)}`];
  }
  balancer.resume(old.url);
  while (!balancer.isReady(old.url)) await pause(20);
  say('the old version has started again beside the new one');
  return [];
}

/** Stops the old gateway once the balancer sends it nothing new, because old versions close their port at once. */
async function stopOld(old: TreeGateway, balancer: Balancer): Promise<void> {
  balancer.pause(old.url);
  await pause(1_000);
  const exit = await old.stop();
  say(`the old version ended with ${exit}`);
}

/** Saves the database under load, fills another one from the file, and compares what that holds. */
async function backUpAndRestore(
  fresh: TreeGateway,
  keys: readonly { readonly id: string }[],
): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-upgrade-backup-'));
  const file = join(folder, 'backup.sluice');
  try {
    fresh.run('backup', file);
    say('the database is saved');
    const database = await postgres.createDatabase();
    const restored = await prepare(root, { database, redis: redis.url });
    restored.run('restore', file);
    await restored.start();
    const admin = await administer(restored.url, adminPassword);
    const { sums } = (await admin('GET', 'usage/sums?by=keyId')) as unknown as {
      readonly sums: readonly { readonly group: string; readonly calls: number }[];
    };
    const used = keys.map(({ id }) => ({
      id,
      calls: sums.find(({ group }) => group === id)?.calls ?? 0,
      owners: [],
    }));
    const { calls, spent, problems } = await compareSums((path) => admin('GET', path), used);
    say(`restored: ${calls} calls, ${spent} micro-dollars`);
    await restored.stop();
    return problems.filter((problem) => !problem.endsWith('still reserved')).map((one) => `restored: ${one}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
