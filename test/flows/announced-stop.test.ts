import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pass } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { configWith, key, operate, type OperatedGateway } from '../reload/gateway.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { SocketClient } from '../support/websocket.ts';
import { sendChat } from './_reload.ts';
import { sluiceProgram } from '../support/program.ts';

const announced = 'stopping soon: /readyz answers 503, and new connections are still served';
const stopping = 'stopping: waiting for running calls';

/** `script`, which belongs to every Linux, gives a program a terminal. */
const withoutTerminal = spawnSync('script', ['--version']).status !== 0;

/** Longer than the time in which two signals count as one key press. */
const between = 700;

async function start(members: string): Promise<OperatedGateway> {
  const gateway = await operate({ 'gateway.config.mjs': configWith(`channels: [demo()], ${members}`) });
  onTestFinished(() => gateway.end());
  return gateway;
}

/** Asks for a path over a connection of its own, unless an agent keeps one. */
const get = (
  gateway: OperatedGateway,
  path: string,
  agent: Agent | false = false,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request(`${gateway.url}${path}`, { agent }, resolve).once('error', reject).end();
  });

/** Statuses of several requests, each over a connection of its own, so that they reach all workers. */
async function statuses(gateway: OperatedGateway, path: string): Promise<(number | undefined)[]> {
  const responses = await Promise.all(Array.from({ length: 12 }, () => get(gateway, path)));
  await Promise.all(responses.map((response) => text(response)));
  return [...new Set(responses.map(({ statusCode }) => statusCode))];
}

const openSocket = (gateway: OperatedGateway, path: string): Promise<SocketClient> =>
  SocketClient.open(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${key}` } });

const create = { type: 'response.create', model: 'demo', input: 'hello' };

describe.each([1, 2])('a gateway with %i worker(s) that is told to stop', (workers) => {
  test('tells load balancers first and serves as before, then closes its port and lets open calls finish', async () => {
    const gateway = await start(`workers: ${workers}, timeouts: { drainDelay: 600_000, drain: 600_000 }`);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const kept = await get(gateway, '/readyz', agent);
    expect([kept.statusCode, kept.headers.connection, await text(kept)]).toEqual([
      200,
      'keep-alive',
      expect.stringContaining('ready'),
    ]);
    const open = await sendChat(gateway, { words: 'hello !silence=20k', stream: true });
    const socket = await openSocket(gateway, '/v1/responses');
    const realtime = await openSocket(gateway, '/v1/realtime?model=demo');

    gateway.signal('SIGTERM');
    expect(await gateway.logged(announced)).toMatchObject({ delay: 600_000, signal: 'SIGTERM' });
    await expect.poll(() => statuses(gateway, '/readyz')).toEqual([503]);
    const last = await get(gateway, '/readyz', agent);
    expect([last.statusCode, last.headers.connection]).toEqual([503, 'close']);
    expect(JSON.parse(await text(last))).toMatchObject({ status: 'draining', database: 'ok' });
    expect(await statuses(gateway, '/healthz')).toEqual([200]);
    const call = await sendChat(gateway, { agent });
    expect([call.statusCode, call.headers.connection]).toEqual([200, 'close']);
    expect(await text(call)).toContain('You said');
    socket.send(create);
    await socket.until(({ type }) => type === 'response.completed');
    const late = await openSocket(gateway, '/v1/responses');
    late.send(create);
    await late.until(({ type }) => type === 'response.completed');
    expect(realtime.socket.readyState).toBe(realtime.socket.OPEN);
    // Nothing that is loaded now would serve for long.
    gateway.signal('SIGHUP');

    await pass(between);
    gateway.signal('SIGTERM');
    await gateway.logged(stopping);
    await expect
      .poll(() => get(gateway, '/readyz').then(String, (error: Error) => error.message))
      .toMatch(/ECONN/);
    for (const one of [socket, late, realtime]) expect((await one.closed).code).toBe(1001);
    expect(await text(open)).toMatch(/data: \[DONE\]\n\n$/);
    expect(await gateway.exited).toBe(0);
    expect(gateway.lines('reloading')).toEqual([]);
  });
});

describe('the announcement of a stop', () => {
  test('lasts five seconds in production, then the gateway ends by itself', async () => {
    const gateway = await start('');
    gateway.signal('SIGTERM');
    expect(await gateway.logged(announced)).toMatchObject({ delay: 5_000 });
    expect(await gateway.exited).toBe(0);
    expect(gateway.lines(stopping)).toHaveLength(1);
  });

  test('ends with the last worker: nobody could be served any more', async () => {
    const gateway = await start('timeouts: { drainDelay: 600_000 }');
    gateway.signal('SIGTERM');
    await gateway.logged(announced);
    for (const pid of gateway.workers()) process.kill(pid, 'SIGKILL');
    expect(await gateway.exited).toBe(0);
  });

  test.skipIf(withoutTerminal)('is left out after Ctrl-C in a terminal', async () => {
    const folder = operatorFolder({
      'gateway.config.mjs': configWith('channels: [demo()], timeouts: { drainDelay: 600_000 }'),
    });
    const command = [
      process.execPath,
      ...sluiceProgram,
      'start',
      '--config',
      `${folder}/gateway.config.mjs`,
    ].join(' ');
    const child = spawn('script', ['-qfec', `exec ${command}`, '/dev/null'], {
      env: { PATH: process.env.PATH, NODE_ENV: 'production' },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const exited = once(child, 'close');
    await expect.poll(() => output).toContain('Channels');
    child.stdin.write('\x03');
    await exited;
    expect(output).toContain(stopping);
    expect(output).not.toContain(announced);
  });
});
