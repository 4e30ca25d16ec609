import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { childrenOf } from '../../reload/gateway.ts';
import { sluiceProgram } from '../../support/program.ts';

const key = `sk-${'L'.repeat(48)}`;
const config = `
  import { defineConfig } from 'sluice';
  import demo from '../../../channels/demo/index.ts';
  export default defineConfig({ overload: { lag: 600_000 }, channels: [demo()] });`;

/** A gateway whose log goes where a test wants it, so that the test learns by asking that it serves. */
interface Logging {
  readonly child: ChildProcess;
  call(): Promise<number>;
  metric(name: string): Promise<number>;
  stop(): Promise<number | string>;
}

async function startWith(stdout: number | 'pipe'): Promise<Logging> {
  const folder = operatorFolder({ 'gateway.config.ts': config });
  const port = await freePort();
  const child = spawn(
    process.execPath,
    [...sluiceProgram, 'start', '--config', join(folder, 'gateway.config.ts')],
    {
      env: {
        PATH: process.env.PATH,
        SLUICE_PORT: String(port),
        SLUICE_HOST: '127.0.0.1',
        SLUICE_BOOTSTRAP_KEY: key,
        SLUICE_ADMIN_PASSWORD: 'correct horse battery',
      },
      stdio: ['ignore', stdout, 'ignore'],
    },
  );
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = new Promise<number | string>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal ?? '')),
  );
  const url = `http://127.0.0.1:${port}`;
  const call = async (): Promise<number> => {
    const reply = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hello' }] }),
    });
    await reply.text();
    return reply.status;
  };
  while ((await call().catch(() => 0)) !== 200) {
    if (child.exitCode !== null) throw new Error(`The gateway ended with ${child.exitCode}.`);
    await pass(150);
  }
  return {
    child,
    call,
    async metric(name) {
      const text = await (await fetch(`${url}/metrics`)).text();
      return Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
    },
    async stop() {
      const workers = childrenOf(child.pid ?? 0);
      expect(workers.length).toBeGreaterThan(0);
      child.kill('SIGTERM');
      const how = await ended;
      for (const worker of workers) expect(() => process.kill(worker, 0)).toThrow('ESRCH');
      return how;
    },
  };
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await pass(50);
}

const lost = 'sluice_log_lines_lost_total';

/** Asks until lines have been lost, and then some more: the gateway has seen its log fail, and goes on. */
async function servesWhileItLoses(gateway: Logging): Promise<void> {
  await until(async () => {
    expect(await gateway.call()).toBe(200);
    return (await gateway.metric(lost)) > 3;
  });
  const workers = childrenOf(gateway.child.pid ?? 0);
  for (let calls = 0; calls < 5; calls += 1) expect(await gateway.call()).toBe(200);
  expect(childrenOf(gateway.child.pid ?? 0)).toEqual(workers);
}

describe('a log that cannot be written', () => {
  test('because its disk is full stops no call, and the gateway ends when it is told to', async () => {
    const full = openSync('/dev/full', 'w');
    const gateway = await startWith(full);
    closeSync(full);
    await servesWhileItLoses(gateway);
    expect(await gateway.stop()).toBe(0);
  });

  test('because its reader is gone stops no call, and the gateway ends when it is told to', async () => {
    const gateway = await startWith('pipe');
    gateway.child.stdout?.destroy();
    await servesWhileItLoses(gateway);
    expect(await gateway.stop()).toBe(0);
  });

  test('because nobody reads it stops no call, and the gateway ends when it is told to', async () => {
    const gateway = await startWith('pipe');
    // Nobody has asked for its data: what fits into the pipe is all that is taken.
    for (let round = 0; round < 20; round += 1)
      expect(new Set(await Promise.all(Array.from({ length: 20 }, () => gateway.call())))).toEqual(
        new Set([200]),
      );
    expect(await gateway.stop()).toBe(0);
  });

  test('for a while says how many lines are missing when it can be written again', async () => {
    const path = join(operatorFolder(), 'log');
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(path, 'w');
    const gateway = await startWith(writer);
    closeSync(writer);
    closeSync(reader);
    await servesWhileItLoses(gateway);
    const again = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    onTestFinished(() => closeSync(again));
    let text = '';
    const read = (): string => {
      const bytes = Buffer.alloc(65_536);
      try {
        text += bytes.toString('utf8', 0, readSync(again, bytes));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      }
      return text;
    };
    await until(async () => {
      await gateway.call();
      return read().includes('log lines were lost');
    });
    const lines = text
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const lostLine = lines.find(({ msg }) => msg === 'log lines were lost: they could not be written');
    expect(lostLine).toMatchObject({ level: 'warn', why: 'EPIPE' });
    expect(lostLine?.['lines']).toBeGreaterThan(3);
    expect(lines.filter(({ msg }) => msg === 'a call was answered').length).toBeGreaterThan(0);
    expect(await gateway.stop()).toBe(0);
  });

  test.skipIf(!mayMount())(
    'because its small disk is full goes on where it stopped when there is room',
    async () => {
      const folder = operatorFolder();
      const disk = join(folder, 'disk');
      mkdirSync(disk);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', disk]);
      onTestFinished(() => void execFileSync('umount', ['-l', disk]));
      const path = join(disk, 'log');
      writeFileSync(join(disk, 'ballast'), Buffer.alloc(49_152));
      const file = openSync(path, 'a');
      const gateway = await startWith(file);
      closeSync(file);
      await servesWhileItLoses(gateway);
      rmSync(join(disk, 'ballast'));
      await until(async () => {
        await gateway.call();
        return readFileSync(path, 'utf8').includes('"why":"ENOSPC"');
      });
      // What was cut by the end of the disk is closed before the next line.
      const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
      const lossIndex = lines.findIndex((line) => line.includes('log lines were lost'));
      for (const line of lines.slice(lossIndex)) expect(() => JSON.parse(line) as unknown).not.toThrow();
      expect(await gateway.stop()).toBe(0);
    },
  );
});

/** True when this user may mount a small disk, which even root may not in a container. */
function mayMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', folder], { stdio: 'ignore' });
    execFileSync('umount', [folder], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
