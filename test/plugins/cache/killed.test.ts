import { expect, onTestFinished, test } from 'vitest';
import { start } from '../../core/cli/_process.ts';
import { eventually } from '../../support/eventually.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { startProvider } from './_provider.ts';
import { chat } from './_started.ts';
import { sluiceProgram } from '../../support/program.ts';

const key = `sk-${'k'.repeat(48)}`;

test('after a kill -9 of the primary the next one gives hits from the database, and makes new responses', async () => {
  const provider = await startProvider('chat-completions');
  onTestFinished(() => provider.close());
  const folder = operatorFolder({
    'gateway.config.ts': `
      import { defineConfig } from 'sluice';
      import openaiCompatible from '../../../channels/openai-compatible.ts';
      import cache from '../../../plugins/cache/index.ts';
      export default defineConfig({
        listen: { port: 0 },
        workers: 2,
        overload: { lag: 600_000 },
        plugins: [cache()],
        channels: [openaiCompatible({ name: 'up', id: 'up', key: 'k', baseUrl: '${provider.url}/v1', models: ['m'] })],
      });`,
  });
  const live = async () => {
    const running = start(
      process.execPath,
      [...sluiceProgram, 'start', '--config', `${folder}/gateway.config.ts`],
      {
        SLUICE_BOOTSTRAP_KEY: key,
      },
    );
    const [, url = ''] = await running.wrote(/listens on (http:\S+)/);
    return { running, gateway: { url: url.replace('localhost', '127.0.0.1'), key } };
  };
  const first = await live();
  expect((await chat(first.gateway)).cache).toBe('miss');
  // From then on both workers have it: it is in the database.
  await eventually(async () =>
    (await Promise.all(Array.from({ length: 8 }, () => chat(first.gateway)))).every(
      ({ cache }) => cache === 'hit',
    ),
  );
  const { length } = provider.requests;
  first.running.child.kill('SIGKILL');
  expect((await first.running.ended).signal).toBe('SIGKILL');

  const second = await live();
  expect((await chat(second.gateway)).cache).toBe('hit');
  expect(provider.requests).toHaveLength(length);
  expect((await chat(second.gateway, { temperature: 0.5 })).cache).toBe('miss');
});
