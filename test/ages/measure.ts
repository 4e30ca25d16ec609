import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuOf, familyOf } from '../bench/proc.ts';
import { callId, keyId } from './fill.ts';
import { ownerReadsOf } from './owner-reads.ts';
import type { Age, Statements } from './statements.ts';
import type { AgedGateway } from './gateway.ts';

/** What one admin read costs. Milliseconds; `rows` that the database looked at, where it counts them. */
export interface ReadCost {
  readonly name: string;
  readonly ms: number;
  /** CPU time of the threads that serve calls, without that of the calls beside the read and of what they do anyway. */
  readonly mainCpu: number;
  /** CPU time of the database server; undefined with SQLite. */
  readonly serverCpu: number | undefined;
  /** Longest call beside the read; Infinity when one was refused. */
  readonly slowestCall: number;
  readonly rows: number | undefined;
  /** Length of the answer. */
  readonly bytes: number;
  readonly failure?: string;
}

const hour = 3_600_000;
const day = 24 * hour;

/** The admin reads that a page makes, with those that are hard: what is rare, what never occurs, orders that are not by time. */
export function readsOf(age: Age, now: number): readonly (readonly [name: string, path: string])[] {
  const { days, keys, calls } = age;
  const month = `since=${now - Math.min(days, 30) * day}`;
  const rare = `keyId=${keyId(keys - 2)}`;
  return [
    ['overview, 1 hour', 'overview?range=1h'],
    ['overview, 24 hours', 'overview?range=24h'],
    ['overview, 7 days', 'overview?range=7d'],
    ['overview, 30 days', 'overview?range=30d'],
    ['sums by key, 1 day', `usage/sums?by=keyId&since=${now - day}`],
    ['sums by key, 30 days', `usage/sums?by=keyId&${month}`],
    ['sums by model of one key, 30 days', `usage/sums?by=model&${month}&keyId=${keyId(0)}`],
    ['sums by time of one model, 30 days', `usage/sums?by=time&bucket=${day}&${month}&model=model-3`],
    ['channels', 'channels'],
    ['list, newest', 'usage?limit=50'],
    ['list of a busy key', `usage?limit=50&keyId=${keyId(0)}`],
    ['list of a rare key', `usage?limit=50&${rare}`],
    ['list of a key without calls', 'usage?limit=50&keyId=key_nobody'],
    ['list of a status that never occurs', 'usage?limit=50&status=418'],
    ['list of failures', 'usage?limit=50&outcome=failed'],
    ['list of a model that does not exist', 'usage?limit=50&model=nothing'],
    ['list of a busy key and a status that never occurs', `usage?limit=50&keyId=${keyId(0)}&status=418`],
    ['list of a channel and a duration that never occurs', 'usage?limit=50&channel=channel-1&minMs=900000'],
    ['longest calls', 'usage?limit=200&sort=duration'],
    ['most expensive calls, 1 day', `usage?limit=200&sort=cost&since=${now - day}`],
    ['longest calls of a model, 30 days', `usage?limit=200&sort=duration&model=model-3&${month}`],
    ['one call', `usage/${callId(Math.floor(calls / 2))}`],
    ...ownerReadsOf(age, now),
  ];
}

/** How reads are made. */
interface Way {
  readonly isSqlite: boolean;
  /** How often a read is counted, after once that is not; 1 for once in all. */
  readonly times: number;
}

/** Makes each read alone, which is what it costs, and once beside small calls. */
export async function measure(
  gateway: AgedGateway,
  reads: ReturnType<typeof readsOf>,
  statements: Statements,
  way: Way,
): Promise<readonly ReadCost[]> {
  const costs: ReadCost[] = [];
  for (let count = 0; count < 100; count += 1) await gateway.call();
  const server = way.isSqlite ? undefined : await serverPid(statements);
  for (const [name, path] of reads) {
    const found: ReadCost[] = [];
    if (way.times > 1) await gateway.ask(path).catch(() => {});
    for (let time = 0; time < way.times; time += 1)
      found.push(await measureOne(gateway, name, path, statements, server));
    const slowestCall = await slowestBeside(gateway, path);
    const middle = (of: (cost: ReadCost) => number): number =>
      found.map(of).toSorted((one, other) => one - other)[Math.floor(found.length / 2)] ?? 0;
    const [first] = found;
    if (first === undefined) continue;
    costs.push({
      ...first,
      ms: middle((one) => one.ms),
      mainCpu: middle((one) => one.mainCpu),
      serverCpu: way.isSqlite ? undefined : middle((one) => one.serverCpu ?? 0),
      slowestCall,
    });
  }
  return costs;
}

async function measureOne(
  gateway: AgedGateway,
  name: string,
  path: string,
  statements: Statements,
  server: number | undefined,
): Promise<Omit<ReadCost, 'slowestCall'> & { slowestCall: 0 }> {
  const rowsBefore = server === undefined ? 0 : await rowsRead(statements);
  const cpu = gateway.cpu().main;
  const ofServer = server === undefined ? 0 : serverCpu(server);
  const begun = performance.now();
  let failure: string | undefined;
  let bytes = 0;
  try {
    bytes = (await gateway.ask(path)).length;
  } catch (error) {
    failure = error instanceof Error ? error.message : String(error);
  }
  const ms = performance.now() - begun;
  const used = gateway.cpu().main - cpu;
  const usedByServer = server === undefined ? 0 : serverCpu(server) - ofServer;
  // A connection of the server says what it has read when it has been idle for a second.
  const idle = { cpu: gateway.cpu().main, since: performance.now() };
  await pause(1_500);
  const perMs = (gateway.cpu().main - idle.cpu) / (performance.now() - idle.since);
  const mainCpu = Math.max(0, used - perMs * ms);
  const cost = {
    name,
    ms,
    mainCpu,
    bytes,
    slowestCall: 0,
    ...(failure === undefined ? {} : { failure }),
  } as const;
  if (server === undefined) return { ...cost, serverCpu: undefined, rows: undefined };
  return { ...cost, serverCpu: usedByServer, rows: (await rowsRead(statements)) - rowsBefore };
}

/** The process that a server's connections are children of. */
async function serverPid(statements: Statements): Promise<number> {
  const [row] = await statements.run('SELECT pg_backend_pid() AS pid');
  return Number(statOf(Number(row?.['pid']))[1]);
}

/** Milliseconds of CPU time of a server and its connections, also of those that have ended. */
function serverCpu(pid: number): number {
  const fields = statOf(pid);
  // Time of children that have ended, in hundredths of a second.
  const ended = (Number(fields[13]) + Number(fields[14])) * 10;
  return cpuOf(familyOf(pid)) / 1_000 + ended;
}

/** What Linux tells of a process: its state, its parent, and so on. */
function statOf(pid: number): readonly string[] {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

/** Makes a read while small calls go on, one after the other; the milliseconds of the slowest of them. */
async function slowestBeside(gateway: AgedGateway, path: string): Promise<number> {
  let slowest = 0;
  const read = { isOver: false };
  const beside = async (): Promise<void> => {
    while (!read.isOver) {
      // A gateway that has too much to do refuses calls.
      slowest = Math.max(slowest, await gateway.call().catch(() => Infinity));
      await pause(10);
    }
  };
  const calling = beside();
  await gateway.ask(path).catch(() => {});
  read.isOver = true;
  await calling;
  return slowest;
}

async function rowsRead(statements: Statements): Promise<number> {
  const [row] = await statements.run(
    `SELECT COALESCE(SUM(seq_tup_read + COALESCE(idx_tup_fetch, 0)), 0)::bigint AS rows FROM pg_stat_user_tables WHERE relname LIKE 'usage%'`,
  );
  return Number(row?.['rows']);
}

/** Bytes of the usage log's tables and indexes, those of all partitions together. */
export async function bytesOf(
  statements: Statements,
  isSqlite: boolean,
): Promise<ReadonlyMap<string, number>> {
  const rows = await statements.run(
    isSqlite
      ? `SELECT name, SUM(pgsize) AS bytes FROM dbstat WHERE name LIKE 'usage%' OR name LIKE 'sqlite_autoindex_usage%' GROUP BY name ORDER BY name`
      : `SELECT name, SUM(bytes)::bigint AS bytes FROM (
           SELECT regexp_replace(relname, '_(before|other|[0-9]{8})', '') AS name, pg_relation_size(oid) AS bytes
           FROM pg_class WHERE relname LIKE 'usage%' AND relkind IN ('r', 'i')) AS relations GROUP BY name ORDER BY name`,
  );
  return new Map(rows.map(({ name, bytes }) => [String(name), Number(bytes)]));
}
