import { spawn, spawnSync, type ChildProcess, type SpawnSyncReturns } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { patience } from './patience.ts';
import { freePort } from './free-port.ts';

/** A PostgreSQL server of the test's own, on a free port of 127.0.0.1. */
export interface TestPostgres {
  /** The URL of a new database, with a password that needs `%` codes. `hasty`: with the patience that operators get by default; otherwise a busy machine is waited for. */
  createDatabase(hasty?: 'hasty'): Promise<string>;
  /** As `createDatabase`, with the tables of this version: a copy, which costs a quarter of what a gateway needs that makes the tables. */
  createDatabaseWithTables(): Promise<string>;
  /** Runs a statement in a database, on a connection of its own. */
  run(url: string, sql: string): Promise<Record<string, unknown>[]>;
  /** Stops it at once, as a crash would: connections break. */
  kill(): Promise<void>;
  /** Starts it again on the same port, with what it had. */
  start(): Promise<void>;
  /** From now on it accepts connections and answers nothing, as a machine that hangs, until `resume`. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

/** The password of the user `tester`. */
export const password = 'a secret: 100%/@';
const cache = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url));
const binaries = [
  ...readFolders('/usr/lib/postgresql').map((version) => join('/usr/lib/postgresql', version, 'bin')),
  ...(process.env.PATH ?? '').split(delimiter),
].find((folder) => existsSync(join(folder, 'initdb')));

/**
 * Programs of a server with the extension `vector`: in the folder that SLUICE_TEST_PGVECTOR names (such as `pgserver/pginstall/bin` of the
 * package `pgserver` from PyPI), or those of the system.
 */
const vectorBinaries = [process.env.SLUICE_TEST_PGVECTOR, binaries].find(hasVectors);

function hasVectors(folder: string | undefined): boolean {
  if (folder === undefined) return false;
  const shares = [
    join(folder, '../share'),
    join(folder, '../share/postgresql'),
    join('/usr/share/postgresql', /(\d+)\/bin$/.exec(folder)?.[1] ?? ''),
  ];
  return shares.some((share) => existsSync(join(share, 'extension/vector.control')));
}

/** True when the usual server has the extension `vector`. */
export const hasSystemVectors = hasVectors(binaries);

/** Why tests of vectors are skipped, for their title; undefined when they can run. Throws where the extension is required. */
export function withoutPgvector(): string | undefined {
  if (vectorBinaries !== undefined) return undefined;
  if ((process.env.SLUICE_TEST_REQUIRE ?? '').split(',').includes('pgvector'))
    throw new Error('pgvector is required by SLUICE_TEST_REQUIRE. Name a folder in SLUICE_TEST_PGVECTOR.');
  return 'skipped: no pgvector, see SLUICE_TEST_PGVECTOR';
}

/** True when the program is installed. */
export const hasPostgres = binaries !== undefined;

/** Why tests are skipped, for their title; undefined when they can run. Throws where the program is required. */
export function withoutPostgres(): string | undefined {
  if (hasPostgres) return undefined;
  if ((process.env.SLUICE_TEST_REQUIRE ?? '').split(',').includes('postgres'))
    throw new Error('PostgreSQL is required by SLUICE_TEST_REQUIRE, and there is no initdb.');
  return 'skipped: no postgres';
}

/** Options for starting a server. */
export interface PostgresOptions {
  /** A certificate and its key: the server speaks TLS. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string };
  /** Lines of `pg_hba.conf` in place of the usual ones. */
  readonly access?: string;
  /** The server has the extension `vector`. */
  readonly hasVectors?: true;
}

/** Starts a server with nothing in it. Close it in `afterAll`. */
export async function startPostgres(options: PostgresOptions = {}): Promise<TestPostgres> {
  const programs = (options.hasVectors ? vectorBinaries : binaries) ?? '';
  if (programs === '') throw new Error('There is no PostgreSQL.');
  const folder = mkdtempSync(join(tmpdir(), 'sluice-postgres-'));
  const identity = otherThanRoot();
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
  const ofProcess = { ...identity, cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C' } };
  const data = join(folder, 'data');
  const empty = emptyServer(programs);
  succeed(spawnSync('cp', ['-a', empty, data], { encoding: 'utf8' }));
  writeOwnFiles(data, options, identity);
  const port = await freePort();
  let server: ChildProcess | undefined;
  let databases = 0;
  let template: Promise<string> | undefined;
  // Files that are copied take half of the CPU of pages that are logged. Servers before 15 do nothing else.
  const strategy = Number(/postgres-(\d+)/.exec(basename(empty))?.[1]) < 15 ? '' : ' STRATEGY FILE_COPY';

  const urlOf = (database: string): string =>
    `postgres://tester:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;

  async function start(): Promise<void> {
    const settings = [
      'fsync=off',
      'full_page_writes=off',
      // Otherwise a process starts for each database in turn, all of them once a minute.
      'autovacuum_naptime=1h',
      'max_connections=200',
      'shared_buffers=32MB',
      'timezone=UTC',
      // In files of its folder: a server that is killed leaves other shared memory behind, 1 MiB each time.
      'dynamic_shared_memory_type=mmap',
    ];
    const child = spawn(
      join(programs, 'postgres'),
      [
        '-D',
        data,
        '-p',
        String(port),
        '-h',
        '127.0.0.1',
        '-k',
        folder,
        ...settings.flatMap((one) => ['-c', one]),
      ],
      { ...ofProcess, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    server = child;
    let errors = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-4_000)));
    for (;;) {
      if (child.exitCode !== null) throw new Error(`postgres ended: ${errors}`);
      try {
        await run(urlOf('postgres'), 'SELECT 1');
        return;
      } catch {
        await setTimeout(50);
      }
    }
  }

  async function kill(): Promise<void> {
    const child = server;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    for (const pid of familyOf(child.pid)) signal(pid, 'SIGKILL');
    await ended;
  }

  const signalAll = (name: NodeJS.Signals): void => {
    for (const pid of familyOf(server?.pid ?? 0)) signal(pid, name);
  };

  async function createDatabase(from = 'template1'): Promise<string> {
    const name = `test_${(databases += 1)}`;
    await run(urlOf('postgres'), `CREATE DATABASE ${name} TEMPLATE ${from}${strategy}`);
    return name;
  }

  const patient = (name: string): string => `${urlOf(name)}?answer_timeout=${patience.wait / 1_000}`;

  /** Makes the tables in a database that nobody else uses. */
  async function createTemplate(): Promise<string> {
    const name = await createDatabase();
    const { openStores } = await import('../../core/state/stores.ts');
    const stores = openStores(patient(name));
    try {
      await stores.ready();
    } finally {
      await stores.close();
    }
    return name;
  }

  await start();
  return {
    async createDatabase(hasty) {
      const name = await createDatabase();
      return hasty === undefined ? patient(name) : urlOf(name);
    },
    createDatabaseWithTables: async () =>
      patient(await createDatabase(await (template ??= createTemplate()))),
    run,
    kill,
    start,
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
    async close() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Writes what these options ask for among the files of a server. `ALTER SYSTEM` can change it. */
function writeOwnFiles(
  data: string,
  { tls, access }: PostgresOptions,
  identity: { readonly uid: number; readonly gid: number } | undefined,
): void {
  const write = (name: string, text: string): void => {
    const file = join(data, name);
    writeFileSync(file, text, { mode: 0o600 });
    if (identity !== undefined) chownSync(file, identity.uid, identity.gid);
  };
  if (access !== undefined) write('pg_hba.conf', access);
  if (tls === undefined) return;
  write('server.crt', tls.cert);
  write('server.key', tls.key);
  write('ca.crt', tls.ca);
  appendFileSync(join(data, 'postgresql.conf'), "ssl = on\nssl_ca_file = 'ca.crt'\n");
}

/**
 * The files of a server that holds nothing, to be copied: made by the first test that needs them and kept beside what else is kept
 * between runs, because making them takes ten times as long as a copy. Where two tests make them at once, the first is as good as the second.
 */
function emptyServer(programs: string): string {
  const initdb = join(programs, 'initdb');
  const [version = ''] = /[\d.]+/.exec(succeed(spawnSync(initdb, ['--version'], { encoding: 'utf8' }))) ?? [];
  const kept = join(cache, `postgres-${version}`);
  if (existsSync(kept)) return kept;
  const folder = mkdtempSync(join(tmpdir(), 'sluice-initdb-'));
  const identity = otherThanRoot();
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
  const passwordFile = join(folder, 'password');
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o644 });
  const data = join(folder, 'data');
  const access = ['-U', 'tester', '-A', 'scram-sha-256', '--pwfile', passwordFile];
  succeed(
    spawnSync(initdb, ['-D', data, ...access, '-E', 'UTF8', '--wal-segsize=1', '--no-sync'], {
      ...identity,
      cwd: folder,
      env: { PATH: process.env.PATH, LC_ALL: 'C' },
      encoding: 'utf8',
    }),
  );
  mkdirSync(cache, { recursive: true });
  const ours = mkdtempSync(join(cache, 'postgres-new-'));
  succeed(spawnSync('cp', ['-a', data, join(ours, 'data')], { encoding: 'utf8' }));
  try {
    // A folder with the final name is complete.
    renameSync(join(ours, 'data'), kept);
  } catch (error) {
    if (!existsSync(kept)) throw error;
  }
  for (const done of [folder, ours]) rmSync(done, { recursive: true, force: true });
  return kept;
}

/** Returns the output of a program. Throws when it failed. */
function succeed({ status, stdout, stderr, error }: SpawnSyncReturns<string>): string {
  if (status !== 0) throw error ?? new Error(stderr);
  return stdout;
}

async function run(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: patience.wait });
  client.on('error', () => {});
  try {
    await client.connect();
    return (await client.query(sql)).rows as Record<string, unknown>[];
  } finally {
    await client.end().catch(() => {});
  }
}

/** Returns a database as statements that a client can run, without owners and comments. */
export function dumpPostgres(url: string): string {
  const options = ['--no-owner', '--no-privileges', '--inserts', '--rows-per-insert=100'];
  const dump = spawnSync(join(binaries ?? '', 'pg_dump'), [...options, url.replace(/\?.*/, '')], {
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
  });
  // Lines with a backslash are for the program psql alone, and servers before 17 do not know the timeout.
  return succeed(dump).replaceAll(/^(?:--|\\|SET transaction_timeout).*\n/gm, '');
}

/** Servers refuse to run as root: whoever it was installed for, else nobody. */
export function otherThanRoot(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const [, , uid, gid] =
    users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody') ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

/** A process and its children. Each connection is a process of its own, in a group of its own. */
function familyOf(pid: number): number[] {
  const children = readFolders('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return new RegExp(`^\\d+ \\(.*\\) \\S ${pid} `, 's').test(readFileSync(`/proc/${name}/stat`, 'utf8'));
    } catch {
      return false;
    }
  });
  return [pid, ...children.map(Number)];
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

function readFolders(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).toSorted().toReversed() : [];
}
