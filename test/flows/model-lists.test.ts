import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import anthropicChannel from '../../channels/anthropic.ts';
import cohere from '../../channels/cohere/index.ts';
import deepseek from '../../channels/deepseek.ts';
import demo from '../../channels/demo/index.ts';
import gemini from '../../channels/gemini.ts';
import groq from '../../channels/groq.ts';
import jina from '../../channels/jina.ts';
import mistral from '../../channels/mistral/index.ts';
import ollama from '../../channels/ollama/index.ts';
import openaiChannel from '../../channels/openai.ts';
import openrouter from '../../channels/openrouter.ts';
import modelAlias from '../../plugins/model-alias.ts';
import { ConfigError } from '../../core/config/config.ts';
import { type GatewayConfig } from '../../core/sdk/config.ts';
import { anthropic, genai, openai, type Access } from '../clients/sdks.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const key = 'k';

async function gatewayOf(config: GatewayConfig): Promise<TestGateway> {
  const gateway = await startGateway(config);
  onTestFinished(() => gateway.close());
  return gateway;
}

async function upstreamOf(
  script: (request: SeenRequest, response: import('node:http').ServerResponse) => void,
): Promise<ScriptedUpstream> {
  const upstream = await startUpstream(script);
  onTestFinished(() => upstream.close());
  return upstream;
}

const json =
  (body: unknown) =>
  (_: SeenRequest, response: import('node:http').ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };

const openaiNames = async (access: Access): Promise<string[]> =>
  (await Array.fromAsync(openai(access).models.list())).map(({ id }) => id);

describe('with providers configured and no model named', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startGateway({
      plugins: [modelAlias({ aliases: { best: 'claude-opus-4-8' } })],
      channels: [
        demo(),
        openaiChannel({ key }),
        anthropicChannel({ key }),
        gemini({ key }),
        groq({ key, priority: 1 }),
        openaiChannel({
          id: 'mapped',
          key,
          models: { 'eu-*': 'gpt-5*', fast: 'gpt-5-nano', 'any-*': 'gpt-4o' },
        }),
      ],
    });
  });
  afterAll(() => gateway.close());

  test('the official clients list the models that they can ask for', async () => {
    const expected = [
      'demo',
      'demo-thinking',
      'best',
      'fast',
      'gpt-5.4',
      'gpt-4o-mini',
      'text-embedding-3-small',
      'whisper-1',
      'gpt-realtime',
      'claude-opus-4-8',
      'claude-haiku-4-5',
      'gemini-2.5-pro',
      'gemini-embedding-001',
      'openai/gpt-oss-120b',
      'eu-.4',
      'eu--mini',
    ];
    expect(await openaiNames(gateway)).toEqual(expect.arrayContaining(expected));

    const messages = (await Array.fromAsync(anthropic(gateway).models.list())).map(({ id }) => id);
    expect(messages).toEqual(expect.arrayContaining(expected));
    expect(new Set(messages).size).toBe(messages.length);

    for (const apiVersion of ['v1', 'v1beta']) {
      const pager = await genai(gateway, { apiVersion }).models.list();
      const names = (await Array.fromAsync(pager)).map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(expected.map((name) => `models/${name}`)));
    }
  });

  test('none of them is a pattern, or made for something that its channel does not do', async () => {
    const names = await openaiNames(gateway);
    expect(names.filter((name) => name.includes('*'))).toEqual([]);
    expect(names.filter((name) => /sora|ocr|any-/.test(name))).toEqual([]);
    expect(
      names.filter((name) => /gpt-3\.5-turbo$|^o1-pro$/.test(name)),
      'shut down before',
    ).toEqual([]);
    expect(names).toEqual(names.toSorted((one, other) => (one < other ? -1 : 1)));
  });

  test('one of them is found by its name, with its limits', async () => {
    expect(await openai(gateway).models.retrieve('gpt-5.4')).toMatchObject({ owned_by: 'openai' });
    expect(await openai(gateway).models.retrieve('openai/gpt-oss-120b')).toMatchObject({ owned_by: 'groq' });
    expect(await genai(gateway).models.get({ model: 'gemini-embedding-001' })).toMatchObject({
      inputTokenLimit: 2048,
      supportedActions: ['embedContent', 'batchEmbedContents'],
    });
    expect(await anthropic(gateway).models.retrieve('claude-haiku-4-5')).toMatchObject({
      max_input_tokens: 200_000,
      max_tokens: 64_000,
    });
    expect(await genai(gateway).models.get({ model: 'openai/gpt-oss-120b' })).toMatchObject({
      inputTokenLimit: 131_072,
      outputTokenLimit: 65_536,
    });
    await expect(openai(gateway).models.retrieve('gpt-nobody')).rejects.toMatchObject({ status: 404 });
  });

  test('a key that may use some sees those alone', async () => {
    const { value } = await gateway.apiKeys.create({ name: 'few', models: ['claude-*', 'fast'] });
    const names = await openaiNames({ url: gateway.url, key: value });
    expect(names.length).toBeGreaterThan(5);
    expect(names.filter((name) => !name.startsWith('claude-') && !['fast', 'best'].includes(name))).toEqual(
      [],
    );
  });

  test('a name that is known to end like a suffix is not taken apart', async () => {
    expect(gateway.gateway.catalog.isKnown('mistral-medium')).toBe(false);
    const other = await gatewayOf({ channels: [mistral({ key })] });
    expect(other.gateway.catalog.isKnown('mistral-medium')).toBe(true);
    expect(other.gateway.catalog.isKnown('mistral-medium-high')).toBe(false);
  });
});

describe('a provider that is asked for its models', () => {
  const list = {
    object: 'list',
    data: [{ id: 'house-1' }, { id: 'house/2' }, { id: 'text-embedding-3-small' }],
  };

  test('serves what it lists, and nothing else', async () => {
    const upstream = await upstreamOf((request, response) =>
      request.method === 'GET'
        ? json(list)(request, response)
        : json({
            id: 'c',
            object: 'chat.completion',
            created: 1,
            model: (JSON.parse(request.body.toString()) as { model: string }).model,
            choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
          })(request, response),
    );
    const gateway = await gatewayOf({
      channels: [openaiChannel({ key: 'secret', baseUrl: `${upstream.url}/v1`, models: 'discover' })],
    });
    await expect.poll(() => openaiNames(gateway)).toEqual(['house-1', 'house/2', 'text-embedding-3-small']);
    expect(upstream.requests[0]).toMatchObject({ method: 'GET', url: '/v1/models' });
    expect(upstream.requests[0]?.headers.authorization).toBe('Bearer secret');
    const sendChat = (model: string) =>
      openai(gateway).chat.completions.create({ model, messages: [{ role: 'user', content: 'x' }] });
    expect((await sendChat('house/2')).choices[0]?.message.content).toBe('Hi');
    await expect(sendChat('house-3')).rejects.toMatchObject({ status: 503, code: 'no_available_channel' });
  });

  test('is served at once after a restart, also while it is down', async () => {
    const folder = temporaryFolder();
    const upstream = await upstreamOf(json(list));
    const config: GatewayConfig = {
      database: `sqlite:${join(folder, 'sluice.db')}`,
      channels: [openaiChannel({ key, baseUrl: `${upstream.url}/v1`, models: 'discover' })],
    };
    const before = await startGateway(config);
    await expect.poll(() => openaiNames(before)).toContain('house-1');
    await before.close();
    await upstream.close();

    const after = await gatewayOf(config);
    expect(after.gateway.catalog.serves('house/2')).toBe(true);
    expect(await openaiNames(after)).toEqual(['house-1', 'house/2', 'text-embedding-3-small']);

    // Another key may be shown other models.
    const other = await gatewayOf({
      ...config,
      channels: [openaiChannel({ key: 'other', baseUrl: `${upstream.url}/v1`, models: 'discover' })],
    });
    expect(await openaiNames(other)).toEqual([]);
  });

  test.each([
    [
      'openai',
      (url: string) =>
        openaiChannel({ key, baseUrl: `${url}/v1`, models: { 'x-*': 'gpt-*' }, discover: true }),
      [{ data: [{ id: 'gpt-new' }, { id: 'other' }] }],
      ['/v1/models'],
      'x-new',
    ],
    [
      'anthropic',
      (url: string) => anthropicChannel({ key, baseUrl: `${url}/v1`, discover: true }),
      [
        { data: [{ id: 'claude-a' }], has_more: true, last_id: 'claude-a' },
        { data: [{ id: 'claude-new' }], has_more: false, last_id: 'claude-new' },
      ],
      ['/v1/models?limit=1000', '/v1/models?limit=1000&after_id=claude-a'],
      'claude-new',
    ],
    [
      'gemini',
      (url: string) => gemini({ key, baseUrl: `${url}/v1beta`, discover: true }),
      [
        { models: [{ name: 'models/gemini-a' }], nextPageToken: 'page two' },
        { models: [{ name: 'models/gemini-new' }] },
      ],
      ['/v1beta/models?pageSize=1000', '/v1beta/models?pageSize=1000&pageToken=page+two'],
      'gemini-new',
    ],
    [
      'ollama, which is always asked',
      (url: string) => ollama({ baseUrl: `${url}/v1` }),
      [{ object: 'list', data: [{ id: 'llama-new:8b' }, { id: 'unfit' }] }],
      ['/v1/models'],
      'llama-new:8b',
    ],
    [
      'openrouter, which is always asked',
      (url: string) => openrouter({ key, baseUrl: `${url}/api/v1` }),
      [{ data: [{ id: 'vendor/new' }] }],
      ['/api/v1/models'],
      'vendor/new',
    ],
    [
      'cohere',
      (url: string) => cohere({ key, baseUrl: url, discover: true }),
      [{ models: [{ name: 'command-new', endpoints: ['chat'] }], next_page_token: '' }],
      ['/v1/models?page_size=1000'],
      'command-new',
    ],
    [
      'one that gives a bare list',
      (url: string) => deepseek({ key, baseUrl: `${url}/v1`, discover: true }),
      [[{ id: 'deepseek-new' }]],
      ['/v1/models'],
      'deepseek-new',
    ],
  ] as const)('fills the list behind its patterns: %s', async (_kind, channel, pages, urls, name) => {
    let count = 0;
    const upstream = await upstreamOf((request, response) => {
      json(pages[count])(request, response);
      count += 1;
    });
    const gateway = await gatewayOf({ channels: [channel(upstream.url)] });
    await expect.poll(() => openaiNames(gateway)).toContain(name);
    expect(upstream.requests.map(({ url }) => url)).toEqual(urls);
    expect(await openaiNames(gateway)).not.toContain('unfit');
  });

  test('is asked by those alone that have a list, and where names are missing', async () => {
    const upstream = await upstreamOf(json(list));
    const gateway = await gatewayOf({
      channels: [
        // Its list has prices, too: it is asked unless the config says otherwise.
        openrouter({ key, baseUrl: `${upstream.url}/v1`, models: { fast: 'vendor/fast' }, discover: false }),
        openaiChannel({ key, baseUrl: `${upstream.url}/v1` }),
        ollama({ baseUrl: `${upstream.url}/v1`, discover: false }),
      ],
    });
    expect(await openaiNames(gateway)).toContain('fast');
    expect(upstream.requests).toEqual([]);
    await expect(startGateway({ channels: [jina({ key, models: 'discover' })] })).rejects.toThrow(
      ConfigError,
    );
  });
});

describe('a provider that gives no list of models', () => {
  test.each([
    ['is not there', 'http://127.0.0.1:1', undefined],
    ['never answers', undefined, () => {}],
    ['sends ten megabytes', undefined, json({ data: [{ id: 'x'.repeat(10_000_000) }] })],
    [
      'sends without end',
      undefined,
      (_: SeenRequest, response: import('node:http').ServerResponse): void => {
        const more = (): void => {
          while (response.write(`{"id":"${'y'.repeat(60_000)}"},`) && !response.closed);
        };
        response.on('drain', more);
        response.write('{"data":[');
        more();
      },
    ],
    [
      'sends garbage',
      undefined,
      (_: SeenRequest, response: import('node:http').ServerResponse): void =>
        void response.end('<html>\0\u0001'),
    ],
    ['sends something else', undefined, json({ data: { id: 'x' } })],
    ['sends no object', undefined, json(7)],
    [
      'refuses',
      undefined,
      (_: SeenRequest, response: import('node:http').ServerResponse): void => {
        response.writeHead(401);
        response.end('{"data":[{"id":"house"}]}');
      },
    ],
  ] as const)('%s: the gateway starts, serves and shows the rest', async (_what, address, script) => {
    const upstream = script === undefined ? undefined : await upstreamOf(script);
    const gateway = await gatewayOf({
      channels: [
        demo(),
        openaiChannel({ key, baseUrl: `${address ?? upstream?.url}/v1`, models: 'discover' }),
        mistral({ key, baseUrl: `${address ?? upstream?.url}/v1`, discover: true }),
      ],
    });
    expect(await openaiNames(gateway)).toEqual(expect.arrayContaining(['demo', 'mistral-large-2512']));
    const answer = await openai(gateway).chat.completions.create({
      model: 'demo',
      messages: [{ role: 'user', content: 'x' }],
    });
    expect(answer.choices).toHaveLength(1);
    if (upstream !== undefined) await expect.poll(() => upstream.requests.length).toBeGreaterThanOrEqual(2);
    if (_what !== 'never answers')
      await expect
        .poll(
          () => gateway.lines.filter(({ msg }) => msg === 'a provider does not return its model list').length,
        )
        .toBeGreaterThanOrEqual(2);
    expect(await openaiNames(gateway)).not.toContain('house');
    expect(JSON.stringify(gateway.lines)).not.toContain('Bearer k');
  });

  test('lists a hundred thousand names: as many are shown as are kept, page by page', async () => {
    const data = Array.from({ length: 100_000 }, (_, index) => ({ id: `m-${index}` }));
    const upstream = await upstreamOf(json({ data: [...data, ...data.slice(0, 1000)] }));
    const gateway = await gatewayOf({
      channels: [openaiChannel({ key, baseUrl: `${upstream.url}/v1`, models: 'discover' })],
    });
    await expect.poll(async () => (await openaiNames(gateway)).length).toBe(5000);
    const pages = await anthropic(gateway).models.list({ limit: 1000 });
    expect(pages.data).toHaveLength(1000);
    expect(pages.has_more).toBe(true);
  });
});
