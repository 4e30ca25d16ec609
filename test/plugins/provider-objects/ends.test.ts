import { GoogleGenAI } from '@google/genai';
import { toFile } from 'openai';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { JsonObject } from 'sluice';
import type { InternalTools } from 'sluice/internal';
import type { ObjectStore } from '../../../core/money/provider-objects/index.ts';
import type { ProviderObject } from '../../../core/model/provider-objects.ts';
import anthropic from '../../../channels/anthropic.ts';
import gemini from '../../../channels/gemini.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { NeedsByModel } from '../../../plugins/provider-objects/needs.ts';
import { accountOfReferences } from '../../../plugins/provider-objects/pin.ts';
import { accountOf } from '../../../plugins/provider-objects/account.ts';
import { formatNamed } from '../../../core/sdk/testing/formats.ts';
import { makeCall } from '../../../core/sdk/testing/call.ts';
import { startAnthropicObjects } from '../../support/anthropic-objects.ts';
import { startGateway } from '../../support/gateway.ts';
import { startGeminiObjects } from '../../support/gemini-objects.ts';
import { charges } from './_records.ts';
import { batchLine, startStage } from './_stage.ts';

const slow = { poll: { first: 60_000, most: 60_000 } };

async function geminiStage() {
  const provider = await startGeminiObjects();
  const gateway = await startGateway({
    plugins: [providerObjects(slow)],
    prices: { 'gemini-*': { input: 1, output: 4 } },
    channels: [gemini({ key: 'AIza', baseUrl: `${provider.url}/v1beta`, models: ['gemini-a'] })],
  });
  onTestFinished(async () => {
    await gateway.close();
    await provider.close();
  });
  const client = async (record = {}) => {
    const { value } = await gateway.apiKeys.create({ name: 'one', ...record });
    return new GoogleGenAI({ apiKey: value, httpOptions: { baseUrl: gateway.url } });
  };
  return { provider, gateway, client };
}

describe('a batch of generateContent', () => {
  test('is cancelled by its key alone, and charged for what it has done by then', async () => {
    const { provider, gateway, client } = await geminiStage();
    const [mine, theirs] = [await client(), await client()];
    const { name = '' } = await mine.batches.create({
      model: 'gemini-a',
      src: [{ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }],
    });
    await expect(theirs.batches.cancel({ name })).rejects.toMatchObject({ status: 404 });
    expect(provider.requests.filter(({ path }) => path.includes('cancel'))).toEqual([]);
    await mine.batches.cancel({ name });
    expect(provider.requests.at(-1)).toMatchObject({ method: 'POST', path: `/v1beta/${name}:cancel` });
    expect(provider.requests.at(-1)?.body.toString()).toBe('{}');
    expect(await charges(gateway)).toEqual([]);
    const usageMetadata = { promptTokenCount: 100, candidatesTokenCount: 50, totalTokenCount: 150 };
    provider.finish(
      name.replace('batches/', ''),
      [{ response: { candidates: [], modelVersion: 'gemini-a', usageMetadata } }],
      'inline',
    );
    await mine.batches.get({ name });
    expect(await charges(gateway)).toMatchObject([{ model: 'gemini-a', input: 100, output: 50 }]);
  });

  test('names the request that cannot be read, for a key with a budget', async () => {
    const { gateway } = await geminiStage();
    const { value } = await gateway.apiKeys.create({
      name: 'poor',
      budgets: [{ unit: 'micro-dollar', period: 'total', amount: 1_000_000 }],
    });
    const requests = [
      { request: { contents: [{ parts: [{ text: 'a' }] }] } },
      { request: { contents: 'nothing' } },
    ];
    const response = await fetch(`${gateway.url}/v1beta/models/gemini-a:batchGenerateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': value, 'content-type': 'application/json' },
      body: JSON.stringify({ batch: { inputConfig: { requests: { requests } } } }),
    });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('batch.inputConfig.requests.requests[1].request: contents');
  });
});

describe('a batch of messages', () => {
  test('has no results below it while it runs, and cannot be made of what is no list of requests', async () => {
    const provider = await startAnthropicObjects();
    const gateway = await startGateway({
      plugins: [providerObjects(slow)],
      channels: [anthropic({ key: 'sk-ant', baseUrl: `${provider.url}/v1`, models: ['claude-a'] })],
    });
    onTestFinished(async () => {
      await gateway.close();
      await provider.close();
    });
    const send = async (path: string, body?: unknown) => {
      const response = await fetch(`${gateway.url}/v1/messages/batches${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: {
          'x-api-key': gateway.key,
          'anthropic-version': '2023-06-01',
          'content-type': 'application/json',
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, text: await response.text() };
    };
    const params = { model: 'claude-a', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] };
    for (const [body, named] of [
      [{}, 'requests'],
      [{ requests: {} }, 'requests'],
      [{ requests: ['x'] }, 'requests[0].params'],
      [{ requests: [{ params }, { params: 'x' }] }, 'requests[1].params'],
      [{ requests: [{ params: { ...params, model: 1 } }] }, 'requests[0].params.model'],
    ] as const) {
      // oxlint-disable-next-line no-await-in-loop
      const refused = await send('', body);
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(named)]);
    }
    expect(provider.requests).toEqual([]);
    const made = await send('', { requests: [{ custom_id: 'one', params }] });
    const { id } = JSON.parse(made.text) as { id: string };
    const early = await send(`/${id}/results`);
    expect([early.status, early.text]).toEqual([404, expect.stringContaining('are not there yet')]);
    expect(provider.requests.some(({ path }) => path.endsWith('/results'))).toBe(false);
  });
});

describe('a provider that does not answer', () => {
  test('leaves lists as they were last seen, and an object that is asked for is an error', async () => {
    const { a, client } = await startStage(slow);
    const mine = await client();
    const store = await mine.vectorStores.create({ name: 'notes' });
    await a.close();
    expect((await mine.vectorStores.list()).data.map(({ id }) => id)).toEqual([store.id]);
    await expect(mine.vectorStores.retrieve(store.id)).rejects.toMatchObject({ status: 502 });
  });

  test('and has an object no more: it is in no list, and forgotten', async () => {
    const { a, client } = await startStage(slow);
    const mine = await client();
    const file = await mine.files.create({ file: await toFile(Buffer.from('x'), 'x'), purpose: 'user_data' });
    a.files.delete(file.id);
    await expect(mine.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 });
    expect((await mine.files.list()).data).toEqual([]);
    const requestsBefore = a.requests.length;
    await expect(mine.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 });
    expect(a.requests).toHaveLength(requestsBefore);
  });
});

test('an object that may have changed is in no list when its provider has it no more', async () => {
  const { a, client } = await startStage(slow);
  const mine = await client();
  await mine.vectorStores.create({ name: 'notes' });
  a.failWith = { status: 404, body: { error: { message: 'No such vector store.' } } };
  expect((await mine.vectorStores.list()).data).toEqual([]);
  a.failWith = undefined;
  const requestsBefore = a.requests.length;
  expect((await mine.vectorStores.list()).data).toEqual([]);
  expect(a.requests).toHaveLength(requestsBefore);
});

test.each(['', '\n', ' \r\n\t\n'])('no batch is made of a file without a line: %j', async (text) => {
  const { a, client } = await startStage(slow);
  const mine = await client();
  const file = await mine.files.create({
    file: await toFile(Buffer.from(text), 'b.jsonl'),
    purpose: 'batch',
  });
  const batch = mine.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
  await expect(batch).rejects.toMatchObject({ status: 400, param: 'input_file_id' });
  expect(a.batches.size).toBe(0);
});

test('words of a client that look like a model are none of what is made, but in an eval', async () => {
  const { client, gateway } = await startStage(slow);
  const mine = await client({ models: ['gpt-a'] });
  const store = await mine.vectorStores.create({ name: 'notes', metadata: { model: 'gpt-other' } });
  expect(store.id).toBeDefined();
  const key = mine.apiKey;
  const evaluate = (grader: unknown): Promise<Response> =>
    fetch(`${gateway.url}/v1/evals`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        name: 'e',
        data_source_config: { type: 'custom', item_schema: {} },
        testing_criteria: [null, grader],
      }),
    });
  expect((await evaluate({ type: 'label_model', model: 'gpt-other' })).status).toBe(403);
  expect((await evaluate({ type: 'label_model', inner: { model: 'gpt-other' } })).status).toBe(403);
  expect((await evaluate({ type: 'label_model', model: 'gpt-a', inner: null })).status).toBe(200);
});

test('a batch is asked about once more where it is deleted or below it while it runs', async () => {
  const { a, client } = await startStage(slow);
  const mine = await client();
  const file = await mine.files.create({
    file: await toFile(Buffer.from(batchLine('gpt-a')), 'b.jsonl'),
    purpose: 'batch',
  });
  const batch = await mine.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
  const cancelled = await mine.batches.cancel(batch.id);
  expect(cancelled.id).toBe(batch.id);
  expect(a.requests.at(-1)).toMatchObject({ method: 'POST', path: `/v1/batches/${batch.id}/cancel` });
});

describe('where the objects of a call are', () => {
  const catalog = {
    channels: [
      { id: 'a', keys: [{ id: 'k1' }, { id: 'k2' }] },
      { id: 'b', keys: [{ id: 'k1' }] },
      { id: 'none', keys: [] },
    ],
  } as unknown as InternalTools['catalog'];
  const objects: Readonly<Record<string, { channel: string; key: string }>> = {
    one: { channel: 'a', key: 'k1' },
    same: { channel: 'a', key: 'k1' },
    otherKey: { channel: 'a', key: 'k2' },
    otherChannel: { channel: 'b', key: 'k1' },
  };
  const store = {
    find: (_owner: string, _kind: string, id: string) => Promise.resolve(objects[id]),
    isOwned: (_kind: string, id: string) => Promise.resolve(id.startsWith('owned')),
  } as unknown as ObjectStore;
  const find = async (ids: readonly string[], foreign = false, mayPass?: () => boolean) => {
    const { call } = await makeCall();
    const references = ids.map((id) => ({ kind: 'chat-completions/files', id, path: `at.${id}` }));
    return accountOfReferences(call, references, { store, catalog, foreign }, mayPass);
  };

  test('is one provider account: the same channel and the same key', async () => {
    expect(await find(['one', 'same'])).toMatchObject({ channel: { id: 'a' }, key: { id: 'k1' } });
    expect(await find([])).toBeUndefined();
    for (const other of ['otherKey', 'otherChannel'])
      // oxlint-disable-next-line no-await-in-loop
      await expect(find(['one', other])).rejects.toMatchObject({
        code: 'invalid_value',
        param: `at.${other}`,
      });
  });

  test('is no business of the gateway where nobody has them here, and it may let them through', async () => {
    await expect(find(['nobody'])).rejects.toMatchObject({ param: 'at.nobody' });
    expect(await find(['nobody'], true)).toBeUndefined();
    expect(await find(['nobody', 'one'], false, () => true)).toMatchObject({ channel: { id: 'a' } });
    await expect(find(['owned'], true)).rejects.toMatchObject({ param: 'at.owned' });
    await expect(find(['owned'], false, () => true)).rejects.toMatchObject({ param: 'at.owned' });
  });

  test('is the first key of the channel where theirs was replaced, and 503 where the channel is gone', () => {
    const at = (channel: string, key: string): unknown =>
      accountOf({ channel, key } as unknown as ProviderObject, catalog);
    expect(at('a', 'k2')).toMatchObject({ key: { id: 'k2' } });
    expect(at('a', 'replaced')).toMatchObject({ key: { id: 'k1' } });
    for (const channel of ['gone', 'none'])
      expect(() => at(channel, 'k1')).toThrow(
        expect.objectContaining({ code: 'no_available_channel', retryable: false }) as Error,
      );
  });
});

describe('what requests of a batch may use', () => {
  test('is thinking on top of answers that nobody limits, and nothing on top of limited ones', async () => {
    const codec = (await formatNamed('messages')).codecs.chat!;
    const chat = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };
    const thinking = { type: 'enabled', budget_tokens: 2_000 };
    const needs = (body: JsonObject) => {
      const all = new NeedsByModel();
      all.add('m', codec, body);
      return all.all['m'];
    };
    expect(needs({ ...chat, max_tokens: 3_000, thinking })).toMatchObject({
      calls: 1,
      output: 3_000,
      open: 0,
      thinking: 0,
    });
    const completions = (await formatNamed('chat-completions')).codecs.chat!;
    const all = new NeedsByModel();
    all.add('m', completions, { ...chat, n: 3 });
    all.add('m', completions, { ...chat, n: 2, max_tokens: 10 });
    all.add('other', completions, { ...chat, max_completion_tokens: 7 });
    expect(all.all['m']).toMatchObject({ calls: 2, open: 3, output: 20, images: 0, unseen: 0 });
    expect(all.all['other']).toMatchObject({ calls: 1, open: 0, output: 7 });
    const more = new NeedsByModel(all.all);
    more.add('m', completions, { ...chat, max_tokens: 5 });
    expect(more.all['m']).toMatchObject({ calls: 3, open: 3, output: 25 });
    expect(more.all['m']?.longest).toBe(all.all['m']?.longest);
    expect(more.all['m']?.input).toBe((all.all['m']?.input ?? 0) + (all.all['other']?.input ?? 0));
  });
});
