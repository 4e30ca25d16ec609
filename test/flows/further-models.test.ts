import Anthropic from '@anthropic-ai/sdk';
import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import openrouter from '../../channels/openrouter.ts';
import auth from '../../plugins/auth.ts';
import providerObjects from '../../plugins/provider-objects/index.ts';
import { startAnthropicObjects } from '../support/anthropic-objects.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startOpenaiObjects } from '../support/openai-objects.ts';
import { startRealtimeUpstream } from '../support/realtime-upstream.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import { charges } from '../plugins/provider-objects/_records.ts';
import { voices } from './_wire.ts';

type Json = Record<string, unknown>;

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let restricted: string;
let inDollars: string;
let inTokens: string;

const budget = (unit: string): Json => ({ budgets: [{ unit, period: 'total', amount: 1e9 }] });
const response = {
  id: 'r',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt-small',
  output: [],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};

beforeAll(async () => {
  upstream = await startUpstream(({ url }, reply) => {
    const whole = url.includes('/messages')
      ? voices.messages.whole('hi')
      : url.includes('/responses')
        ? response
        : url.includes(':generate')
          ? voices['generate-content'].whole('hi')
          : voices['chat-completions'].whole('hi');
    reply.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole));
  });
  const at = { key: 'k', baseUrl: `${upstream.url}/v1` };
  gateway = await startGateway({
    channels: [
      openai({ ...at, models: ['gpt-small'] }),
      openrouter({ ...at, models: ['cheap/one'] }),
      anthropic({ ...at, models: ['claude-small'] }),
      gemini({ ...at, models: ['gemini-small'] }),
    ],
    prices: { '*': { input: 1, output: 1 } },
  });
  const make = async (options: object): Promise<string> =>
    (await gateway.apiKeys.create({ name: 'key', ...options })).value;
  restricted = await make({ models: ['gpt-small', 'cheap/*', 'claude-small', 'gemini-small'] });
  inDollars = await make(budget('micro-dollar'));
  inTokens = await make(budget('token'));
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => void (upstream.requests.length = 0));

/** Endpoint with a request that costs only tokens. */
interface Endpoint {
  readonly path: string;
  readonly body: Json;
}

const turns = [{ role: 'user', content: 'hi' }];
const chat = {
  path: '/v1/chat/completions',
  body: { model: 'cheap/one', max_tokens: 5, messages: turns },
};
const messages = { path: '/v1/messages', body: { ...chat.body, model: 'claude-small' } };
const responses = {
  path: '/v1/responses',
  body: { model: 'gpt-small', max_output_tokens: 16, input: 'hi', store: false },
};
const content = {
  path: '/v1beta/models/gemini-small:generateContent',
  body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
};

async function send({ path, body }: Endpoint, more: Json, key: string) {
  const reply = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      authorization: `Bearer ${key}`,
    },
    body: JSON.stringify({ ...body, ...more }),
  });
  return { status: reply.status, text: await reply.text() };
}

const advisor = { type: 'advisor_20260301', name: 'advisor', model: 'claude-large' };
const image = { type: 'image_generation', model: 'gpt-image-large' };

const naming: readonly (readonly [string, Endpoint, Json, string])[] = [
  ['the advisor of messages', messages, { tools: [advisor] }, 'tools[0]'],
  [
    'an advisor that a turn adds',
    messages,
    {
      messages: [
        ...turns,
        { role: 'assistant', content: 'hello' },
        {
          role: 'user',
          content: [{ type: 'tool_addition', tool: { type: 'tool_definition', definition: advisor } }],
        },
      ],
    },
    'messages[2].content[0].tool.definition',
  ],
  ['the fallbacks of messages', messages, { fallbacks: [{ model: 'claude-large' }] }, 'fallbacks'],
  ['fallbacks that the provider chooses', messages, { fallbacks: 'default' }, 'fallbacks'],
  [
    'the advisor of OpenRouter',
    chat,
    { tools: [{ type: 'openrouter:advisor', parameters: { model: 'dear/one' } }] },
    'tools[0]',
  ],
  ['an advisor that OpenRouter chooses', chat, { tools: [{ type: 'openrouter:advisor' }] }, 'tools[0]'],
  [
    'another letter case',
    chat,
    { Tools: [{ Type: 'openrouter:advisor', parameters: { Model: 'dear/one' } }] },
    'Tools[0]',
  ],
  ['the image tool of responses', responses, { tools: [image] }, 'tools[0]'],
  [
    'the author of vector images',
    responses,
    { tools: [{ type: 'image_generation', svg: { model: 'gpt-large' } }] },
    'tools[0]',
  ],
  [
    'a tool in a namespace',
    responses,
    { tools: [{ type: 'namespace', name: 'n', description: 'd', tools: [image] }] },
    'tools[0].tools[0]',
  ],
  [
    'a tool among the input',
    responses,
    { input: [{ type: 'additional_tools', role: 'developer', tools: [image] }] },
    'input[0].tools[0]',
  ],
  // Members that a provider ignores hide nothing from it.
  [
    'an advisor in a body that looks like a part of the history',
    chat,
    { type: 'x_call', tools: [{ type: 'openrouter:advisor', parameters: { model: 'dear/one' } }] },
    'tools[0]',
  ],
  // openrouter-sdk 1.3.19, models/fusionservertoolconfig.d.ts
  [
    'the models whose answers OpenRouter compares',
    chat,
    {
      tools: [
        { type: 'openrouter:fusion', parameters: { model: 'cheap/one', analysis_models: ['dear/one'] } },
      ],
    },
    'tools[0]',
  ],
  // groq-sdk 1.6.0, resources/chat/completions.d.ts
  [
    'the models of a compound',
    chat,
    { compound_custom: { models: { answering_model: 'dear/one' } } },
    'compound_custom',
  ],
  // together-ai 0.52.0, resources/chat/completions.d.ts
  ['the model that watches over another', chat, { safety_model: 'dear/one' }, 'safety_model'],
  ['a list of models to fall back to', responses, { models: ['gpt-small', 'gpt-large'] }, 'models'],
  ['a model in the body, where it is named by the path', content, { model: 'models/gemini-large' }, 'model'],
  [
    'the routing of generateContent',
    content,
    { generationConfig: { routingConfig: { manualMode: { modelName: 'gemini-large' } } } },
    'generationConfig.routingConfig',
  ],
];

describe.each(naming)('%s', (_name, call, more, param) => {
  test('is refused with 403 to a key that names models, and to one with a budget in dollars', async () => {
    for (const key of [restricted, inDollars]) {
      // oxlint-disable-next-line no-await-in-loop
      const { status, text } = await send(call, more, key);
      expect({ status, text }).toEqual({ status: 403, text: expect.stringContaining(param) });
    }
    expect(upstream.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  test('is not refused to a key that is bound by neither', async () => {
    for (const key of [gateway.key, inTokens]) {
      // oxlint-disable-next-line no-await-in-loop
      expect((await send(call, more, key)).status).not.toBe(403);
    }
  });
});

test('a further model that the key may use passes', async () => {
  const key = await gateway.apiKeys.create({
    name: 'both',
    models: ['claude-*', 'gpt-*', 'cheap/*', 'dear/*'],
  });
  for (const [, call, more] of [0, 4, 7].flatMap((index) => naming.slice(index, index + 1))) {
    // oxlint-disable-next-line no-await-in-loop
    expect(await send(call, more, key.value)).toMatchObject({ status: 200 });
  }
  expect(upstream.requests.map(({ body }) => body.toString())).toEqual([
    expect.stringContaining('"model":"claude-large"'),
    expect.stringContaining('"model":"dear/one"'),
    expect.stringContaining('"model":"gpt-image-large"'),
  ]);
});

describe('a body that names the model of its path', () => {
  test.each([
    ['as it stands there', 'gemini-small', 'gemini-small'],
    ['as Google writes it', 'gemini-small', 'models/gemini-small'],
    ['without the suffix by which the client asked for it', 'gemini-small-high', 'models/gemini-small'],
    ['with that suffix', 'gemini-small-high', 'gemini-small-high'],
  ])('%s passes for bound keys', async (_how, pathModel, named) => {
    const call = { ...content, path: `/v1beta/models/${pathModel}:generateContent` };
    const suffixed = await gateway.apiKeys.create({ name: 'suffixed', models: ['gemini-small-high'] });
    for (const key of [restricted, inDollars, ...(pathModel === 'gemini-small' ? [] : [suffixed.value])]) {
      // oxlint-disable-next-line no-await-in-loop
      expect(await send(call, { model: named }, key)).toMatchObject({ status: 200 });
    }
  });
});

test('more of them than are looked at are refused with 400', async () => {
  const tools = Array.from({ length: 1001 }, () => ({ type: 'image_generation', model: 'gpt-small' }));
  const { status, text } = await send(responses, { tools, later: { fallbacks: ['gpt-large'] } }, restricted);
  expect({ status, text }).toEqual({ status: 400, text: expect.stringContaining('at most 1000') });
  expect(upstream.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
});

test.each<[string, Endpoint, Json]>([
  ['fast mode', messages, { speed: 'fast' }],
  ['priority processing', responses, { service_tier: 'priority' }],
  ['a tool that nobody knows', chat, { tools: [{ type: 'oracle' }] }],
  ['search parameters', chat, { search_parameters: { mode: 'on' } }],
  ['a search of other sources', content, { tools: [{ exaAiSearch: {} }] }],
])(
  '%s, whose cost is not known, is refused to a key with a budget in dollars alone',
  async (_name, call, more) => {
    expect(await send(call, more, inDollars)).toMatchObject({
      status: 403,
      text: expect.stringContaining('has a budget in dollars'),
    });
    expect(upstream.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
    expect((await send(call, more, restricted)).status).not.toBe(403);
  },
);

test.each<[string, Endpoint, Json]>([
  [
    'functions whose schemas and arguments have such names',
    chat,
    {
      tools: [
        { type: 'function', function: { name: 'f', parameters: { properties: { model: {}, tools: {} } } } },
      ],
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          tool_calls: [
            {
              id: 'c',
              type: 'function',
              function: { name: 'f', arguments: '{"tools":[{"type":"advisor"}]}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'c', content: 'x' },
      ],
    },
  ],
  [
    'tools that the client runs',
    messages,
    {
      tools: [
        {
          name: 'f',
          input_schema: { type: 'object', properties: { model: { type: 'string' } } },
          input_examples: [{}],
        },
        { type: 'bash_20250124', name: 'bash' },
        { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
        { type: 'memory_20250818', name: 'memory' },
      ],
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 't', name: 'f', input: { tools: [advisor], fallbacks: ['x'] } }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] },
      ],
    },
  ],
  [
    'the history of a call',
    responses,
    {
      input: [
        { type: 'mcp_list_tools', id: 'l', server_label: 's', tools: [{ name: 'f', input_schema: {} }] },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"model":"x"}' },
        { type: 'function_call_output', call_id: 'c', output: 'x' },
      ],
      tools: [{ type: 'local_shell' }, { type: 'custom', name: 'exec' }, { type: 'apply_patch' }],
    },
  ],
  ['functions of generateContent', content, { tools: [{ functionDeclarations: [{ name: 'f' }] }] }],
])('%s pass for bound keys', async (_name, call, more) => {
  for (const key of [restricted, inDollars]) {
    // oxlint-disable-next-line no-await-in-loop
    expect(await send(call, more, key)).toMatchObject({ status: 200 });
  }
});

test('tools among the items of a conversation are refused in a call that goes on from it', async () => {
  for (const key of [restricted, inDollars]) {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const items = [{ type: 'additional_tools', role: 'developer', tools: [image] }];
    // oxlint-disable-next-line no-await-in-loop
    const made = await fetch(`${gateway.url}/v1/conversations`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ items }),
    });
    // oxlint-disable-next-line no-await-in-loop
    const { id } = (await made.json()) as { id: string };
    expect(made.status).toBe(200);
    // oxlint-disable-next-line no-await-in-loop
    const { status, text } = await send(responses, { conversation: id }, key);
    expect({ status, text }).toEqual({ status: 403, text: expect.stringContaining('input[0].tools[0]') });
  }
  expect(upstream.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
});

test('counting tokens runs no tool, so that it passes', async () => {
  const call = { path: '/v1/messages/count_tokens', body: { ...messages.body, tools: [advisor] } };
  expect((await send(call, {}, restricted)).status).not.toBe(403);
});

describe('a batch', () => {
  const line = (tools: readonly Json[]): string =>
    JSON.stringify({
      custom_id: 'one',
      method: 'POST',
      url: '/v1/responses',
      body: { model: 'gpt-a', input: 'hi', max_output_tokens: 16, tools },
    });

  test('whose lines name a further model is refused', async () => {
    const provider = await startOpenaiObjects();
    const own = await startGateway({
      plugins: [providerObjects()],
      prices: { '*': { input: 1, output: 1 } },
      channels: [openai({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['gpt-a', 'gpt-b'] })],
    });
    onTestFinished(async () => {
      await own.close();
      await provider.close();
    });
    const begin = async (options: Json, tools: readonly Json[]): Promise<string> => {
      const { value } = await own.apiKeys.create({ name: 'one', ...options });
      const client = new OpenAI({ baseURL: `${own.url}/v1`, apiKey: value, maxRetries: 0 });
      const file = await client.files.create({
        file: await toFile(Buffer.from([line([]), line(tools)].join('\n')), 'batch.jsonl'),
        purpose: 'batch',
      });
      const made = await client.batches.create({
        input_file_id: file.id,
        endpoint: '/v1/responses',
        completion_window: '24h',
      });
      return made.status;
    };
    const tools = [{ type: 'image_generation', model: 'gpt-b' }];
    const refused = { status: 403, code: 'model_not_allowed', param: 'requests[1].tools[0]' };
    await expect(begin({ models: ['gpt-a'] }, tools)).rejects.toMatchObject(refused);
    await expect(begin(budget('micro-dollar'), tools)).rejects.toMatchObject(refused);
    await expect(begin(budget('micro-dollar'), [{ type: 'oracle' }])).rejects.toMatchObject(refused);
    expect(provider.batches.size).toBe(0);
    expect(await begin({ models: ['gpt-*'] }, tools)).toBe('validating');
    expect(await begin({}, [...tools, { type: 'oracle' }])).toBe('validating');
  });

  test('whose lines use a service is refused without a limit of uses, and charged for them without a discount', async () => {
    const provider = await startOpenaiObjects();
    const own = await startGateway({
      plugins: [providerObjects({ poll: { first: 20, most: 50 } })],
      prices: { '*': { input: 1, output: 1, services: { 'web-search': 0.01 } } },
      channels: [
        openai({
          key: 'k',
          baseUrl: `${provider.url}/v1`,
          models: ['gpt-a'],
          traits: { '*': { inputLimit: 1000 } },
        }),
      ],
    });
    onTestFinished(async () => {
      await own.close();
      await provider.close();
    });
    const { value, record } = await own.apiKeys.create({
      name: 'one',
      budgets: [{ unit: 'micro-dollar', period: 'total', amount: 100_000 }],
    });
    const client = new OpenAI({ baseURL: `${own.url}/v1`, apiKey: value, maxRetries: 0 });
    const begin = async (more: Json): Promise<string> => {
      const body = {
        model: 'gpt-a',
        input: 'hi',
        max_output_tokens: 16,
        tools: [{ type: 'web_search' }],
        ...more,
      };
      const text = JSON.stringify({ custom_id: 'one', method: 'POST', url: '/v1/responses', body });
      const file = await client.files.create({
        file: await toFile(Buffer.from(text), 'batch.jsonl'),
        purpose: 'batch',
      });
      const made = await client.batches.create({
        input_file_id: file.id,
        endpoint: '/v1/responses',
        completion_window: '24h',
      });
      return made.id;
    };
    await expect(begin({})).rejects.toMatchObject({ status: 403, param: 'requests[0].tools[0]' });
    // Eleven searches are more than ten cents.
    await expect(begin({ max_tool_calls: 11 })).rejects.toMatchObject({ status: 429 });
    const id = await begin({ max_tool_calls: 5 });
    const search = { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'a' } };
    provider.finish(id, () => ({ ...response, model: 'gpt-a', output: [search, search] }));
    await expect.poll(() => charges(own)).toHaveLength(1);
    // Two tokens at half their price, and two searches at the whole.
    expect(await charges(own)).toMatchObject([
      { keyId: record.id, microDollars: 1 + 20_000, units: { services: { 'web-search': 2 } } },
    ]);
  });

  test('of messages is refused that names an advisor, or a service without a limit of uses', async () => {
    const provider = await startAnthropicObjects();
    const own = await startGateway({
      plugins: [providerObjects()],
      prices: { '*': { input: 1, output: 1 } },
      channels: [anthropic({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['claude-small'] })],
    });
    onTestFinished(async () => {
      await own.close();
      await provider.close();
    });
    const advised = { tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'claude-large' }] };
    const begin = async (options: Json, more: Json = advised): Promise<unknown> => {
      const { value } = await own.apiKeys.create({ name: 'one', ...options });
      const client = new Anthropic({ baseURL: own.url, apiKey: value, maxRetries: 0 });
      return client.beta.messages.batches.create({
        requests: [
          {
            custom_id: 'one',
            params: {
              model: 'claude-small',
              max_tokens: 16,
              messages: [{ role: 'user', content: 'hi' }],
              ...more,
            },
          },
        ],
      });
    };
    await expect(begin({ models: ['claude-small'] })).rejects.toMatchObject({ status: 403 });
    await expect(begin(budget('micro-dollar'))).rejects.toMatchObject({ status: 403 });
    await expect(begin({ models: ['claude-*'] })).resolves.toMatchObject({
      processing_status: 'in_progress',
    });
    // A member of another format limits nothing.
    const tools = [{ type: 'code_execution_20250825', name: 'code_execution' }];
    await expect(begin(budget('micro-dollar'), { tools, max_tool_calls: 1 })).rejects.toMatchObject({
      status: 403,
    });
  });
});

test('a session is told that its key may not use the model of a transcription, and the provider gets no such message', async () => {
  const provider = await startRealtimeUpstream((session, message) => {
    if (message !== undefined) session.send({ type: 'heard', text: message.data.toString() });
  });
  const own = await startGateway({
    channels: [openai({ key: 'k', baseUrl: provider.url, models: ['talk'] })],
    prices: { '*': { input: 1, output: 1 } },
  });
  onTestFinished(async () => {
    await own.close();
    await provider.close();
  });
  const { value } = await own.apiKeys.create({ name: 'one', models: ['talk'] });
  const client = await SocketClient.open(`${own.url}/v1/realtime?model=talk`, {
    headers: { authorization: `Bearer ${value}` },
  });
  const update = (model: string): Json => ({
    type: 'session.update',
    event_id: model,
    session: { type: 'realtime', audio: { input: { transcription: { model } } } },
  });
  client.send(update('whisper'));
  client.send({ type: 'response.create', response: { tools: [image] } });
  client.send(update('talk'));
  await client.until(({ type }) => type === 'heard');
  expect(client.messages).toMatchObject([
    { type: 'error', error: { code: 'model_not_allowed', event_id: 'whisper' } },
    { type: 'error', error: { code: 'model_not_allowed', param: 'response.tools[0]' } },
    { type: 'heard', text: expect.stringContaining('"talk"') },
  ]);
  client.socket.close();
});

test('a session with a budget in dollars may not use what is not charged in sessions', async () => {
  const provider = await startRealtimeUpstream((session, message) => {
    if (message !== undefined) session.send({ type: 'heard', text: message.data.toString() });
  });
  const own = await startGateway({
    channels: [openai({ key: 'k', baseUrl: provider.url, models: ['talk'] })],
    prices: { '*': { input: 1, output: 1, services: { 'web-search': 0.01 } } },
  });
  onTestFinished(async () => {
    await own.close();
    await provider.close();
  });
  const { value } = await own.apiKeys.create({ name: 'one', ...budget('micro-dollar') });
  const client = await SocketClient.open(`${own.url}/v1/realtime?model=talk`, {
    headers: { authorization: `Bearer ${value}` },
  });
  client.send({ type: 'response.create', response: { tools: [{ type: 'web_search' }] } });
  client.send({ type: 'response.create', response: { service_tier: 'priority' } });
  client.send({ type: 'response.create', response: { tools: [{ type: 'function', name: 'f' }] } });
  await client.until(({ type }) => type === 'heard');
  expect(client.messages).toMatchObject([
    { type: 'error', error: { code: 'model_not_allowed', param: 'response.tools[0]' } },
    { type: 'error', error: { code: 'model_not_allowed', param: 'response.service_tier' } },
    { type: 'heard', text: expect.stringContaining('function') },
  ]);
  client.socket.close();
});

test('a session may name other models where the gateway knows no callers', async () => {
  const provider = await startRealtimeUpstream((session, message) => {
    if (message !== undefined) session.send({ type: 'heard', text: message.data.toString() });
  });
  const own = await startGateway({
    channels: [openai({ key: 'k', baseUrl: provider.url, models: ['talk'] })],
    plugins: [auth.off()],
  });
  onTestFinished(async () => {
    await own.close();
    await provider.close();
  });
  const client = await SocketClient.open(`${own.url}/v1/realtime?model=talk`);
  client.send({ type: 'response.create', response: { tools: [image] } });
  await client.until(({ type }) => type === 'heard');
  expect(client.messages).toMatchObject([
    { type: 'heard', text: expect.stringContaining('gpt-image-large') },
  ]);
  client.socket.close();
});
