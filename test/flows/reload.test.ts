import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { configWith, operate, type OperatedGateway } from '../reload/gateway.ts';
import { ask, config, failed, marker, nextLine, reloaded, status } from './_reload.ts';
import { everything } from '../support/tries.ts';

let gateway: OperatedGateway | undefined;
afterEach(async () => {
  await gateway?.end();
  gateway = undefined;
});

const start = async (
  files: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<OperatedGateway> => {
  gateway = await operate(files, args);
  return gateway;
};

describe('a reload', () => {
  test('follows a changed file by itself with --watch: the config, a plugin, .env', async () => {
    const files = {
      'gateway.config.ts': configWith(
        `channels: [demo({ models: ['demo', process.env.EXTRA_MODEL ?? 'demo-one'] })]`,
      ),
    };
    const door = await start(files, ['--watch']);
    expect(await status(door, 'demo-two')).toBe(503);
    door.write('.env', 'EXTRA_MODEL=demo-two\n');
    await door.logged(reloaded, 1);
    expect(await status(door, 'demo-two')).toBe(200);
    // A folder that was not there before.
    door.write('plugins/marker.ts', marker('one'));
    await expect
      .poll(
        async () => {
          const answer = await ask(door);
          await text(answer);
          return answer.headers['x-mark'];
        },
        { interval: 100 },
      )
      .toBe('one');
    door.write('gateway.config.ts', 'export default nonsense;');
    await door.logged(failed);
    expect(await status(door, 'demo-two')).toBe(200);
  });

  test('ends calls in the process before with an error in their format when their time is over', async () => {
    const door = await start({ 'gateway.config.ts': config(`'demo'`, 'timeouts: { reload: 800 },') });
    const open = await ask(door, { words: 'hello !silence=30k', stream: true });
    door.signal('SIGHUP');
    expect(await text(open)).toContain('shutting down');
    await expect.poll(() => door.workers().length).toBe(1);
  });
});

describe('a reload of two workers', () => {
  let door: OperatedGateway;
  beforeAll(async () => {
    door = await operate({
      'gateway.config.ts': config(`'demo'`, 'workers: 2'),
      'plugins/marker.ts': marker('one'),
    });
  });
  afterAll(() => door.end());

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
    door.write('plugins/marker.ts', changing('two'));
    door.write('plugins/order.txt', '');
    door.signal('SIGHUP');
    await door.logged(reloaded);
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(door)));
    await Promise.all(answers.map((answer) => text(answer)));
    expect(new Set(answers.map(({ headers }) => headers['x-mark']))).toEqual(new Set(['last']));
    expect(door.lines('files changed while workers read them: restarting workers')).toHaveLength(1);
  });

  test.skipIf(!everything)(
    'follows by itself where files had changed when a worker was replaced',
    async () => {
      await expect.poll(() => door.workers().length).toBe(2);
      const next = nextLine(door, reloaded);
      door.write('plugins/marker.ts', marker('two'));
      const [worker = 0] = door.workers();
      process.kill(worker, 'SIGKILL');
      await next();
      const answers = await Promise.all(Array.from({ length: 12 }, () => ask(door)));
      await Promise.all(answers.map((answer) => text(answer)));
      expect(new Set(answers.map(({ headers }) => headers['x-mark']))).toEqual(new Set(['two']));
    },
  );
});
