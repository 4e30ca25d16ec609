import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import cohereChannel from '../../channels/cohere/index.ts';
import jinaChannel from '../../channels/jina.ts';
import openaiChannel from '../../channels/openai.ts';
import modelAlias from '../../plugins/model-alias.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { type Ledger } from '../../core/money/ledger/index.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { type UsageLog } from '../../core/money/usage-log/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { eventually } from '../support/eventually.ts';

/** Tests that the pipeline handles other operations like chats, with embeddings and rerank as examples. */
let gateway: TestGateway;
let first: ScriptedUpstream;
let second: ScriptedUpstream;
let ledger: Ledger;
let usageLog: UsageLog;
let firstStatus = 200;

const vectors = JSON.stringify({
  object: 'list',
  model: 'x',
  data: [{ object: 'embedding', index: 0, embedding: [1, 2] }],
  usage: { prompt_tokens: 10, total_tokens: 10 },
});

beforeAll(async () => {
  first = await startUpstream((request, response) => {
    response.writeHead(firstStatus, { 'content-type': 'application/json' });
    if (firstStatus !== 200) response.end('{"error":{"message":"not today"}}');
    else if (request.url.endsWith('/rerank'))
      response.end(
        '{"id":"r","results":[{"index":0,"relevance_score":0.5}],"meta":{"billed_units":{"search_units":1}}}',
      );
    else response.end(vectors);
  });
  second = await startUpstream((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(vectors);
  });
  gateway = await startGateway({
    plugins: [modelAlias({ aliases: { embedder: 'vectors' } })],
    channels: [
      openaiChannel({ id: 'first', key: 'k1', baseUrl: `${first.url}/v1`, models: ['vectors'], priority: 1 }),
      jinaChannel({ id: 'second', key: 'k2', baseUrl: `${second.url}/v1`, models: ['vectors'] }),
      cohereChannel({ id: 'ranks', key: 'k3', baseUrl: first.url, models: ['ranker'] }),
    ],
    prices: { vectors: { input: 100, output: 0 }, ranker: { perCall: 0.002 } },
    health: { failures: 100 },
  });
  ledger = openLedger(gateway.stores);
  usageLog = openUsageLog(gateway.stores);
});
afterAll(async () => {
  await gateway.close();
  await Promise.all([first.close(), second.close()]);
});
beforeEach(() => {
  firstStatus = 200;
  first.requests.length = 0;
  second.requests.length = 0;
});

async function post(path: string, body: JsonObject, key = gateway.key) {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as JsonObject };
}

const embed = (key?: string, more: JsonObject = {}) =>
  post('/v1/embeddings', { model: 'vectors', input: 'Hello', ...more }, key);

describe('an operation besides chat', () => {
  test('fails over to a channel of another shape', async () => {
    firstStatus = 500;
    const { status, body } = await embed();
    expect(status).toBe(200);
    expect(body).toMatchObject({ model: 'vectors', usage: { prompt_tokens: 10, total_tokens: 10 } });
    expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
  });

  test('is not tried elsewhere when the caller is wrong', async () => {
    firstStatus = 400;
    expect(await embed()).toMatchObject({ status: 400, body: { error: { message: 'not today' } } });
    expect(second.requests).toHaveLength(0);
  });

  test('goes by an alias, and the reply carries the name that was asked for', async () => {
    const { body } = await post('/v1/embeddings', { model: 'embedder', input: 'Hello' });
    expect(body.model).toBe('embedder');
    expect(JSON.parse(first.requests[0]?.body.toString() ?? '')).toMatchObject({ model: 'vectors' });
  });

  test('is for those alone who may use the model', async () => {
    const { value } = await gateway.apiKeys.create({ name: 'other', models: ['ranker'] });
    expect(await embed(value)).toMatchObject({ status: 403, body: { error: { code: 'model_not_allowed' } } });
    expect(first.requests).toHaveLength(0);
  });

  test('is charged once, as it was recorded, and refused when the budget is spent', async () => {
    // 10 tokens at 100 dollars a million are 1000 micro-dollars.
    const budget = { unit: 'micro-dollar', period: 'day', amount: 4_500 } as const;
    const { value, record } = await gateway.apiKeys.create({ name: 'payer', budgets: [budget] });
    expect([(await embed(value)).status, (await embed(value)).status]).toEqual([200, 200]);
    await eventually(async () => {
      const [state] = await ledger.states(record.id, [budget]);
      expect(state).toMatchObject({ spent: 2_000, reserved: 0 });
    });
    const long = await embed(value, { input: 'x'.repeat(100) });
    expect(long).toMatchObject({ status: 429, body: { error: { code: 'insufficient_quota' } } });
    const { records } = await usageLog.page({ keyId: record.id }, 10);
    expect(
      records.map(({ operation, input, microDollars, status }) => [operation, input, microDollars, status]),
    ).toEqual(
      expect.arrayContaining([
        ['embed', 10, 1_000, 200],
        ['embed', 10, 1_000, 200],
      ]),
    );
  });

  test('is charged by the call where its model is priced so', async () => {
    const { value, record } = await gateway.apiKeys.create({ name: 'ranker' });
    const { status } = await post('/v1/rerank', { model: 'ranker', query: 'q', documents: ['a'] }, value);
    expect(status).toBe(200);
    await eventually(async () => {
      const { records } = await usageLog.page({ keyId: record.id }, 10);
      expect(records).toMatchObject([{ operation: 'rerank', microDollars: 2_000, input: 0, status: 200 }]);
    });
  });

  test('counts against the limits of its key', async () => {
    const { value } = await gateway.apiKeys.create({ name: 'limited', requestsPerMinute: 2 });
    const statuses = [await embed(value), await embed(value), await embed(value)].map(({ status }) => status);
    expect(statuses).toEqual([200, 200, 429]);
    const { value: small } = await gateway.apiKeys.create({ name: 'small', tokensPerMinute: 15 });
    expect((await embed(small)).status).toBe(200);
    expect((await embed(small, { input: 'x'.repeat(400) })).status).toBe(429);
  });

  test('says what a channel cannot carry', async () => {
    const { headers } = await post('/v2/rerank', {
      model: 'ranker',
      query: 'q',
      documents: ['a'],
      overlap_tokens: 3,
      odd: 1,
    });
    expect(headers.get('x-sluice-loss')).toBe('odd, overlap_tokens');
  });
});
