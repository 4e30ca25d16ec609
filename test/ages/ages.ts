/**
 * `npm run ages`: fills a database with a million calls of 5,000 keys in 30 days, and prints what each read of the admin API costs: its
 * time, the CPU time of the thread that serves calls, the slowest call beside it, and with PostgreSQL how many rows were read.
 * `--only-keys`: no calls; what a start, the memory, the first call of a key and the lists of keys cost.
 * `--postgres` for a PostgreSQL of its own instead of an SQLite file; `--calls`, `--keys` and `--days` for another size. `--tree PATH`:
 * measures another checkout first, which makes the database, and this one on the same data; with `--unmeasured` it only makes the database.
 * `--members` and `--teams`: keys and calls have owners; with `--summed`, there are sums of all calls and records of the newest alone. `--database URL`: fills that database, where it has no records (with `--only-keys`, no keys) yet, and keeps it;
 * `--only-fill` fills it with all sums and measures no reads; `--only-reads` leaves out what changes it. `--reads WORDS`: only reads whose name has these words.
 * `--times N`: each read N times after one that is not counted, and the median of these.
 * Sums of 1 hour to 30 days are compared with the records, unless `--reads` or `--summed` is given.
 * `--quick`: fills a PostgreSQL with owners, records and sums by few statements, for many millions of calls.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { makePartitions } from '../../core/money/usage-log/partitions.ts';
import { openDatabase } from '../../core/state/database/index.ts';
import { startPostgres } from '../support/postgres.ts';
import { disagreements } from './agreement.ts';
import { fill, fillKeys } from './fill.ts';
import { fillOwners } from './owners.ts';
import { fillQuickly } from './quick.ts';
import { startAged, type AgedGateway } from './gateway.ts';
import { describe, fillColdKeys, reportKeys } from './keys.ts';
import { openStatements, type Age, type Statements } from './statements.ts';
import { reportSumming, reportWrites } from './writes.ts';
import { bytesOf, measure, readsOf, type ReadCost } from './measure.ts';

const { values } = parseArgs({
  options: {
    postgres: { type: 'boolean', default: false },
    calls: { type: 'string', default: '1000000' },
    keys: { type: 'string', default: '5000' },
    days: { type: 'string', default: '30' },
    members: { type: 'string', default: '0' },
    teams: { type: 'string', default: '100' },
    summed: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    database: { type: 'string' },
    'only-fill': { type: 'boolean', default: false },
    'only-reads': { type: 'boolean', default: false },
    tree: { type: 'string' },
    unmeasured: { type: 'boolean', default: false },
    'only-keys': { type: 'boolean', default: false },
    reads: { type: 'string', default: '' },
    times: { type: 'string', default: '1' },
  },
});
const age: Age = {
  calls: values['only-keys'] ? 0 : Number(values.calls),
  keys: Number(values.keys),
  days: Number(values.days),
  members: Number(values.members),
  teams: Number(values.teams),
  isSummed: values.summed,
};
const here = resolve(import.meta.dirname, '../..');
const trees = [...(values.tree === undefined || values.unmeasured ? [] : [resolve(values.tree)]), here];
const folder = mkdtempSync(join(tmpdir(), 'sluice-ages-data-'));
const isSqlite = !(values.database?.startsWith('postgres') ?? values.postgres);
const postgres = isSqlite || values.database !== undefined ? undefined : await startPostgres();
const url =
  values.database ??
  (postgres === undefined ? `sqlite:${join(folder, 'sluice.db')}` : await postgres.createDatabase('hasty'));

try {
  // It makes the tables.
  await (await startAged(resolve(values.tree ?? here), url)).end();
  const statements = await openStatements(url);
  const [newest] = await statements.run(
    values['only-keys']
      ? `SELECT 0 AS at FROM keyv WHERE namespace = 'api-keys' AND key = '${'0'.repeat(64)}'`
      : 'SELECT MAX(at) AS at FROM usage_records',
  );
  const isFilled = (newest?.['at'] ?? null) !== null;
  const now = isFilled && !values['only-keys'] ? Number(newest?.['at']) : Date.now();
  if (!isSqlite && !isFilled) await partition(statements, now);
  const begun = performance.now();
  if (!isFilled) await (values.quick ? quickly(statements, now) : fill(statements, isSqlite, age, now));
  console.log(`${age.calls} calls of ${age.keys} keys in ${age.days} days, filled in ${seconds(begun)} s`);
  if (values['only-keys'] && !isFilled) await fillColdKeys(statements);
  if (values['only-fill']) await reportSumming(here, url);
  for (const tree of values['only-fill'] ? [] : trees)
    await (values['only-keys'] ? reportKeys(tree, url, age.keys, statements) : report(tree, statements, now));
  await statements.close();
} finally {
  await postgres?.close();
  rmSync(folder, { recursive: true, force: true });
}

/** Makes the partitions that there would be, in a database of a version that has some. */
async function partition(statements: Statements, now: number): Promise<void> {
  const [row] = await statements.run("SELECT to_regclass('usage_records_before') IS NOT NULL AS has");
  if (row?.['has'] !== true) return;
  const database = openDatabase(url);
  try {
    if (database.kind !== 'postgres') return;
    await makePartitions(database, age.days, now - (age.days + 3) * 86_400_000);
    await makePartitions(database, age.days, now);
  } finally {
    await database.close();
  }
}

async function quickly(statements: Statements, now: number): Promise<void> {
  await fillKeys(statements, false, age);
  await fillOwners(statements, false, age, now);
  await fillQuickly(statements, age, now);
}

async function report(tree: string, statements: Statements, now: number): Promise<void> {
  console.log(`\n${tree}`);
  if (!values['only-reads']) await reportSumming(tree, url);
  const gateway = await startAged(tree, url);
  try {
    console.log(`started: ${describe(gateway)}`);
    await catchUp(gateway, statements);
    if (!isSqlite && !values['only-reads']) await statements.run('VACUUM ANALYZE');
    const reads = readsOf(age, now).filter(([name]) => name.includes(values.reads));
    const costs = await measure(gateway, reads, statements, { isSqlite, times: Number(values.times) });
    console.log(
      '| read | ms | CPU ms of the worker | CPU ms of the server | slowest call ms | rows read | KB |\n|---|---|---|---|---|---|---|',
    );
    for (const cost of costs) console.log(lineOf(cost));
    // With sums of a formula there are hardly any records.
    if (values.reads === '' && !age.isSummed) await compare(gateway, statements, now);
    let sum = 0;
    for (const [name, bytes] of await bytesOf(statements, isSqlite)) {
      sum += bytes;
      console.log(`${name}: ${(bytes / age.calls).toFixed(1)} bytes a call`);
    }
    console.log(`all: ${(sum / age.calls).toFixed(1)} bytes a call`);
  } finally {
    await gateway.end();
  }
  if (!values['only-reads']) await reportWrites(tree, url, age, now);
}

/** Says whether the sums agree with the records, and lets the run fail where they do not. */
async function compare(gateway: AgedGateway, statements: Statements, now: number): Promise<void> {
  const found = await disagreements(gateway, statements, now);
  for (const sentence of found) console.log(`WRONG: ${sentence}`);
  console.log(found.length === 0 ? 'sums agree with the records' : `${found.length} sums are wrong`);
  if (found.length > 0) process.exitCode = 1;
}

/** Waits until the sums of what was there before are made, where the gateway has such. */
async function catchUp(gateway: AgedGateway, statements: Statements): Promise<void> {
  const begun = performance.now();
  while ((await statements.run('SELECT 1 FROM usage_unsummed LIMIT 1')).length > 0) await pause(500);
  while ((await gateway.ask('usage/sums?by=status')).includes('incompleteBefore')) await pause(500);
  console.log(`records were summed after ${seconds(begun)} s`);
  let seen = '';
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- until it stands still
    const folds = JSON.stringify(
      await statements.run('SELECT COUNT(*) AS folds, MAX(after) AS after FROM usage_folds'),
    );
    if (folds === seen) break;
    seen = folds;
    // oxlint-disable-next-line no-await-in-loop
    await pause(20_000);
  }
  console.log(`sums were folded after ${seconds(begun)} s`);
}

function lineOf({ name, ms, mainCpu, serverCpu, slowestCall, rows, bytes, failure }: ReadCost): string {
  const figures = [ms, mainCpu, serverCpu, slowestCall]
    .map((figure) => figure?.toFixed(1) ?? '–')
    .join(' | ');
  const kilobytes = (bytes / 1_000).toFixed(0);
  return `| ${name} | ${figures} | ${rows ?? '–'} | ${kilobytes}${failure === undefined ? '' : ` ${failure}`} |`;
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1_000).toFixed(1);
}
