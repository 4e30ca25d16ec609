import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import OpenAI, { toFile } from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { openStores } from '../../core/state/stores.ts';
import { eventually } from '../support/eventually.ts';
import { startOpenaiObjects } from '../support/openai-objects.ts';
import { startProcess } from './_process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('a gateway that is killed while a batch runs, or while its results are read, loses no batch and no money', async () => {
  const provider = await startOpenaiObjects();
  onTestFinished(() => provider.close());
  const database = `sqlite:${join(temporaryFolder(), 'sluice.db')}`;
  const start = () =>
    startProcess(`
      database: '${database}',
      prices: { 'gpt-a': { input: 2, output: 8 } },
      plugins: [(await import('${root}plugins/provider-objects/index.ts')).default({ poll: { first: 50, most: 100, patience: 1000 } })],
      channels: [openai({ key: 'sk-of-a', baseUrl: '${provider.url}/v1', models: ['gpt-a'] })],
    `);
  const line = {
    custom_id: 'one',
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'gpt-a', max_tokens: 1000, messages: [{ role: 'user', content: 'Hello' }] },
  };
  const budget = { unit: 'micro-dollar', period: 'total', amount: 10_000 } as const;
  const before = openStores(database);
  const { value: apiKey, record } = await createApiKeys(before).create({ name: 'one', budgets: [budget] });
  await before.close();
  const standing = async (): Promise<readonly (number | undefined)[]> => {
    const stores = openStores(database);
    try {
      const [state] = await openLedger(stores).states(record.id, [budget]);
      return [state?.spent, state?.reserved];
    } finally {
      await stores.close();
    }
  };
  const first = await start();
  let id = '';
  let requestsBefore = 0;
  try {
    const client = new OpenAI({ baseURL: `${first.url}/v1`, apiKey, maxRetries: 0 });
    const file = await client.files.create({
      file: await toFile(Buffer.from(JSON.stringify(line)), 'b.jsonl'),
      purpose: 'batch',
    });
    ({ id } = await client.batches.create({
      input_file_id: file.id,
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    }));
    provider.finish(id, () => ({
      object: 'chat.completion',
      model: 'gpt-a',
      choices: [],
      usage: { prompt_tokens: 1000, completion_tokens: 0, total_tokens: 1000 },
    }));
    // The description is given and the results are not: it is killed with the batch in its hands.
    provider.holds = (path) => path.endsWith('/content');
    await eventually(() =>
      expect(provider.requests.some(({ path }) => path.endsWith('/content'))).toBe(true),
    );
  } finally {
    first.signal('SIGKILL');
    await first.exited;
    await first.end();
  }
  // Half of 1,000 tokens at 8 dollars a million and a few at 2: it may still come to that.
  const [spent, held = 0] = await standing();
  expect([spent, held > 4000 && held < 4100]).toEqual([0, true]);
  provider.holds = undefined;
  requestsBefore = provider.requests.length;

  const second = await start();
  try {
    const client = new OpenAI({ baseURL: `${second.url}/v1`, apiKey, maxRetries: 0 });
    await eventually(async () => expect((await client.batches.retrieve(id)).status).toBe('completed'));
  } finally {
    second.signal('SIGKILL');
    await second.exited;
    await second.end();
  }
  expect(provider.requests.length).toBeGreaterThan(requestsBefore);
  expect(await standing()).toEqual([1000, 0]);
  const third = await start();
  await third.end();
  const stores = openStores(database);
  try {
    const { records } = await openUsageLog(stores).page({}, 100);
    expect(records.filter(({ operation }) => operation === 'batch')).toMatchObject([
      { microDollars: 1000, input: 1000 },
    ]);
  } finally {
    await stores.close();
  }
});
