import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Agent, request, type IncomingMessage } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { operatorFolder } from '../../support/operator-folder.ts';
import { sluice, start, startGatewayIn, type GatewayProcess } from './_process.ts';

const config = `
  import { defineConfig } from 'sluice';
  import demo from '../../../channels/demo/index.ts';
  export default defineConfig({ overload: { lag: 600_000 }, channels: [demo()] });`;

const main = fileURLToPath(new URL('../../../core/cli/sluice.js', import.meta.url));

const startArguments = (folder: string): string[] => ['start', '--config', join(folder, 'gateway.config.ts')];

/** Asks for a stream, on a connection that is not kept for another call unless an agent keeps it. */
function stream(
  { url, key }: GatewayProcess,
  words: string,
  agent: Agent | false = false,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    request(`${url}/v1/chat/completions`, { method: 'POST', headers, agent }, resolve)
      .once('error', reject)
      .end(JSON.stringify({ model: 'demo', stream: true, messages: [{ role: 'user', content: words }] }));
  });
}

function logLines(stdout: string): Record<string, unknown>[] {
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('sluice start', () => {
  test('says where it listens, the admin password, the first key, the plugins and the channels, and then only log lines', async () => {
    const folder = operatorFolder({ 'gateway.config.ts': config });
    const gateway = await startGatewayIn(folder);
    await text(await stream(gateway, 'hello'));
    // A client may have its answer before the line about it is written.
    await gateway.wrote(/"a call was answered"/);
    gateway.child.kill('SIGTERM');
    const { code, signal, stdout, stderr } = await gateway.ended;
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
    expect(stdout).toMatch(
      /^Sluice \d+\.\d+\.\d+ listens on http:\/\/localhost:\d+\n\nPassword of the dashboard at \/dashboard \(shown only once\):\n {2}(?:\w{6}-){3}\w{6}\n\nFirst API key \(shown only once\):\n {2}sk-\w{48}\n\nPlugins, .*\n {2}observe +\w.*, request-id/,
    );
    expect(stdout).toMatch(/\nChannels\n {2}demo +serves demo, /);
    const after = stdout.slice(stdout.indexOf('{'));
    expect(logLines(after)).toHaveLength(after.trim().split('\n').length);
    const infoLines = logLines(after).filter(({ level }) => level === 'info');
    expect(infoLines.map(({ msg }) => msg)).toEqual([
      'a call was answered',
      'stopping: waiting for running calls',
      'stopped',
    ]);
    expect(after).not.toContain(gateway.key);
    expect(existsSync(join(folder, 'data/sluice.db'))).toBe(true);
  });

  test('makes no second key, and shows none that the operator chose', async () => {
    const folder = operatorFolder({ 'gateway.config.ts': config });
    const first = start(process.execPath, [main, ...startArguments(folder)], {
      SLUICE_PORT: '0',
      SLUICE_BOOTSTRAP_KEY: 'chosen-by-the-operator',
    });
    const [, url = ''] = await first.wrote(/listens on (http:\S+)/);
    const status = async (key: string): Promise<number> =>
      (await fetch(`${url}/v1/models`, { headers: { 'x-api-key': key } })).status;
    expect(await status('chosen-by-the-operator')).toBe(200);
    expect(await status('chosen-by-another-one')).toBe(401);
    await first.wrote(/Channels/);
    expect(first.stdout()).not.toMatch(/chosen-by-the-operator|first API key/);
    first.child.kill('SIGTERM');
    await first.ended;
    const again = start(process.execPath, [main, ...startArguments(folder)], { SLUICE_PORT: '0' });
    await again.wrote(/Channels/);
    expect(again.stdout()).not.toContain('shown only once');
  });

  test('finishes open streams when it is told to stop, and does not wait for connections that clients keep open', async () => {
    const folder = operatorFolder({
      'gateway.config.ts': config.replace('channels:', 'timeouts: { drain: 600_000 }, channels:'),
    });
    const gateway = await startGatewayIn(folder);
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const open = await Promise.all([
      stream(gateway, 'hello !silence=700'),
      stream(gateway, 'hello !silence=500', agent),
    ]);
    gateway.child.kill('SIGTERM');
    await gateway.wrote(/"signal":"SIGTERM"/);
    await expect(fetch(`${gateway.url}/healthz`)).rejects.toThrow('fetch failed');
    for (const all of await Promise.all(open.map((response) => text(response))))
      expect(all).toMatch(/data: \[DONE\]\n\n$/);
    // Long before the time that open calls are given.
    expect(await gateway.ended).toMatchObject({ code: 0 });
  });

  test('ends at once when it is told so again, and not because one Ctrl-C came twice', async () => {
    const gateway = await startGatewayIn(operatorFolder({ 'gateway.config.ts': config }));
    const response = await stream(gateway, 'hello !silence=20k');
    gateway.child.kill('SIGINT');
    gateway.child.kill('SIGINT');
    await gateway.wrote(/"signal":"SIGINT"/);
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(gateway.child.exitCode).toBeNull();
    gateway.child.kill('SIGINT');
    expect(await gateway.ended).toMatchObject({ code: 1 });
    await expect(text(response)).rejects.toThrow('aborted');
  });

  test('shows every problem of a wrong config and ends with code 1', async () => {
    const folder = operatorFolder({
      'gateway.config.ts': `export default { lisen: {}, plugins: ['x'] };`,
      'plugins/broken.ts': `throw new Error('half written');`,
    });
    const { code, stdout, stderr } = await sluice(startArguments(folder));
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr.trim().split('\n')).toEqual([
      'gateway.config.ts: unknown option "lisen". Check the spelling, or remove it.',
      'gateway.config.ts, plugins[0]: not a plugin, but a string. Import one from plugins/, or from a package, and call it with its options.',
      expect.stringMatching(/plugins\/broken\.ts:1:7: cannot be loaded: half written$/),
    ]);
    expect(existsSync(join(folder, 'data'))).toBe(false);
  });

  test('says that its port is taken, and ends', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const port = String((other.address() as AddressInfo).port);
    const folder = operatorFolder({ 'gateway.config.ts': config });
    expect(await sluice(startArguments(folder), { SLUICE_PORT: port })).toMatchObject({
      code: 1,
      stderr: `Port ${port} on 127.0.0.1 is taken. Set listen.port or SLUICE_PORT to another one.\n`,
    });
  });

  test('names a config that is not there', async () => {
    const folder = operatorFolder();
    expect(await sluice(startArguments(folder))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${folder}/gateway.config.ts does not exist.`),
    });
  });

  test('writes down a failure that nobody caught, starts anew, and gives up when that helps nothing', async () => {
    const folder = operatorFolder({
      'gateway.config.ts': config,
      'plugins/careless.ts': `
        import { definePlugin } from 'sluice';
        export default definePlugin({
          name: 'careless',
          stage: 'observe',
          setup() {
            setTimeout(() => void Promise.reject(new Error('nobody listens to sk-0123456789abcdef')), 300);
            return (call, next) => next(call);
          },
        });`,
    });
    const { code, stdout, stderr } = await sluice(startArguments(folder), { SLUICE_PORT: '0' });
    expect(code).toBe(1);
    const failures = logLines(stdout).filter(({ level }) => level === 'fatal');
    expect(failures.length).toBeGreaterThanOrEqual(3);
    expect(failures[0]).toMatchObject({
      msg: 'unhandled rejection',
      error: { message: 'nobody listens to sk-…' },
    });
    expect(stderr).toMatch(/^(?:Worker processes|A worker process) exited .*3 times.*\n$/);
  });
});
