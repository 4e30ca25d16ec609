import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { definePlugin, type JsonObject } from 'sluice';
import openai from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { fetchRaw } from './_wire.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;

/** Members of a body that nobody has read so far, by whom the body was parsed in parts. */
let unread: readonly string[] = [];
const watcher = definePlugin({
  name: 'watcher',
  stage: 'admit',
  setup: () => (call, next) => {
    const { body } = call;
    call.onEnd(() => {
      unread = Object.entries(Object.getOwnPropertyDescriptors(body)).flatMap(([name, { get }]) =>
        get === undefined ? [] : [name],
      );
    });
    return next(call);
  },
});

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(request.url.includes('/responses') ? responseReply : chatReply));
  });
  const provider = { key: 'sk-upstream', baseUrl: `${upstream.url}/v1` };
  gateway = await startGateway({
    plugins: [watcher()],
    prices: { '*': { input: 1, output: 2 } },
    channels: [
      openai({
        ...provider,
        id: 'chat',
        models: ['chat'],
        traits: { '*': { formats: ['chat-completions'] } },
      }),
      openai({ ...provider, id: 'own', models: ['own'], traits: { '*': { formats: ['responses'] } } }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  unread = [];
  upstream.requests.length = 0;
});

const responseReply: JsonObject = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'own',
  output: [],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};
const chatReply: JsonObject = {
  id: 'c',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
};

const long = 'It is long.\n"Quoted", too. '.repeat(2_000);

describe('a long request that passes through', () => {
  test.each<[string, string, JsonObject, string]>([
    [
      'chat completions',
      '/v1/chat/completions',
      { model: 'chat', messages: [{ role: 'user', content: long }] },
      'messages',
    ],
    [
      'responses that are not stored',
      '/v1/responses',
      {
        model: 'own',
        store: false,
        input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: long }] }],
      },
      'input',
    ],
  ])('is not parsed as a whole: %s', async (_name, path, body, member) => {
    const answer = await fetchRaw(gateway, path, { body: JSON.stringify(body), headers: {} });
    expect(answer.status).toBe(200);
    expect(upstream.requests[0]?.body.toString()).toBe(JSON.stringify(body));
    await expect.poll(() => unread).toEqual([member]);
  });
});

/** A session of an agent that called a tool with each of these ids. */
function sessionOf(ids: readonly string[]): JsonObject {
  return {
    model: 'chat',
    messages: [
      { role: 'user', content: long },
      ...ids.flatMap((id): JsonObject[] => [
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id, type: 'function', function: { name: 'find', arguments: JSON.stringify({ long }) } },
          ],
        },
        { role: 'tool', tool_call_id: id, content: long },
      ]),
    ],
    tools: [{ type: 'function', function: { name: 'find', parameters: { type: 'object' } } }],
    max_completion_tokens: 100,
  };
}

describe('a long request of a key with limits', () => {
  const limits = { requestsPerMinute: 1_000, tokensPerMinute: 10_000_000, concurrency: 100 };
  const budgets = [
    { unit: 'micro-dollar', period: 'total', amount: 1e12 },
    { unit: 'token', period: 'day', amount: 1e12 },
  ] as const;

  async function send(
    body: JsonObject,
  ): Promise<{ readonly status: number; readonly remaining: string | null }> {
    const { value } = await gateway.apiKeys.create({ name: 'limited', ...limits, budgets });
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${value}` },
      body: JSON.stringify(body),
    });
    await response.arrayBuffer();
    return { status: response.status, remaining: response.headers.get('x-ratelimit-remaining-tokens') };
  }

  test('is not parsed as a whole for an estimate of its tokens, which counts its long texts', async () => {
    const { status, remaining } = await send(sessionOf(['call_9fK2mQ7xLp3Z']));
    expect(status).toBe(200);
    const estimate = limits.tokensPerMinute - Number(remaining) - 100;
    // Three times the text, four bytes a token; escapes count as they are written.
    expect(estimate).toBeGreaterThan((3 * long.length) / 4);
    expect(estimate).toBeLessThan(((3 * long.length) / 4) * 1.3);
    await expect.poll(() => unread).toEqual(['messages']);
  });

  test('of which a prediction is read alone', async () => {
    const prediction = { type: 'content', content: [{ type: 'text', text: long }] };
    expect((await send({ ...sessionOf([]), prediction })).status).toBe(200);
    await expect.poll(() => unread).toEqual(['messages']);
  });
});

describe('a long session that passes through', () => {
  test.each([
    ['OpenAI, without a digit', (n: number) => `call_aBcDeFgHiJkLmNoPqRsTuV${'XYZ'[n]}w`],
    ['Anthropic', (n: number) => `toolu_01D7FLrfh4GYq7yT1ULFey${n}V`],
    ['Gemini', (n: number) => `function-call-123456789012345678${n}`],
    ['Kimi', (n: number) => `functions.find:${n}`],
    ['Mistral', (n: number) => `aBcDeFgH${'XYZ'[n]}`],
    ['vLLM', (n: number) => `chatcmpl-tool-0123456789abcde${n}`],
    ['Ollama', (n: number) => `call_abcdefg${'xyz'[n]}`],
    ['DeepSeek', (n: number) => `call_00_J2Eka8o9Z3lauAEj51BG811${n}`],
    ['a client that counts', (n: number) => `call_${n}`],
    ['a client that gives all calls one id', () => 'call'],
  ])('is not parsed as a whole for the ids of its calls: %s', async (_maker, id) => {
    const body = JSON.stringify(sessionOf([0, 1, 2].map(id)));
    const answer = await fetchRaw(gateway, '/v1/chat/completions', { body, headers: {} });
    expect(answer.status).toBe(200);
    expect(upstream.requests[0]?.body.toString()).toBe(body);
    await expect.poll(() => unread).toEqual(['messages']);
  });
});

describe('a long request that is translated', () => {
  const call = { id: 'call_a1b2c3d4e5', name: 'write', input: { path: 'a.ts', code: long } };
  const request: JsonObject = {
    model: 'chat',
    max_tokens: 100,
    system: [{ type: 'text', text: `Be brief.\n${long}` }],
    messages: [
      { role: 'user', content: [{ type: 'text', text: ` \t${long} \u00e9\ud83d\ude00` }] },
      { role: 'assistant', content: [{ type: 'tool_use', ...call }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: `{"a":"${long}` }] },
      { role: 'assistant', content: 'Done.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: ' '.repeat(100) },
          { type: 'text', text: 'Go on.' },
        ],
      },
    ],
    tools: [{ name: 'write', description: long, input_schema: { type: 'object' } }],
  };

  test('says the same in the words of its channel, and is not parsed as a whole', async () => {
    const answer = await fetchRaw(gateway, '/v1/messages', {
      // Characters may be spelled in several ways.
      body: JSON.stringify(request).replaceAll('\u00e9', '\\u00e9').replaceAll('long', 'l\\u006fng'),
      headers: { 'anthropic-version': '2023-06-01' },
    });
    expect(answer.status).toBe(200);
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toMatchObject({
      messages: [
        { role: 'system', content: `Be brief.\n${long}` },
        { role: 'user', content: ` \t${long} \u00e9\ud83d\ude00` },
        {
          role: 'assistant',
          tool_calls: [{ id: call.id, function: { name: 'write', arguments: JSON.stringify(call.input) } }],
        },
        { role: 'tool', tool_call_id: call.id, content: `{"a":"${long}` },
        { role: 'assistant', content: 'Done.' },
        { role: 'user' },
      ],
      tools: [{ type: 'function', function: { name: 'write', description: long } }],
    });
    await expect.poll(() => unread).toEqual(['system', 'messages', 'tools']);
  });

  test("says what its client said, also where that looks like something of the gateway's own", async () => {
    const answer = await fetchRaw(gateway, '/v1/messages', {
      body: JSON.stringify({
        ...request,
        messages: [{ role: 'user', content: `\f100000 ${long}` }, ...more],
      }),
      headers: { 'anthropic-version': '2023-06-01' },
    });
    expect(answer.status).toBe(200);
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toMatchObject({
      messages: [{}, { content: `\f100000 ${long}` }, { content: '\f100001' }],
    });
  });
  // What stands for a long text inside the gateway.
  const more = [{ role: 'assistant', content: '\f100001' }];
});

test('a long response that is stored keeps every word of what was asked', async () => {
  const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: long }] }];
  const response = await fetchRaw(gateway, '/v1/responses', {
    body: JSON.stringify({ model: 'own', input }),
    headers: {},
  });
  expect(response.status).toBe(200);
  const { id } = JSON.parse(response.text) as { readonly id: string };
  const kept = await fetch(`${gateway.url}/v1/responses/${id}/input_items`, {
    headers: { authorization: `Bearer ${gateway.key}` },
  });
  expect(kept.status).toBe(200);
  expect(await kept.json()).toMatchObject({ data: [{ content: [{ type: 'input_text', text: long }] }] });
});

test('a long request that refers to a file is refused where the key has none of that name', async () => {
  const parts = [
    { type: 'text', text: long },
    { type: 'file', file: { file_id: 'file-abcdefgh12345678' } },
  ];
  const answer = await fetchRaw(gateway, '/v1/chat/completions', {
    body: JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: parts }] }),
    headers: {},
  });
  expect(answer.status).toBe(404);
  expect(answer.text).toContain('file-abcdefgh12345678');
  expect(upstream.requests).toEqual([]);
});
