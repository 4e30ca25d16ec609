import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import dashscope from '../../channels/dashscope/index.ts';
import deepseek from '../../channels/deepseek.ts';
import fireworks from '../../channels/fireworks/index.ts';
import friendli from '../../channels/friendli.ts';
import minimax from '../../channels/minimax/index.ts';
import moonshot from '../../channels/moonshot.ts';
import openrouter from '../../channels/openrouter.ts';
import vercel from '../../channels/vercel.ts';
import zai from '../../channels/zai.ts';
import zhipu from '../../channels/zhipu.ts';
import { Provider, sse } from './_provider.ts';
import { UsageListener } from './_usage-listener.ts';

let provider: Provider;
const listener = new UsageListener();

/** Paths of the messages format and of chat completions for each kind. */
const sides = {
  deepseek: { model: 'deepseek-v4-pro', chat: '/v1', messages: '/anthropic/v1', credential: 'x-api-key' },
  moonshot: { model: 'kimi-k2.6', chat: '/v1', messages: '/anthropic/v1', credential: 'authorization' },
  zai: { model: 'glm-4.7', chat: '/api/paas/v4', messages: '/api/anthropic/v1', credential: 'authorization' },
  zhipu: {
    model: 'glm-5.2',
    chat: '/api/paas/v4',
    messages: '/api/anthropic/v1',
    credential: 'authorization',
  },
  minimax: { model: 'MiniMax-M3', chat: '/v1', messages: '/anthropic/v1', credential: 'x-api-key' },
  dashscope: {
    model: 'qwen3.7-plus',
    chat: '/compatible-mode/v1',
    messages: '/apps/anthropic/v1',
    credential: 'x-api-key',
  },
  openrouter: {
    model: 'anthropic/claude-sonnet-4.5',
    chat: '/api/v1',
    messages: '/api/v1',
    credential: 'authorization',
  },
  fireworks: {
    model: 'accounts/fireworks/models/kimi-k2p5',
    chat: '/inference/v1',
    messages: '/inference/v1',
    credential: 'authorization',
  },
  friendli: {
    model: 'zai-org/GLM-5.2',
    chat: '/serverless/v1',
    messages: '/serverless/v1',
    credential: 'authorization',
  },
  vercel: {
    model: 'anthropic/claude-haiku-4.5',
    chat: '/v1',
    messages: '/v1',
    credential: 'authorization',
  },
} as const;
type Kind = keyof typeof sides;

const makers = {
  deepseek,
  moonshot,
  zai,
  zhipu,
  minimax,
  dashscope,
  openrouter,
  fireworks,
  friendli,
  vercel,
};
const kinds = Object.keys(sides) as Kind[];

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [listener.plugin],
    channels: [
      ...kinds.map((kind) =>
        makers[kind]({
          id: kind,
          key: 'key-of-the-provider',
          baseUrl: `${url}/${kind}${sides[kind].chat}`,
          models: { [kind]: sides[kind].model },
          discover: false,
        }),
      ),
      deepseek({
        id: 'elsewhere',
        key: 'k',
        baseUrl: `${url}/gateway/deepseek`,
        models: { elsewhere: 'deepseek-v4-pro' },
      }),
      moonshot({ id: 'older', key: 'k', baseUrl: `${url}/older/v1`, models: { older: 'moonshot-v1-32k' } }),
      openrouter({
        id: 'others',
        key: 'k',
        baseUrl: `${url}/others/v1`,
        models: { others: 'openai/gpt-4o' },
        discover: false,
      }),
    ],
  }));
});
afterAll(() => provider.close());

/** Each provider signs what its model thought. */
const signatureOf = (kind: string): string => Buffer.from(`signed by ${kind}`).toString('base64');

const messageOf = (kind: string) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [
    { type: 'thinking', thinking: 'Hm.', signature: signatureOf(kind) },
    { type: 'text', text: 'fine' },
  ],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: {
    input_tokens: 5,
    cache_creation_input_tokens: 2,
    cache_read_input_tokens: 30,
    output_tokens: 7,
  },
});
const completion = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};

const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output: [],
  usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
};

/** Returns a request as Claude Code sends it. */
const claudeCodeRequest = (model: string, more: object = {}): object => ({
  model,
  max_tokens: 4096,
  system: [{ type: 'text', text: 'You are an agent.', cache_control: { type: 'ephemeral' } }],
  thinking: { type: 'enabled', budget_tokens: 2048 },
  metadata: { user_id: 'u-1' },
  tools: [{ name: 'look', description: 'Looks.', input_schema: { type: 'object', properties: {} } }],
  messages: [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: signatureOf(model) },
        { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          content: 'seen',
          cache_control: { type: 'ephemeral' },
        },
      ],
    },
  ],
  ...more,
});

test('DeepSeek gets functions without the type that it refuses, and the rest of the request as it is', async () => {
  provider.says(() => ({ body: messageOf('deepseek') }));
  const look = { name: 'look', description: 'Looks.', input_schema: { type: 'object', properties: {} } };
  const hosted = { type: 'web_search_20250305', name: 'web_search' };
  const tools = [{ type: 'custom', ...look }, hosted];
  const answer = await provider.post('/v1/messages', claudeCodeRequest('deepseek', { tools }));
  expect([answer.status, answer.headers.get('x-sluice-loss')]).toEqual([200, null]);
  const sent = JSON.parse(String(provider.requests[0]?.body)) as object;
  expect(sent).toEqual({ ...claudeCodeRequest('deepseek'), model: 'deepseek-v4-pro', tools: [look, hosted] });
});

describe.each(kinds)('%s', (kind) => {
  const { model, chat, messages, credential } = sides[kind];
  const message = messageOf(kind);

  test('serves messages clients in their format: thinking, caches and tools go as they are', async () => {
    provider.says(() => ({ body: message }));
    const body = claudeCodeRequest(kind);
    const answer = await provider.post('/v1/messages', body);
    expect(await answer.json()).toMatchObject({ content: message.content, usage: message.usage });
    expect([answer.status, answer.headers.get('x-sluice-loss')]).toEqual([200, null]);
    expect(provider.paths).toEqual([`POST /${kind}${messages}/messages`]);
    expect(provider.requests[0]?.body.toString()).toBe(JSON.stringify({ ...body, model }));
    expect(provider.requests[0]?.headers).toMatchObject({
      'anthropic-version': '2023-06-01',
      [credential]: credential === 'x-api-key' ? 'key-of-the-provider' : 'Bearer key-of-the-provider',
    });
    expect(listener.last).toMatchObject({ input: 37, cacheRead: 30, cacheWrite: 2, output: 7 });
  });

  test('streams to them, and counts what streams used', async () => {
    listener.last = undefined;
    const { usage: used, content: _, ...start } = message;
    provider.says(() =>
      sse([
        { type: 'message_start', message: { ...start, content: [], usage: { ...used, output_tokens: 1 } } },
        {
          type: 'content_block_start',
          index: 0,
          content_block: { type: 'thinking', thinking: '', signature: '' },
        },
        { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { output_tokens: 9 },
        },
        { type: 'message_stop' },
      ]),
    );
    const answer = await provider.post('/v1/messages', claudeCodeRequest(kind, { stream: true }));
    expect(await answer.text()).toContain('"thinking_delta","thinking":"Hm."');
    expect(listener.last).toMatchObject({ cacheRead: 30, output: 9 });
  });

  test('tells them its errors in their form', async () => {
    const error = {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'max_tokens: too large' },
    };
    provider.says(() => ({ status: 400, body: error }));
    const answer = await provider.post('/v1/messages', claudeCodeRequest(kind));
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject(error);
  });

  test.each([
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
    ['/v1/responses', { input: 'Hi' }],
  ])('serves clients of %s beside the messages format', async (path, body) => {
    const isNative = path === '/v1/responses' && (kind === 'openrouter' || kind === 'deepseek');
    provider.says(() => ({ body: isNative ? response : completion }));
    const answer = await provider.post(path, { model: kind, ...body });
    expect(answer.status).toBe(200);
    expect(provider.paths).toEqual([`POST /${kind}${chat}/${isNative ? 'responses' : 'chat/completions'}`]);
  });
});

test.each([
  ['an address of another form than the provider’s', 'elsewhere', '/gateway/deepseek'],
  ['a model that is not served there', 'older', '/older/v1'],
  ['a model of another vendor than Anthropic', 'others', '/others/v1'],
])('%s has chat completions alone', async (_, model, base) => {
  provider.says(() => ({ body: completion }));
  const answer = await provider.post('/v1/messages', {
    model,
    max_tokens: 100,
    messages: [{ role: 'user', content: 'Hi' }],
  });
  expect(answer.status).toBe(200);
  expect(provider.paths).toEqual([`POST ${base}/chat/completions`]);
});

test('a forced tool switches thinking off where the model does not take both', async () => {
  provider.says(() => ({ body: messageOf('deepseek') }));
  const answer = await provider.post(
    '/v1/messages',
    claudeCodeRequest('deepseek', { tool_choice: { type: 'any' } }),
  );
  expect(answer.status).toBe(200);
  expect(provider.posted()).toMatchObject({ thinking: { type: 'disabled' }, tool_choice: { type: 'any' } });
  expect(answer.headers.get('x-sluice-loss')).toContain('thinking');
});
