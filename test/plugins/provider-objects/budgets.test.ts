import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI, { toFile } from 'openai';
import { expect, onTestFinished, test } from 'vitest';
import anthropic from '../../../channels/anthropic.ts';
import gemini from '../../../channels/gemini.ts';
import openai from '../../../channels/openai.ts';
import { openLedger } from '../../../core/money/ledger/open.ts';
import type { Budget } from '../../../core/sdk/budget.ts';
import providerObjects from '../../../plugins/provider-objects/index.ts';
import { startAnthropicObjects } from '../../support/anthropic-objects.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startGeminiObjects } from '../../support/gemini-objects.ts';
import { startOpenaiObjects, type OpenaiObjects } from '../../support/openai-objects.ts';
import { charges } from './_records.ts';
import { startStage } from './_stage.ts';

const slow = { poll: { first: 60_000, most: 60_000 } };
const dollars = (amount: number): Budget => ({ unit: 'micro-dollar', period: 'total', amount: amount * 1e6 });
const tokens = (amount: number): Budget => ({ unit: 'token', period: 'total', amount });

/** A line that may answer with so many tokens. */
const line = (most: number | undefined, model = 'gpt-a', id = 'one') =>
  JSON.stringify({
    custom_id: id,
    method: 'POST',
    url: '/v1/chat/completions',
    body: {
      model,
      messages: [{ role: 'user', content: 'Hello' }],
      ...(most === undefined ? {} : { max_tokens: most }),
    },
  });

async function begin(client: OpenAI, ...lines: readonly string[]): Promise<OpenAI.Batches.Batch> {
  const file = await client.files.create({
    file: await toFile(Buffer.from(lines.join('\n')), 'batch.jsonl'),
    purpose: 'batch',
  });
  return client.batches.create({
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  });
}

const answer = (input: number, output: number) => () => ({
  object: 'chat.completion',
  model: 'gpt-a',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
});

async function standing(
  { stores }: Pick<TestGateway, 'stores'>,
  keyId: string,
  budget: Budget,
): Promise<{ readonly spent: number; readonly reserved: number }> {
  const [state] = await openLedger(stores).states(keyId, [budget]);
  return { spent: state?.spent ?? 0, reserved: state?.reserved ?? 0 };
}

const refused = { status: 429, code: 'insufficient_quota' };

test('a batch that may exceed a budget is refused with a sentence, and is not made', async () => {
  const { a, client } = await startStage(slow);
  // Half of 100,000 tokens at 8 dollars a million is 40 cents.
  const poor = await client({ budgets: [dollars(0.4)] });
  await expect(begin(poor, line(100_000))).rejects.toMatchObject({
    ...refused,
    message: expect.stringMatching(/^429 The total budget of this API key \(\$0\.40\) does not allow this/),
  });
  await expect(begin(poor, line(50_000), line(50_001, 'gpt-a', 'two'))).rejects.toMatchObject(refused);
  // Nobody limits these answers: each may be as long as the model's longest.
  const lines = Array.from({ length: 10 }, (_, index) => line(undefined, 'gpt-a', `of-${index}`));
  await expect(begin(poor, ...lines)).rejects.toMatchObject(refused);
  const few = await client({ budgets: [tokens(1000)] });
  await expect(begin(few, line(1000))).rejects.toMatchObject(refused);
  expect(a.batches.size).toBe(0);
  expect((await begin(few, line(500))).status).toBe('validating');
  expect((await begin(poor, line(90_000))).status).toBe('validating');
});

test('what a batch may come to is held until it is charged, and what it did not need is free again', async () => {
  const { a, client, gateway } = await startStage(slow);
  const budget = dollars(1);
  const mine = await client({ budgets: [budget] });
  const batch = await begin(mine, line(235_000));
  const held = await standing(gateway, mine.keyId, budget);
  expect(held.spent).toBe(0);
  expect(held.reserved).toBeGreaterThan(940_000);
  expect(held.reserved).toBeLessThan(941_000);
  const sendChat = () =>
    mine.chat.completions.create({
      model: 'gpt-a',
      max_tokens: 30_000,
      messages: [{ role: 'user', content: 'Hello' }],
    });
  await expect(sendChat()).rejects.toMatchObject(refused);
  a.finish(batch.id, answer(1000, 1000));
  expect((await mine.batches.retrieve(batch.id)).status).toBe('completed');
  expect(await standing(gateway, mine.keyId, budget)).toEqual({ spent: 5000, reserved: 0 });
  expect((await sendChat()).choices).toHaveLength(1);
});

test('of batches that are made at the same time so many are made as a budget has room for', async () => {
  const { a, client, gateway } = await startStage(slow);
  const budget = dollars(1);
  const mine = await client({ budgets: [budget] });
  const file = await mine.files.create({
    file: await toFile(Buffer.from(line(100_000)), 'batch.jsonl'),
    purpose: 'batch',
  });
  const made = await Promise.allSettled(
    Array.from({ length: 6 }, () =>
      mine.batches.create({
        input_file_id: file.id,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      }),
    ),
  );
  expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  for (const one of made) if (one.status === 'rejected') expect(one.reason).toMatchObject(refused);
  expect(a.batches.size).toBe(2);
  expect((await standing(gateway, mine.keyId, budget)).reserved).toBeGreaterThan(800_000);
});

test.each(['failed', 'cancelled', 'expired'])(
  'a batch that has %s with nothing to show gives back what it held',
  async (status) => {
    const { a, client, gateway } = await startStage({ poll: { first: 20, most: 50 } });
    const budget = dollars(1);
    const mine = await client({ budgets: [budget] });
    const { id } = await begin(mine, line(200_000));
    Object.assign(a.batches.get(id) ?? {}, { status });
    await eventually(async () =>
      expect(await standing(gateway, mine.keyId, budget)).toEqual({ spent: 0, reserved: 0 }),
    );
    expect((await begin(mine, line(200_000))).status).toBe('validating');
  },
);

test('a batch that its provider does not take holds nothing', async () => {
  const { a, client, gateway } = await startStage(slow);
  const budget = dollars(1);
  const mine = await client({ budgets: [budget] });
  const file = await mine.files.create({
    file: await toFile(Buffer.from(line(200_000)), 'batch.jsonl'),
    purpose: 'batch',
  });
  a.failWith = { status: 400, body: { error: { message: 'No.', type: 'invalid_request_error' } } };
  const batchOptions = { endpoint: '/v1/chat/completions', completion_window: '24h' } as const;
  await expect(mine.batches.create({ input_file_id: file.id, ...batchOptions })).rejects.toMatchObject({
    status: 400,
  });
  await eventually(async () =>
    expect(await standing(gateway, mine.keyId, budget)).toEqual({ spent: 0, reserved: 0 }),
  );
});

test.each([
  [
    '/v1/chat/completions',
    { messages: [{ role: 'user', content: 'Hello' }], max_completion_tokens: 100, n: 3 },
    300,
  ],
  ['/v1/responses', { input: 'Hello', max_output_tokens: 100 }, 100],
  ['/v1/completions', { prompt: ['Hello', 'Bye'], max_tokens: 100 }, 200],
  ['/v1/embeddings', { input: ['Hello', 'Bye'] }, 0],
  ['/v1/moderations', { input: 'Hello' }, 0],
])('what lines for %s may come to is known', async (url, body, output) => {
  const { client, gateway } = await startStage(slow);
  const budget = tokens(1000);
  const mine = await client({ budgets: [budget] });
  const text = JSON.stringify({ custom_id: 'one', method: 'POST', url, body: { model: 'gpt-a', ...body } });
  const file = await mine.files.create({
    file: await toFile(Buffer.from(text), 'batch.jsonl'),
    purpose: 'batch',
  });
  await mine.batches.create({
    input_file_id: file.id,
    endpoint: url as '/v1/embeddings',
    completion_window: '24h',
  });
  const { reserved } = await standing(gateway, mine.keyId, budget);
  expect(reserved).toBeGreaterThan(output);
  expect(reserved).toBeLessThan(output + 100);
});

test('a file whose lines are for another endpoint than the batch, or cannot be read, is no way around a budget', async () => {
  const { a, client } = await startStage(slow);
  const mine = await client({ budgets: [dollars(1)] });
  const other = JSON.stringify({
    custom_id: 'one',
    method: 'POST',
    url: '/v1/embeddings',
    body: { model: 'gpt-a', input: 'x', messages: [], max_tokens: 1e6 },
  });
  await expect(begin(mine, other)).rejects.toMatchObject({ status: 400, param: 'endpoint' });
  const odd = JSON.stringify({
    custom_id: 'two',
    method: 'POST',
    url: '/v1/chat/completions',
    body: { model: 'gpt-a', messages: 'Hello' },
  });
  await expect(begin(mine, line(10), odd)).rejects.toMatchObject({
    status: 400,
    message: expect.stringContaining('request 2'),
  });
  expect(a.batches.size).toBe(0);
});

test.each([
  ['input_blob', 'https://blobs.example/of-somebody.jsonl'],
  ['input_files', ['file-of-another']],
  ['requests', [{ custom_id: 'one', body: { model: 'gpt-b', messages: [] } }]],
  ['model', 'gpt-b'],
])('a batch that names requests or models beside its file, by %s, is not made', async (member, value) => {
  const { a, client } = await startStage(slow);
  const mine = await client({ models: ['gpt-a'] });
  const file = await mine.files.create({
    file: await toFile(Buffer.from(line(10)), 'batch.jsonl'),
    purpose: 'batch',
  });
  const batchOptions = {
    input_file_id: file.id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  } as const;
  await expect(mine.batches.create({ ...batchOptions, [member]: value })).rejects.toMatchObject({
    status: 400,
    param: member,
  });
  expect(a.batches.size).toBe(0);
  const all = {
    ...batchOptions,
    metadata: { a: 'b' },
    output_expires_after: { anchor: 'created_at', seconds: 3600 },
  };
  expect((await mine.batches.create({ ...all } as typeof batchOptions)).status).toBe('validating');
});

test('what a batch holds outlives the gateway that made it', async () => {
  const provider: OpenaiObjects = await startOpenaiObjects();
  const folder = await mkdtemp(join(tmpdir(), 'sluice-budget-'));
  onTestFinished(async () => {
    await provider.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const start = () =>
    startGateway({
      database: `sqlite:${join(folder, 'sluice.db')}`,
      plugins: [providerObjects({ poll: { first: 20, most: 50 } })],
      prices: { 'gpt-*': { input: 2, output: 8 } },
      channels: [openai({ key: 'sk-of-a', baseUrl: `${provider.url}/v1`, models: ['gpt-a'] })],
    });
  const clientOf = ({ url }: TestGateway, apiKey: string) =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
  const budget = dollars(1);
  const first = await start();
  const { value, record } = await first.apiKeys.create({ name: 'one', budgets: [budget] });
  const { id } = await begin(clientOf(first, value), line(200_000));
  await first.close();
  const second = await start();
  try {
    await expect(begin(clientOf(second, value), line(200_000))).rejects.toMatchObject(refused);
    expect((await standing(second, record.id, budget)).reserved).toBeGreaterThan(800_000);
    provider.finish(id, answer(1000, 1000));
    await eventually(async () => expect(await charges(second)).toHaveLength(1));
    expect(await standing(second, record.id, budget)).toEqual({ spent: 5000, reserved: 0 });
  } finally {
    await second.close();
  }
});

test('message batches and batches of generateContent are measured request by request', async () => {
  const [claude, google] = [await startAnthropicObjects(), await startGeminiObjects()];
  const gateway = await startGateway({
    plugins: [providerObjects(slow)],
    prices: { 'claude-a': { input: 3, output: 15 }, 'gemini-a': { input: 1, output: 4 } },
    channels: [
      anthropic({ key: 'sk-ant', baseUrl: `${claude.url}/v1`, models: ['claude-a'] }),
      gemini({ key: 'AIza', baseUrl: `${google.url}/v1beta`, models: ['gemini-a'] }),
    ],
  });
  onTestFinished(async () => {
    await gateway.close();
    await Promise.all([claude.close(), google.close()]);
  });
  const budget = dollars(1);
  const { value, record } = await gateway.apiKeys.create({ name: 'one', budgets: [budget] });
  const messages = new Anthropic({ baseURL: gateway.url, apiKey: value, maxRetries: 0 }).messages;
  const request = (most: number, id: string) => ({
    custom_id: id,
    params: {
      model: 'claude-a',
      max_tokens: most,
      messages: [{ role: 'user' as const, content: 'Hello' }],
    },
  });
  await expect(
    messages.batches.create({ requests: [request(70_000, 'one'), request(64_000, 'two')] }),
  ).rejects.toMatchObject({ status: 429, error: { error: { type: 'rate_limit_error' } } });
  expect(claude.batches.size).toBe(0);
  // Half of 40,000 tokens at 15 dollars a million.
  await messages.batches.create({ requests: [request(40_000, 'one')] });
  const held = await standing(gateway, record.id, budget);
  expect(held.reserved).toBeGreaterThan(300_000);
  expect(held.reserved).toBeLessThan(301_000);
  const genai = new GoogleGenAI({ apiKey: value, httpOptions: { baseUrl: gateway.url } });
  const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
  const batchOf = (maxOutputTokens: number) =>
    genai.batches.create({ model: 'gemini-a', src: [{ contents, config: { maxOutputTokens } }] });
  await expect(batchOf(400_000)).rejects.toMatchObject({ status: 429 });
  await batchOf(100_000);
  // Nobody limits this answer: it may have the 65,536 tokens that the model can give.
  const file = await genai.files.upload({
    file: new Blob([`${JSON.stringify({ key: 'one', request: { contents } })}\n`]),
    config: { mimeType: 'jsonl' },
  });
  await genai.batches.create({ model: 'gemini-a', src: file.name ?? '' });
  const both = await standing(gateway, record.id, budget);
  expect(both.reserved - held.reserved).toBeGreaterThan(331_000);
  expect(both.reserved - held.reserved).toBeLessThan(332_000);
});
