import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { configWith, operate, type OperatedGateway } from '../reload/gateway.ts';
import { sendChat, config, failed, marker, nextLine, reloaded, status } from './_reload.ts';
import { everything } from '../support/tries.ts';

let started: OperatedGateway | undefined;
afterEach(async () => {
  await started?.end();
  started = undefined;
});

const start = async (
  files: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<OperatedGateway> => {
  started = await operate(files, args);
  return started;
};

describe('a reload', () => {
  test('follows a changed file by itself with --watch: the config, a plugin, .env', async () => {
    const files = {
      'gateway.config.ts': configWith(
        `channels: [demo({ models: ['demo', process.env.EXTRA_MODEL ?? 'demo-one'] })]`,
      ),
    };
    const gateway = await start(files, ['--watch']);
    expect(await status(gateway, 'demo-two')).toBe(503);
    gateway.write('.env', 'EXTRA_MODEL=demo-two\n');
    await gateway.logged(reloaded, 1);
    expect(await status(gateway, 'demo-two')).toBe(200);
    // A folder that was not there before.
    gateway.write('plugins/marker.ts', marker('one'));
    await expect
      .poll(
        async () => {
          const answer = await sendChat(gateway);
          await text(answer);
          return answer.headers['x-mark'];
        },
        { interval: 100 },
      )
      .toBe('one');
    gateway.write('gateway.config.ts', 'export default nonsense;');
    await gateway.logged(failed);
    expect(await status(gateway, 'demo-two')).toBe(200);
  });

  test('ends calls in the process before with an error in their format when their time is over', async () => {
    const gateway = await start({ 'gateway.config.ts': config(`'demo'`, 'timeouts: { reload: 800 },') });
    const open = await sendChat(gateway, { words: 'hello !silence=30k', stream: true });
    gateway.signal('SIGHUP');
    expect(await text(open)).toContain('shutting down');
    await expect.poll(() => gateway.workers().length).toBe(1);
  });
});

describe('a reload of two workers', () => {
  let gateway: OperatedGateway;
  beforeAll(async () => {
    gateway = await operate({
      'gateway.config.ts': config(`'demo'`, 'workers: 2'),
      'plugins/marker.ts': marker('one'),
    });
  });
  afterAll(() => gateway.end());

  test('during which files change again puts the same in force in all workers', async () => {
    // The first worker that finds the order reads one text of its marker, and leaves another one for those that start after it.
    const changing = (mark: string): string => `
      import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
      const order = new URL('order.txt', import.meta.url);
      if (existsSync(order)) {
        rmSync(order);
        const own = new URL(import.meta.url);
        writeFileSync(own, readFileSync(own, 'utf8').replaceAll("'x-mark': '${mark}'", "'x-mark': 'last'"));
      }
      ${marker(mark)}`;
    gateway.write('plugins/marker.ts', changing('two'));
    gateway.write('plugins/order.txt', '');
    gateway.signal('SIGHUP');
    await gateway.logged(reloaded);
    const answers = await Promise.all(Array.from({ length: 12 }, () => sendChat(gateway)));
    await Promise.all(answers.map((answer) => text(answer)));
    expect(new Set(answers.map(({ headers }) => headers['x-mark']))).toEqual(new Set(['last']));
    expect(gateway.lines('files changed while workers read them: restarting workers')).toHaveLength(1);
  });

  test.skipIf(!everything)(
    'follows by itself where files had changed when a worker was replaced',
    async () => {
      await expect.poll(() => gateway.workers().length).toBe(2);
      const next = nextLine(gateway, reloaded);
      gateway.write('plugins/marker.ts', marker('two'));
      const [worker = 0] = gateway.workers();
      process.kill(worker, 'SIGKILL');
      await next();
      const answers = await Promise.all(Array.from({ length: 12 }, () => sendChat(gateway)));
      await Promise.all(answers.map((answer) => text(answer)));
      expect(new Set(answers.map(({ headers }) => headers['x-mark']))).toEqual(new Set(['two']));
    },
  );
});
