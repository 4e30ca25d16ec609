import { GoogleGenAI } from '@google/genai';
import { describe, expect, onTestFinished, test } from 'vitest';
import azureOpenai from '../../../channels/azure-openai.ts';
import gemini from '../../../channels/gemini.ts';
import openaiCompatible from '../../../channels/openai-compatible.ts';
import openai from '../../../channels/openai.ts';
import sluice from '../../../channels/sluice.ts';
import type { Budget } from '../../../core/sdk/budget.ts';
import type { ChannelEntry } from '../../../core/sdk/define.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startGeminiObjects } from '../../support/gemini-objects.ts';
import { startOpenaiObjects } from '../../support/openai-objects.ts';

const budgets: Readonly<Record<string, Budget>> = {
  dollars: { unit: 'micro-dollar', period: 'total', amount: 1_000_000_000 },
  tokens: { unit: 'token', period: 'total', amount: 1_000_000_000 },
};

const channels: Readonly<Record<string, (url: string) => ChannelEntry>> = {
  openai: (url) => openai({ key: 'sk-there', baseUrl: `${url}/v1`, models: ['gpt-a'] }),
  azure: (url) => azureOpenai({ key: 'k', baseUrl: url, models: ['gpt-a'] }),
  compatible: (url) =>
    openaiCompatible({
      name: 'compatible',
      key: 'k',
      baseUrl: `${url}/v1`,
      models: ['gpt-a'],
      keeps: ['files', 'uploads', 'fine_tuning/jobs', 'vector_stores', 'containers', 'evals'],
    }),
  sluice: (url) => sluice({ key: 'k', baseUrl: `${url}/v1`, models: ['gpt-a'] }),
};

/** Sends requests with a key, whose budgets are then changed. */
async function startClient(channel: ChannelEntry) {
  const gateway: TestGateway = await startGateway({
    prices: { '*': { input: 1, output: 1 } },
    channels: [channel],
  });
  onTestFinished(() => gateway.close());
  const { value, record } = await gateway.apiKeys.create({ name: 'one' });
  return {
    gateway,
    value,
    limit: (budget: Budget) => gateway.apiKeys.update(record.id, { budgets: [budget] }),
    async send(path: string, body: object | FormData = {}) {
      const isForm = body instanceof FormData;
      const response = await fetch(gateway.url + path, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${value}`,
          ...(isForm ? {} : { 'content-type': 'application/json' }),
        },
        body: isForm ? body : JSON.stringify(body),
      });
      const json = (await response.json()) as { readonly id?: string; readonly error?: object };
      return { status: response.status, id: json.id ?? '', error: json.error };
    },
  };
}

const refused = (path: string) => ({
  status: 403,
  error: {
    message: `The cost of POST ${path} cannot be reserved in advance, so that an API key with a budget may not send it.`,
    code: 'forbidden',
  },
});

function form(): FormData {
  const data = new FormData();
  data.append('file', new Blob(['x']), 'x.txt');
  return data;
}

describe.each(Object.keys(channels))('at %s', (name) => {
  test.each(Object.keys(budgets))(
    'a key with a budget in %s starts nothing whose cost nobody knows in advance',
    async (unit) => {
      const provider = await startOpenaiObjects('a', name === 'azure' ? '/openai' : '');
      onTestFinished(() => provider.close());
      const channel = channels[name]?.(provider.url);
      const budget = budgets[unit];
      if (channel === undefined || budget === undefined) throw new Error('no such case');
      const { send, limit } = await startClient(channel);
      const create = async (path: string, body: object): Promise<string> => {
        const made = await send(path, body);
        expect([path, made.status]).toEqual([path, 200]);
        return made.id;
      };
      const kept = name === 'azure' ? ['vector_stores', 'containers'] : undefined;
      const isKept = (path: string): boolean => kept === undefined || kept.some((one) => path.includes(one));
      const bodies = [
        ['/v1/evals', { name: 'e', data_source_config: { type: 'custom' } }],
        ['/v1/fine_tuning/jobs', { model: 'gpt-a' }],
        ['/v1/vector_stores', { name: 'notes' }],
        ['/v1/containers', { name: 'box' }],
      ] as const;
      const own: Record<string, string> = {};
      for (const [path, body] of bodies.filter(([one]) => isKept(one)))
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        own[path] = `${path}/${await create(path, body)}`;
      const requestsBefore = provider.requests.length;
      await limit(budget);
      for (const [path, body] of bodies)
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        expect(await send(path, body)).toMatchObject(refused(path));
      const below: readonly (readonly [string, string, object])[] = [
        ['/v1/evals', '/runs', { data_source: { type: 'jsonl' } }],
        ['/v1/evals', '/runs/run_1', {}],
        ['/v1/evals', '/runs/run_1/resume', {}],
        ['/v1/evals', '', { name: 'e', testing_criteria: [] }],
        ['/v1/fine_tuning/jobs', '/resume', {}],
        ['/v1/vector_stores', '/files', {}],
        ['/v1/vector_stores', '/file_batches', {}],
        ['/v1/vector_stores', '/search', { query: 'What?' }],
        ['/v1/vector_stores', '', { expires_after: { anchor: 'last_active_at', days: 365 } }],
        ['/v1/containers', '/files', form()],
        ['/v1/containers', '/files', {}],
      ];
      for (const [path, rest, body] of below.filter(([one]) => isKept(one)))
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        expect(await send(`${own[path]}${rest}`, body)).toMatchObject(refused(`${own[path]}${rest}`));
      expect(provider.requests).toHaveLength(requestsBefore);
      const free: readonly (readonly [string, string, object])[] = [
        ['/v1/evals', '', { name: 'other' }],
        ['/v1/evals', '/runs/run_1/cancel', {}],
        ['/v1/fine_tuning/jobs', '/cancel', {}],
        ['/v1/fine_tuning/jobs', '/pause', {}],
        ['/v1/vector_stores', '', { name: 'other', metadata: {} }],
        ['/v1/vector_stores', '/file_batches/vsfb_1/cancel', {}],
      ];
      for (const [path, rest, body] of free.filter(([one]) => isKept(one)))
        // oxlint-disable-next-line no-await-in-loop -- one after the other
        expect([rest, (await send(`${own[path]}${rest}`, body)).status]).toEqual([rest, 200]);
    },
  );
});

describe('at Gemini', () => {
  async function startGemini() {
    const provider = await startGeminiObjects();
    onTestFinished(() => provider.close());
    const started = await startClient(
      gemini({ key: 'AIza', baseUrl: `${provider.url}/v1beta`, models: ['gemini-a', 'other-a'] }),
    );
    const client = new GoogleGenAI({
      apiKey: started.value,
      httpOptions: { baseUrl: started.gateway.url },
    });
    return { ...started, provider, client };
  }

  test.each(Object.entries(budgets))(
    'a key with a budget in %s puts no file into a file search store, because indexing has its price',
    async (_, budget) => {
      const { client, limit, provider } = await startGemini();
      const { name = '' } = await client.fileSearchStores.create({});
      const file = await client.files.upload({ file: new Blob(['x'], { type: 'text/plain' }) });
      const requestsBefore = provider.requests.length;
      await limit(budget);
      const error = { status: 403, message: expect.stringContaining('cannot be reserved in advance') };
      await expect(
        client.fileSearchStores.importFile({ fileSearchStoreName: name, fileName: file.name ?? '' }),
      ).rejects.toMatchObject(error);
      await expect(
        client.fileSearchStores.uploadToFileSearchStore({
          fileSearchStoreName: name,
          file: new Blob(['x'], { type: 'text/plain' }),
        }),
      ).rejects.toThrow(/403|cannot be reserved/);
      expect(provider.requests).toHaveLength(requestsBefore);
      expect((await client.fileSearchStores.create({})).name).toMatch(/^fileSearchStores\//);
    },
  );

  const cached = (model: string) => ({
    model,
    config: { contents: [{ role: 'user', parts: [{ text: 'A long text. '.repeat(4000) }] }], ttl: '3600s' },
  });

  test('a key with a budget keeps no content of a model whose storage has no price', async () => {
    const { client, limit, provider } = await startGemini();
    const { name = '' } = await client.caches.create(cached('other-a'));
    const requestsBefore = provider.requests.length;
    for (const budget of Object.values(budgets)) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await limit(budget);
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(client.caches.create(cached('other-a'))).rejects.toMatchObject({ status: 403 });
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      await expect(client.caches.update({ name, config: { ttl: '7200s' } })).rejects.toMatchObject({
        status: 403,
      });
    }
    expect(provider.requests).toHaveLength(requestsBefore);
  });

  test('a budget in tokens alone allows no storage, which uses no tokens; what is kept can be kept for less time', async () => {
    const { client, limit, provider } = await startGemini();
    const { name = '' } = await client.caches.create(cached('gemini-a'));
    const requestsBefore = provider.requests.length;
    await limit(budgets['tokens'] as Budget);
    await expect(client.caches.create(cached('gemini-a'))).rejects.toMatchObject({ status: 403 });
    await expect(client.caches.update({ name, config: { ttl: '7200s' } })).rejects.toMatchObject({
      status: 403,
    });
    expect(provider.requests).toHaveLength(requestsBefore);
    await client.caches.update({ name, config: { ttl: '60s' } });
    await limit(budgets['dollars'] as Budget);
    expect((await client.caches.create(cached('gemini-a'))).name).toMatch(/^cachedContents\//);
  });
});
