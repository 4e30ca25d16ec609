import { afterEach, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import bedrockChannel from '../../channels/bedrock/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';

let gateway: TestGateway | undefined;
let provider: ScriptedUpstream | undefined;
afterEach(async () => {
  await gateway?.close();
  await provider?.close();
  gateway = provider = undefined;
});

type Json = Record<string, unknown>;

/**
 * A request as botocore sends it: signed, with the key as access key id, and with the headers of every SDK of this family.
 * https://github.com/boto/botocore (botocore/handlers.py, add_retry_headers)
 */
async function signed(key: string, path: string, body?: Json): Promise<Response> {
  const scope = `${key}/20261123/us-east-1/bedrock/aws4_request`;
  return fetch((gateway as TestGateway).url + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      authorization: `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`,
      'x-amz-date': '20261123T000000Z',
      'amz-sdk-invocation-id': '0d3b2a1e-6f0c-4b7e-9d64-1a2b3c4d5e6f',
      'amz-sdk-request': 'attempt=1',
      'user-agent': 'Boto3/1.43.11 md/Botocore#1.43.11',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const read = async (answer: Response): Promise<Json> => (await answer.json()) as Json;

/** A key that may use these models and no other. */
async function keyFor(running: TestGateway, models: readonly string[]): Promise<string> {
  return (await running.apiKeys.create({ name: 'restricted', models })).value;
}

describe('the models of the control plane', () => {
  const start = async (): Promise<TestGateway> =>
    (gateway = await startGateway({ channels: [demo({ models: ['demo', 'vendor/with-slash'] })] }));
  const idsOf = ({ modelSummaries }: Json): unknown[] =>
    (modelSummaries as readonly Json[]).map(({ modelId }) => modelId).toSorted();

  test('are listed with every member that clients require', async () => {
    const { key } = await start();
    const answer = await signed(key, '/foundation-models');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-amzn-requestid')).toMatch(/^req_/);
    const list = await read(answer);
    expect(idsOf(list)).toEqual(['demo', 'vendor/with-slash']);
    expect((list.modelSummaries as readonly Json[]).find(({ modelId }) => modelId === 'demo')).toMatchObject({
      modelArn: expect.stringMatching(
        /^arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}::foundation-model\/demo$/,
      ) as string,
      modelName: 'demo',
      providerName: expect.any(String) as string,
      inputModalities: expect.arrayContaining(['TEXT']) as string[],
      outputModalities: ['TEXT'],
      responseStreamingSupported: true,
      inferenceTypesSupported: ['ON_DEMAND'],
      modelLifecycle: { status: 'ACTIVE' },
    });
  });

  test.each([
    ['byOutputModality=TEXT', ['demo', 'vendor/with-slash']],
    ['byOutputModality=EMBEDDING', []],
    ['byInferenceType=ON_DEMAND', ['demo', 'vendor/with-slash']],
    ['byInferenceType=PROVISIONED', []],
    ['byCustomizationType=FINE_TUNING', []],
    ['byProvider=nobody', []],
  ])('are filtered: %s', async (query, expected) => {
    const { key } = await start();
    expect(idsOf(await read(await signed(key, `/foundation-models?${query}`)))).toEqual(expected);
  });

  test.each(['byOutputModality=SOUND', 'byInferenceType=on', 'byCustomizationType=TUNING'])(
    'are not filtered by what the API does not have: %s',
    async (query) => {
      const { key } = await start();
      const answer = await signed(key, `/foundation-models?${query}`);
      expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([400, 'ValidationException']);
      const name = query.split('=')[0] ?? '';
      expect(await read(answer)).toEqual({
        message: expect.stringMatching(new RegExp(`^${name} must be one of `)) as string,
      });
    },
  );

  test('are given by the address that a provider has for them', async () => {
    gateway = await startGateway({ channels: [demo({ models: ['vendor.model-v1:0'] })] });
    const address = encodeURIComponent('arn:aws:bedrock:eu-west-1::foundation-model/vendor.model-v1:0');
    const { modelDetails } = await read(await signed(gateway.key, `/foundation-models/${address}`));
    expect(modelDetails).toMatchObject({ modelId: 'vendor.model-v1:0' });
  });

  test('are invoked by the address in which they are listed', async () => {
    const { key } = await start();
    const [first] = (await read(await signed(key, '/foundation-models'))).modelSummaries as readonly Json[];
    const body = {
      anthropic_version: 'bedrock-2023-05-31',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Hi' }],
    };
    const answer = await signed(key, `/model/${encodeURIComponent(String(first?.modelArn))}/invoke`, body);
    expect(await read(answer)).toMatchObject({ content: [{ text: 'You said: Hi' }] });
  });

  test('are given one by one, by name and by address, and the address works in Converse', async () => {
    const { key } = await start();
    for (const name of ['demo', 'vendor/with-slash']) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const { modelDetails } = await read(
        await signed(key, `/foundation-models/${encodeURIComponent(name)}`),
      );
      const { modelId, modelArn } = modelDetails as Json;
      expect(modelId).toBe(name);
      const address = encodeURIComponent(String(modelArn));
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await read(await signed(key, `/foundation-models/${address}`))).toEqual({ modelDetails });
      const messages = [{ role: 'user', content: [{ text: 'Hello' }] }];
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect((await signed(key, `/model/${address}/converse`, { messages })).status).toBe(200);
    }
  });

  test('are those that the key may use', async () => {
    const restricted = await keyFor(await start(), ['demo']);
    expect(idsOf(await read(await signed(restricted, '/foundation-models')))).toEqual(['demo']);
    const other = await signed(restricted, '/foundation-models/vendor%2Fwith-slash');
    expect([other.status, other.headers.get('x-amzn-errortype')]).toEqual([404, 'ResourceNotFoundException']);
    expect(await read(other)).toEqual({ message: expect.stringContaining('vendor/with-slash') as string });
  });

  test('are for keys alone', async () => {
    await start();
    const answer = await signed('sk-unknown', '/foundation-models');
    expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([
      401,
      'UnrecognizedClientException',
    ]);
  });
});

describe('rerank of the agent runtime', () => {
  const model = 'cohere.rerank-v3-5:0';
  const address = `arn:aws:bedrock:us-east-1::foundation-model/${model}`;
  const text = (words: string): Json => ({
    type: 'INLINE',
    inlineDocumentSource: { type: 'TEXT', textDocument: { text: words } },
  });
  const asking = (more: Json = {}, modelArn = address): Json => ({
    queries: [{ type: 'TEXT', textQuery: { text: 'fruit' } }],
    sources: [text('a car'), text('an apple'), text('a pear')],
    rerankingConfiguration: {
      type: 'BEDROCK_RERANKING_MODEL',
      bedrockRerankingConfiguration: { modelConfiguration: { modelArn }, numberOfResults: 2 },
    },
    ...more,
  });
  const start = async (settings: Omit<GatewayConfig, 'channels'> = {}): Promise<TestGateway> => {
    provider = await startUpstream((_request, response) => {
      const results = [0.1, 0.7, 0.9].map((score, index) => ({ index, relevance_score: score }));
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ results }));
    });
    const channel = bedrockChannel({ region: 'us-east-1', key: 'bedrock-key', baseUrl: provider.url });
    return (gateway = await startGateway({ ...settings, channels: [channel] }));
  };

  test('gives the best documents first, as many as are wanted', async () => {
    const { key } = await start();
    const answer = await signed(key, '/rerank', asking());
    expect(await read(answer)).toEqual({
      results: [
        { index: 2, relevanceScore: 0.9 },
        { index: 1, relevanceScore: 0.7 },
      ],
    });
    expect(provider?.requests.map(({ url }) => url)).toEqual([`/model/${encodeURIComponent(model)}/invoke`]);
    expect(JSON.parse(provider?.requests[0]?.body.toString() ?? '')).toMatchObject({
      query: 'fruit',
      documents: ['a car', 'an apple', 'a pear'],
    });
  });

  test.each([
    ['no query', { queries: [] }],
    ['two queries', { queries: [asking().queries, asking().queries].flat() }],
    ['a document that is none', { sources: [{ type: 'INLINE' }] }],
    ['no documents', { sources: [] }],
    ['too many documents', { sources: Array.from({ length: 1001 }, () => text('a')) }],
    ['no model', { rerankingConfiguration: {} }],
    ['a next page', { nextToken: 'x' }],
  ])('refuses %s as a ValidationException', async (_name, wrong) => {
    const { key } = await start();
    const answer = await signed(key, '/rerank', asking(wrong));
    expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([400, 'ValidationException']);
    expect(provider?.requests).toHaveLength(0);
  });

  test('is refused for a model that the key may not use', async () => {
    const restricted = await keyFor(await start(), ['amazon.*']);
    const answer = await signed(restricted, '/rerank', asking());
    expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([403, 'AccessDeniedException']);
    expect(provider?.requests).toHaveLength(0);
  });

  test('charges the key, and refuses when its budget or its rate is spent', async () => {
    const running = await start({ prices: { [model]: { perCall: 0.6 } } });
    const budgets = [{ unit: 'micro-dollar', period: 'day', amount: 1e6 }] as const;
    const spender = await running.apiKeys.create({ name: 'spender', budgets });
    const ledger = openLedger(running.stores);
    expect((await signed(spender.value, '/rerank', asking())).status).toBe(200);
    await expect.poll(async () => (await ledger.states(spender.record.id, budgets))[0]?.spent).toBe(6e5);
    const refused = await signed(spender.value, '/rerank', asking());
    expect([refused.status, refused.headers.get('x-amzn-errortype')]).toEqual([
      429,
      'ServiceQuotaExceededException',
    ]);
    const limited = await running.apiKeys.create({ name: 'limited', requestsPerMinute: 1 });
    expect((await signed(limited.value, '/rerank', asking())).status).toBe(200);
    const second = await signed(limited.value, '/rerank', asking());
    expect([second.status, second.headers.get('x-amzn-errortype')]).toEqual([429, 'ThrottlingException']);
    expect(provider?.requests).toHaveLength(2);
  });

  test('is refused to a key with a budget in dollars where the model has no price', async () => {
    const running = await start();
    const budgets = [{ unit: 'micro-dollar', period: 'day', amount: 1e6 }] as const;
    const { value } = await running.apiKeys.create({ name: 'spender', budgets });
    const answer = await signed(value, '/rerank', asking({}, 'cohere.no-price-v9:0'));
    expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([403, 'AccessDeniedException']);
    expect(provider?.requests).toHaveLength(0);
  });

  test('names what the model cannot be told', async () => {
    const { key } = await start();
    const modelConfiguration = { modelArn: address, additionalModelRequestFields: { odd: 1 } };
    const answer = await signed(
      key,
      '/rerank',
      asking({ rerankingConfiguration: { bedrockRerankingConfiguration: { modelConfiguration } } }),
    );
    expect(answer.headers.get('x-sluice-loss')).toContain('additionalModelRequestFields');
    expect((await read(answer)).results).toHaveLength(3);
  });

  test('knows its clients by their signature, where they send no invocation id', async () => {
    const { key, url } = await start();
    const answer = await fetch(`${url}/rerank`, {
      method: 'POST',
      headers: {
        authorization: `AWS4-HMAC-SHA256 Credential=${key}/20261123/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=0`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(asking()),
    });
    expect((await read(answer)).results).toHaveLength(2);
  });

  test('leaves the path to clients of the other rerank format', async () => {
    const running = await start();
    const answer = await fetch(`${running.url}/rerank`, {
      method: 'POST',
      headers: { authorization: `Bearer ${running.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, query: 'fruit', documents: ['a car', 'an apple', 'a pear'], top_n: 1 }),
    });
    expect(await read(answer)).toMatchObject({ results: [{ index: 2, relevance_score: 0.9 }] });
  });
});

describe('InvokeModel', () => {
  const start = async (): Promise<TestGateway> => (gateway = await startGateway({ channels: [demo()] }));

  test.each([
    ['Titan', { inputText: 'Hi' }],
    ['Llama', { prompt: 'Hi', max_gen_len: 10 }],
    ['Nova', { schemaVersion: 'messages-v1', messages: [{ role: 'user', content: [{ text: 'Hi' }] }] }],
  ])('names what it takes, where a body is that of %s', async (_model, body) => {
    const { key } = await start();
    const answer = await signed(key, '/model/demo/invoke', body);
    expect([answer.status, answer.headers.get('x-amzn-errortype')]).toEqual([400, 'ValidationException']);
    expect(await read(answer)).toEqual({
      message: expect.stringMatching(
        /^InvokeModel takes the messages format alone here, for every model, with "anthropic_version": "bedrock-2023-05-31"\. Chats with other bodies go through Converse/,
      ) as string,
    });
  });

  test('names the wrong field of a body that it takes', async () => {
    const { key } = await start();
    const answer = await signed(key, '/model/demo/invoke', { anthropic_version: 'bedrock-2023-05-31' });
    expect(String((await read(answer)).message)).not.toContain('Converse');
    expect(answer.status).toBe(400);
  });
});
