import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import { freePort } from './free-port.ts';
import { otherThanRoot, password } from './postgres.ts';

/** A PgBouncer of the test's own in transaction mode, on a free port of 127.0.0.1, before one server. */
export interface TestPgBouncer {
  /** The URL of a database of the server, through PgBouncer. */
  through(url: string): string;
  close(): Promise<void>;
}

/** Debian installs it in a folder that is only in root's PATH. */
const program = ['pgbouncer', '/usr/sbin/pgbouncer'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
);

/** Why tests are skipped, for their title; undefined when they can run. Throws where the program is required. */
export function withoutPgBouncer(): string | undefined {
  if (program !== undefined) return undefined;
  if ((process.env.SLUICE_TEST_REQUIRE ?? '').split(',').includes('pgbouncer'))
    throw new Error('PgBouncer is required by SLUICE_TEST_REQUIRE, and there is no pgbouncer.');
  return 'skipped: no pgbouncer';
}

/** Starts it before the server of this URL, with further lines of its configuration. Close it in `afterAll`. */
export async function startPgBouncer(server: string, ...lines: readonly string[]): Promise<TestPgBouncer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-pgbouncer-'));
  const identity = otherThanRoot();
  const port = await freePort();
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    if (identity !== undefined) chownSync(file, identity.uid, identity.gid);
    return file;
  };
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
  const users = write('users.txt', `"tester" "${password}"\n`);
  const config = write(
    'pgbouncer.ini',
    [
      '[databases]',
      `* = host=127.0.0.1 port=${new URL(server).port}`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
      `auth_type = scram-sha-256\nauth_file = ${users}`,
      // Fewer connections of the server than the gateways have: they are lent by the transaction.
      'pool_mode = transaction\ndefault_pool_size = 5\nmax_client_conn = 500',
      ...lines,
      '',
    ].join('\n'),
  );
  const child: ChildProcess = spawn(program ?? 'pgbouncer', [config], {
    ...identity,
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-4_000)));
  const through = (url: string): string => url.replace(/@127\.0\.0\.1:\d+/, `@127.0.0.1:${port}`);
  while (!(await answers(through(server)))) {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended: ${errors}`);
    await setTimeout(20);
  }
  return {
    through,
    async close() {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit');
        child.kill('SIGKILL');
        await ended;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
