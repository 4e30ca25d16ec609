import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuOf, familyOf, threadsOf } from '../bench/proc.ts';
import { endsWithUs } from '../bench/processes.ts';
import { freePort } from '../support/free-port.ts';

/** A gateway of some tree, as `npm start` runs it with one worker, on a database. */
export interface AgedGateway {
  /** Asks the admin API; the answer's text. */
  ask(path: string): Promise<string>;
  /** Makes one small call, with another key than its own where one is named; resolves with the milliseconds that it took. */
  call(secret?: string): Promise<number>;
  /** Milliseconds of CPU time: of the threads that serve, and of all threads. */
  cpu(): { readonly main: number; readonly all: number };
  readonly startMs: number;
  /** CPU time of all threads until it was ready, in milliseconds. */
  readonly startCpu: number;
  /** Bytes that each of its processes holds: the primary, then workers. */
  memory(): readonly number[];
  end(): Promise<void>;
}

const key = 'sk-ages-0123456789abcdefghijklmnopqrstuvwxyz';
const password = 'ages of a gateway';

/** No record is removed: the default keeps 5,000,000. */
const retention = '{ days: 120, records: 1_000_000_000, sumDays: 3_650 }';

/** Starts the gateway of a tree on a database. */
export async function startAged(tree: string, database: string): Promise<AgedGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-ages-'));
  const port = await freePort();
  const config = join(folder, 'gateway.config.ts');
  writeFileSync(
    config,
    `import { defineConfig } from 'sluice';
import demo from 'sluice/channels/demo';
import usageLog from 'sluice/plugins/usage-log';
export default defineConfig({ listen: { port: ${port}, host: '127.0.0.1' }, plugins: [usageLog({ retention: ${retention} })], channels: [demo()], prices: { '*': { input: 3, output: 15 } } });
`,
  );
  const begun = performance.now();
  const child = spawn(process.execPath, [join(tree, 'core/cli/sluice.js'), 'start', '--config', config], {
    cwd: tree,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      ...process.env,
      SLUICE_DATABASE: database,
      SLUICE_DATA: join(folder, 'data'),
      SLUICE_ADMIN_PASSWORD: password,
      SLUICE_BOOTSTRAP_KEY: key,
      SLUICE_LOG: 'error',
    },
  });
  endsWithUs(child);
  const url = `http://127.0.0.1:${port}`;
  while (!(await isReady(url))) {
    if (child.exitCode !== null) throw new Error('the gateway ended');
    await pause(50);
  }
  const startMs = performance.now() - begun;
  const startCpu = cpuOf(familyOf(child.pid ?? 0)) / 1_000;
  const login = await fetch(`${url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ password }),
  });
  const cookie = (login.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const text = async (response: Response): Promise<string> => {
    const body = await response.text();
    if (!response.ok) throw new Error(`${response.status}: ${body.slice(0, 300)}`);
    return body;
  };
  return {
    startMs,
    startCpu,
    memory: () => familyOf(child.pid ?? 0).map(residentOf),
    ask: async (path) => text(await fetch(`${url}/api/admin/${path}`, { headers: { cookie } })),
    async call(secret = key) {
      const start = performance.now();
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
        body: JSON.stringify({ model: 'demo', max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] }),
      });
      await text(response);
      return performance.now() - start;
    },
    cpu() {
      const family = familyOf(child.pid ?? 0);
      const main = family.flatMap(threadsOf).reduce((sum, { isMain, used }) => sum + (isMain ? used : 0), 0);
      return { main: main / 1_000, all: cpuOf(family) / 1_000 };
    },
    async end() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).ok;
  } catch {
    return false;
  }
}

function residentOf(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes ?? 0) * 1024;
}
