import Anthropic, { toFile } from '@anthropic-ai/sdk';
import { expect, onTestFinished, test } from 'vitest';
import anthropic from '../../../channels/anthropic.ts';
import openai from '../../../channels/openai.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startAnthropicObjects, type AnthropicObjects } from '../../support/anthropic-objects.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startOpenaiObjects } from '../../support/openai-objects.ts';
import { charges } from './_records.ts';

interface Stage {
  readonly provider: AnthropicObjects;
  readonly gateway: TestGateway;
  client(record?: object): Promise<Anthropic>;
}

async function startStage(): Promise<Stage> {
  const provider = await startAnthropicObjects();
  const other = await startOpenaiObjects();
  const gateway = await startGateway({
    plugins: [providerObjects({ poll: { first: 60_000, most: 60_000 } })],
    prices: { 'claude-*': { input: 3, output: 15 }, quick: { input: 1, output: 5 } },
    channels: [
      openai({ key: 'sk-of-o', baseUrl: `${other.url}/v1`, models: ['gpt-a'] }),
      anthropic({
        key: 'sk-ant-of-a',
        baseUrl: `${provider.url}/v1`,
        models: { 'claude-a': 'claude-a', quick: 'claude-small' },
      }),
    ],
  });
  onTestFinished(async () => {
    await gateway.close();
    await Promise.all([provider.close(), other.close()]);
  });
  return {
    provider,
    gateway,
    async client(record = {}) {
      const { value } = await gateway.apiKeys.create({ name: 'one', ...record });
      return new Anthropic({ baseURL: gateway.url, apiKey: value, maxRetries: 0 });
    },
  };
}

const request = (id: string, model: string) => ({
  custom_id: id,
  params: { model, max_tokens: 10, messages: [{ role: 'user' as const, content: 'Hello' }] },
});

const succeeded = (id: string, model: string) => ({
  custom_id: id,
  result: {
    type: 'succeeded',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1000, output_tokens: 100 },
    },
  },
});

test('a message batch goes its round with the official SDK, each model is charged at its price, and results come through the gateway', async () => {
  const { provider, client, gateway } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const { id } = await mine.messages.batches.create({
    requests: [request('one', 'claude-a'), request('two', 'quick')],
  });
  const sent = JSON.parse(provider.requests[0]?.body.toString() ?? '') as {
    requests: { params: { model: string } }[];
  };
  expect(sent.requests.map(({ params }) => params.model)).toEqual(['claude-a', 'claude-small']);
  expect(provider.requests[0]?.headers).toMatchObject({ 'x-api-key': 'sk-ant-of-a' });
  await expect(mine.messages.batches.results(id)).rejects.toThrow('results_url');
  await expect(mine.messages.batches.delete(id)).rejects.toMatchObject({ status: 409 });
  provider.finish(id, [
    succeeded('one', 'claude-a-20260101'),
    succeeded('two', 'claude-small-20260101'),
    { custom_id: 'three', result: { type: 'errored', error: { type: 'error' } } },
  ]);
  const ids: string[] = [];
  for await (const line of await mine.messages.batches.results(id)) ids.push(line.custom_id);
  expect(ids).toEqual(['one', 'two', 'three']);
  const records = await charges(gateway);
  expect(records.map(({ model, microDollars, input }) => [model, microDollars, input]).toSorted()).toEqual([
    ['claude-a', 2250, 1000],
    ['quick', 750, 1000],
  ]);
  const url = (await mine.messages.batches.retrieve(id)).results_url;
  expect(url).toBe(`${gateway.url}/v1/messages/batches/${id}/results`);

  await expect(theirs.messages.batches.retrieve(id)).rejects.toMatchObject({ status: 404 });
  await expect(theirs.messages.batches.cancel(id)).rejects.toMatchObject({ status: 404 });
  expect((await theirs.messages.batches.list()).data).toEqual([]);
  expect((await mine.messages.batches.list()).data.map((one) => one.id)).toEqual([id]);
  expect(await mine.messages.batches.delete(id)).toMatchObject({ id, type: 'message_batch_deleted' });
  expect(await charges(gateway)).toHaveLength(2);
});

test('pages of message batches go on in both directions', async () => {
  const { client } = await startStage();
  const mine = await client();
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1)
    ids.unshift((await mine.messages.batches.create({ requests: [request('one', 'claude-a')] })).id);
  const seen: string[] = [];
  for await (const { id } of mine.messages.batches.list({ limit: 2 })) seen.push(id);
  expect(seen).toEqual(ids);
  const before = await mine.messages.batches.list({ limit: 2, before_id: ids[4] ?? '' });
  expect(before.data.map(({ id }) => id)).toEqual([ids[2], ids[3]]);
});

test('files of messages are told apart from others at the same path, and calls that name them are checked', async () => {
  const { provider, client, gateway } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const betas = ['files-api-2025-04-14'];
  const file = await mine.beta.files.upload({
    file: await toFile(Buffer.from('a b'), 'f.txt', { type: 'text/plain' }),
  });
  expect(file).toMatchObject({ id: 'file_1', type: 'file' });
  expect(provider.requests[0]?.headers['anthropic-version']).toBeDefined();
  const seen: string[] = [];
  for await (const { id } of mine.beta.files.list()) seen.push(id);
  expect(seen).toEqual([file.id]);
  const sendMessage = (from: Anthropic) =>
    from.beta.messages.create({
      model: 'claude-a',
      max_tokens: 10,
      betas,
      messages: [
        { role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: file.id } }] },
      ],
    });
  expect((await sendMessage(mine)).content).toMatchObject([{ text: 'Hi' }]);
  await expect(sendMessage(theirs)).rejects.toMatchObject({ status: 404, error: { type: 'error' } });
  const content = await mine.beta.files.download(file.id);
  expect(await content.text()).toBe('a b');
  const asOthers = await fetch(`${gateway.url}/v1/files/${file.id}`, {
    headers: { authorization: `Bearer ${mine.apiKey}` },
  });
  expect([asOthers.status, await asOthers.json()]).toMatchObject([
    404,
    { error: { type: expect.any(String) } },
  ]);
  expect(await mine.beta.files.delete(file.id)).toMatchObject({ id: file.id });
});

test('a model that the key may not use, or that nobody serves, makes no batch', async () => {
  const { provider, client } = await startStage();
  const narrow = await client({ models: ['claude-a'] });
  const create = async (from: Anthropic, ...models: readonly string[]) =>
    from.messages.batches.create({ requests: models.map((model, index) => request(`r${index}`, model)) });
  await expect(create(narrow, 'claude-a', 'quick')).rejects.toMatchObject({ status: 403 });
  await expect(create(await client(), 'unknown')).rejects.toMatchObject({ status: 503 });
  expect(provider.batches.size).toBe(0);
  await eventually(() => expect(provider.requests).toEqual([]));
});

test('InvokeModel with Claude’s body names the key’s own files, as messages do', async () => {
  const { provider, client, gateway } = await startStage();
  const [mine, theirs] = [await client(), await client()];
  const { id } = await theirs.beta.files.upload({ file: await toFile(Buffer.from('x'), 'f.txt') });
  const requestsBefore = provider.requests.length;
  const sendMessage = (from: Anthropic) =>
    fetch(`${gateway.url}/model/claude-a/invoke`, {
      method: 'POST',
      headers: { authorization: `Bearer ${from.apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        anthropic_version: 'bedrock-2023-05-31',
        max_tokens: 10,
        messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: id } }] }],
      }),
    });
  const refused = await sendMessage(mine);
  expect([refused.status, await refused.text()]).toEqual([404, expect.stringContaining(id)]);
  expect(provider.requests.length).toBe(requestsBefore);
  await (await sendMessage(theirs)).text();
  expect(provider.requests.at(-1)?.path).toBe('/v1/messages');
});
