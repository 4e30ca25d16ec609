import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { createClient } from '@redis/client';
import { freePort } from './free-port.ts';

/** A Redis of the test's own, on a free port of 127.0.0.1, that keeps nothing on disk. */
export interface TestRedis {
  readonly url: string;
  /** Answers to one command, on a connection of its own. */
  command(...words: string[]): Promise<unknown>;
  /** Stops it at once, as a crash would: connections break, and what it held is gone. */
  kill(): Promise<void>;
  /** Starts it again on the same port, empty. */
  start(): Promise<void>;
  /** From now on it accepts connections and answers nothing, as a machine that hangs, until `resume`. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

/** A client that is never connected. Its duplicates cost a thousandth of what a client costs that the driver makes anew. */
const template = createClient({ RESP: 2 });

/** True when the program is installed. */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;

/** Why tests are skipped, for their title; undefined when they can run. Throws where the program is required. */
export function withoutRedis(): string | undefined {
  if (hasRedis) return undefined;
  if ((process.env.SLUICE_TEST_REQUIRE ?? '').split(',').includes('redis'))
    throw new Error('Redis is required by SLUICE_TEST_REQUIRE, and there is no redis-server.');
  return 'skipped: no redis-server';
}

/** Starts a server, with a password that needs `%` codes. Close it in `afterAll`. */
export async function startRedis(): Promise<TestRedis> {
  const port = await freePort();
  const password = 'a secret: 100%/@';
  const url = `redis://:${encodeURIComponent(password)}@127.0.0.1:${port}`;
  let server: ChildProcess | undefined;

  async function command(...words: string[]): Promise<unknown> {
    const client = template.duplicate({ url, socket: { reconnectStrategy: false } });
    client.on('error', () => {});
    await client.connect();
    try {
      return await client.sendCommand(words);
    } finally {
      client.destroy();
    }
  }

  async function start(): Promise<void> {
    const words = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
    const child = spawn('redis-server', [...words, '--requirepass', password], { stdio: 'ignore' });
    server = child;
    for (;;) {
      if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}.`);
      try {
        await command('PING');
        return;
      } catch {
        await setTimeout(20);
      }
    }
  }

  async function kill(): Promise<void> {
    const child = server;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  await start();
  return {
    url,
    command,
    kill,
    start,
    pause: () => void server?.kill('SIGSTOP'),
    resume: () => void server?.kill('SIGCONT'),
    close: kill,
  };
}
