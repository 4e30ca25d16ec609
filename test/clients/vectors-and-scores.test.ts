import { GoogleGenAI } from '@google/genai';
import { CohereClient, CohereClientV2 } from 'cohere-ai';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import cohereChannel from '../../channels/cohere/index.ts';
import demo from '../../channels/demo/index.ts';
import geminiChannel from '../../channels/gemini.ts';
import jinaChannel from '../../channels/jina.ts';
import openaiChannel from '../../channels/openai.ts';
import voyageChannel from '../../channels/voyage/index.ts';
import type { JsonObject, JsonValue } from '../../core/model/json.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let answer: (body: JsonObject, request: SeenRequest) => JsonObject | readonly [number, JsonObject];

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    const reply = answer(JSON.parse(request.body.toString()) as JsonObject, request);
    const [status, body] = Array.isArray(reply) ? (reply as readonly [number, JsonObject]) : [200, reply];
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const at = (models: readonly string[], path = '') => ({
    key: 'provider-key',
    baseUrl: upstream.url + path,
    models,
  });
  gateway = await startGateway({
    channels: [
      demo(),
      openaiChannel(at(['text-embedding-3-small', 'omni-moderation-latest'], '/v1')),
      geminiChannel(at(['gemini-embedding-001'], '/v1beta')),
      cohereChannel(at(['embed-v4.0', 'rerank-v4.0'])),
      jinaChannel(at(['jina-embeddings-v4', 'jina-reranker-v3'], '/v1')),
      voyageChannel(at(['voyage-4', 'rerank-2.5'], '/v1')),
      // What fails is left alone for a while.
      jinaChannel({ ...at(['jina-wrong-key'], '/v1'), id: 'wrong-key' }),
      geminiChannel({ ...at(['gemini-busy'], '/v1beta'), id: 'busy' }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.requests.length = 0;
});

const openai = (): OpenAI => new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
const genai = (): GoogleGenAI =>
  new GoogleGenAI({ apiKey: gateway.key, httpOptions: { baseUrl: gateway.url } });

/** Vectors whose first number is the input's length, so that order shows. */
const vectorOf = (text: JsonValue | undefined): number[] => [String(text).length, 0.5, -1];
const textsOf = (value: JsonValue | undefined): readonly JsonValue[] =>
  Array.isArray(value) ? (value as readonly JsonValue[]) : [value ?? ''];

/** Response of each provider to a request for embeddings, and its path. */
const embedding: Readonly<
  Record<string, { readonly url: string; readonly reply: (body: JsonObject) => JsonObject }>
> = {
  'text-embedding-3-small': {
    url: '/v1/embeddings',
    reply: ({ input, encoding_format: encoding }) => ({
      object: 'list',
      model: 'text-embedding-3-small',
      data: textsOf(input).map((text, index) => ({
        object: 'embedding',
        index,
        embedding:
          encoding === 'base64'
            ? Buffer.from(Float32Array.from(vectorOf(text)).buffer).toString('base64')
            : vectorOf(text),
      })),
      usage: { prompt_tokens: 7, total_tokens: 7 },
    }),
  },
  'jina-embeddings-v4': {
    url: '/v1/embeddings',
    // Floats whatever is asked, and not in order.
    reply: ({ input }) => ({
      object: 'list',
      model: 'jina-embeddings-v4',
      data: textsOf(input)
        .map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text) }))
        .toReversed(),
      usage: { total_tokens: 7, prompt_tokens: 7 },
    }),
  },
  'voyage-4': {
    url: '/v1/embeddings',
    reply: ({ input }) => ({
      object: 'list',
      model: 'voyage-4',
      data: textsOf(input).map((text, index) => ({ object: 'embedding', index, embedding: vectorOf(text) })),
      usage: { total_tokens: 7 },
    }),
  },
  'embed-v4.0': {
    url: '/v2/embed',
    reply: ({ texts }) => ({
      id: 'e-1',
      embeddings: { float: textsOf(texts).map(vectorOf) },
      texts: texts ?? [],
      meta: { api_version: { version: '2' }, billed_units: { input_tokens: 7 } },
      response_type: 'embeddings_by_type',
    }),
  },
  'gemini-embedding-001': {
    url: '/v1beta/models/gemini-embedding-001:batchEmbedContents',
    reply: ({ requests }) => ({
      embeddings: textsOf(requests).map((request) => ({
        values: vectorOf((request as { content: { parts: { text: string }[] } }).content.parts[0]?.text),
      })),
      usageMetadata: { promptTokenCount: 7 },
    }),
  },
};
const embedders = Object.keys(embedding);

describe('POST /v1/embeddings, by the official client', () => {
  test.each(['demo', ...embedders])('%s', async (model) => {
    answer = (body) => embedding[model]?.reply(body) ?? {};
    const inputs = ['one', 'three', 'seventeen'];
    const usual = await openai().embeddings.create({ model, input: inputs });
    const floats = await openai().embeddings.create({ model, input: inputs, encoding_format: 'float' });
    // The client asks for base64 by itself and decodes it: both ways must be the same.
    expect(usual.data.map(({ embedding: vector }) => Array.from(vector))).toEqual(
      floats.data.map(({ embedding: vector }) => vector),
    );
    expect(floats.data.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(floats.usage.total_tokens).toBe(floats.usage.prompt_tokens);
    expect(usual.model).toBe(model);
    if (model === 'demo') return;
    expect(floats.data.map(({ embedding: vector }) => vector[0])).toEqual([3, 5, 9]);
    expect(usual.usage).toMatchObject({ prompt_tokens: 7, total_tokens: 7 });
    expect(upstream.requests.map(({ url }) => url)).toEqual([embedding[model]?.url, embedding[model]?.url]);
    const { headers } = upstream.requests[0] ?? {};
    expect(headers?.authorization ?? headers?.['x-goog-api-key']).toContain('provider-key');
  });

  test.each(['demo', ...embedders])('%s: one text, with the wished length', async (model) => {
    answer = (body) => embedding[model]?.reply(body) ?? {};
    const { data } = await openai().embeddings.create({ model, input: 'one', dimensions: 64 });
    expect(data).toHaveLength(1);
    const sentBody = upstream.requests[0]?.body.toString() ?? '';
    if (model === 'demo') expect(data[0]?.embedding).toHaveLength(64);
    else expect(sentBody).toMatch(/"(dimensions|output_dimension|outputDimensionality)":64/);
  });

  test('what vectors are for reaches providers that ask for it', async () => {
    answer = (body) => embedding['embed-v4.0']?.reply(body) ?? {};
    const create = (more: object): Promise<unknown> =>
      openai().embeddings.create({ model: 'embed-v4.0', input: 'x', ...more });
    await create({});
    await create({ input_type: 'search_query' });
    await create({ input_type: 'clustering' });
    expect(
      upstream.requests.map(({ body }) => (JSON.parse(body.toString()) as { input_type: string }).input_type),
    ).toEqual(['search_document', 'search_query', 'clustering']);
  });

  test('more texts than the provider takes at once go in pieces, and are paid for once each', async () => {
    answer = (body) => embedding['embed-v4.0']?.reply(body) ?? {};
    const input = Array.from({ length: 200 }, (_, index) => 'x'.repeat(index + 1));
    const { data, usage } = await openai().embeddings.create({ model: 'embed-v4.0', input });
    expect(data.map(({ embedding: vector }) => vector[0])).toEqual(input.map(({ length }) => length));
    expect(upstream.requests).toHaveLength(3);
    expect(usage.prompt_tokens).toBe(21);
  });

  test('a piece that fails fails the whole, with the provider’s reason', async () => {
    answer = (body, request) =>
      upstream.requests.indexOf(request) === 1
        ? [400, { message: 'texts are too long' }]
        : (embedding['embed-v4.0']?.reply(body) ?? {});
    const input = Array.from({ length: 200 }, () => 'x');
    await expect(openai().embeddings.create({ model: 'embed-v4.0', input })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('texts are too long') as string,
    });
  });

  test('errors of providers are told in the client’s words', async () => {
    answer = () => [401, { detail: 'bad key' }];
    await expect(openai().embeddings.create({ model: 'jina-wrong-key', input: 'x' })).rejects.toMatchObject({
      status: 502,
    });
    answer = () => [200, { error: { message: 'quota', code: 429, status: 'RESOURCE_EXHAUSTED' } }];
    await expect(openai().embeddings.create({ model: 'gemini-busy', input: 'x' })).rejects.toMatchObject({
      status: 429,
    });
    await expect(openai().embeddings.create({ model: 'rerank-2.5', input: '' })).rejects.toMatchObject({
      status: 400,
      param: 'input',
    });
  });
});

describe('embedContent, by the official client', () => {
  test.each(['demo', ...embedders])('%s', async (model) => {
    answer = (body) => embedding[model]?.reply(body) ?? {};
    const one = await genai().models.embedContent({ model, contents: 'one' });
    expect(one.embeddings).toHaveLength(1);
    const several = await genai().models.embedContent({
      model,
      contents: ['one', 'three'],
      config: { outputDimensionality: 32 },
    });
    expect(several.embeddings).toHaveLength(2);
    const firsts = several.embeddings?.map(({ values }) => values?.[0]);
    if (model === 'demo') expect(several.embeddings?.[0]?.values).toHaveLength(32);
    else expect(firsts).toEqual([3, 5]);
  });
});

/** Response of each provider to a request to rerank. */
const ranking: Readonly<
  Record<string, { readonly url: string; readonly reply: (body: JsonObject) => JsonObject }>
> = {
  'rerank-v4.0': {
    url: '/v2/rerank',
    reply: ({ documents }) => ({
      id: 'r-1',
      results: scoresOf(documents),
      meta: { api_version: { version: '2' }, billed_units: { search_units: 2 } },
    }),
  },
  'jina-reranker-v3': {
    url: '/v1/rerank',
    reply: ({ documents, return_documents: returns }) => ({
      model: 'jina-reranker-v3',
      object: 'list',
      usage: { total_tokens: 11 },
      results: scoresOf(documents).map((result) =>
        returns === false ? result : { ...result, document: { text: 'unasked' } },
      ),
    }),
  },
  'rerank-2.5': {
    url: '/v1/rerank',
    reply: ({ documents }) => ({
      object: 'list',
      data: scoresOf(documents),
      model: 'rerank-2.5',
      usage: { total_tokens: 11 },
    }),
  },
};

/** Longer documents are better. */
function scoresOf(documents: JsonValue | undefined): { index: number; relevance_score: number }[] {
  return textsOf(documents).map((document, index) => ({
    index,
    relevance_score: (typeof document === 'string' ? document : JSON.stringify(document)).length / 1000,
  }));
}

describe('rerank, by the official clients', () => {
  const documents = ['short', 'the longest of all of these', 'middle length'];

  test.each(['demo', ...Object.keys(ranking)])('v1 · %s', async (model) => {
    answer = (body) => ranking[model]?.reply(body) ?? {};
    const client = new CohereClient({ token: gateway.key, environment: gateway.url });
    const all = await client.rerank({ model, query: 'longest of these', documents });
    expect(all.results).toHaveLength(3);
    expect(all.results[0]).toEqual({ index: 1, relevanceScore: expect.any(Number) as number });
    const best = await client.rerank({
      model,
      query: 'longest of these',
      documents: documents.map((text) => ({ text })),
      topN: 1,
      returnDocuments: true,
    });
    expect(best.results).toEqual([
      { index: 1, relevanceScore: expect.any(Number) as number, document: { text: documents[1] } },
    ]);
    expect(best.meta?.billedUnits?.searchUnits).toBe(model === 'rerank-v4.0' ? 2 : 1);
    if (model !== 'demo') expect(upstream.requests[0]?.url).toBe(ranking[model]?.url);
  });

  test.each(['demo', ...Object.keys(ranking)])('v2 · %s', async (model) => {
    answer = (body) => ranking[model]?.reply(body) ?? {};
    const client = new CohereClientV2({ token: gateway.key, environment: gateway.url });
    const { results, id } = await client.rerank({ model, query: 'longest of these', documents, topN: 2 });
    expect(results.map(({ index }) => index)[0]).toBe(1);
    expect(results).toHaveLength(2);
    expect(id).toEqual(expect.any(String));
  });

  test('fields of structured documents reach a provider that reads text', async () => {
    answer = (body) => ranking['rerank-v4.0']?.reply(body) ?? {};
    const client = new CohereClient({ token: gateway.key, environment: gateway.url });
    await client.rerank({
      model: 'rerank-v4.0',
      query: 'q',
      documents: [{ text: 'a', title: 'T', more: 'm' }],
      rankFields: ['title', 'text'],
    });
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toMatchObject({
      documents: ['text: a\ntitle: T'],
    });
  });

  test('the older path without a version works too', async () => {
    const response = await fetch(`${gateway.url}/rerank`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo', query: 'q', documents }),
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('x-request-id')).toMatch(/^req_/);
  });

  test('errors are raised with their sentence', async () => {
    const client = new CohereClientV2({ token: gateway.key, environment: gateway.url });
    await expect(
      client.rerank({ model: 'demo', query: 'q', documents: [] }, { maxRetries: 0 }),
    ).rejects.toMatchObject({
      statusCode: 400,
      body: { message: 'documents must be a list with at least one document.' },
    });
    const wrong = new CohereClientV2({ token: 'sk-wrong', environment: gateway.url });
    await expect(
      wrong.rerank({ model: 'demo', query: 'q', documents }, { maxRetries: 0 }),
    ).rejects.toMatchObject({ statusCode: 401 });
  });
});

describe('POST /v1/moderations, by the official client', () => {
  test('demo', async () => {
    const { results, id } = await openai().moderations.create({
      model: 'demo',
      input: ['kill it', 'be kind'],
    });
    expect(results.map(({ flagged }) => flagged)).toEqual([true, false]);
    expect(results[0]?.categories.violence).toBe(true);
    expect(id).toMatch(/^modr-/);
  });

  test('a provider, whose default is asked when the client names no model', async () => {
    answer = () => ({
      id: 'modr-9',
      model: 'omni-moderation-2024-09-26',
      results: [{ flagged: false, categories: {}, category_scores: {}, category_applied_input_types: {} }],
    });
    const { results } = await openai().moderations.create({
      input: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }],
    });
    expect(results).toHaveLength(1);
    expect(upstream.requests[0]?.url).toBe('/v1/moderations');
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toMatchObject({
      model: 'omni-moderation-latest',
    });
  });

  test('a model whose channel has none: 503 that is not tried again', async () => {
    await expect(openai().moderations.create({ model: 'voyage-4', input: 'x' })).rejects.toMatchObject({
      status: 503,
      code: 'endpoint_not_supported',
    });
    const response = await fetch(`${gateway.url}/v1/moderations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'voyage-4', input: 'x' }),
    });
    expect(response.headers.get('x-should-retry')).toBe('false');
  });
});
