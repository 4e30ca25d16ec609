import { afterAll, beforeAll, expect, test } from 'vitest';
import databricks from '../../channels/databricks.ts';
import snowflake from '../../channels/snowflake.ts';
import { Provider, sse } from './_provider.ts';

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      databricks({
        key: 'dapi-token',
        baseUrl: `${url}/serving-endpoints`,
        models: { 'on-databricks': 'databricks-claude-sonnet-4-5', gpt: 'databricks-gpt-5-1' },
      }),
      databricks({
        id: 'gateway',
        key: 'dapi-token',
        gateway: '1234.ai-gateway.cloud.databricks.com',
        baseUrl: url,
        models: {
          'at-the-gateway': 'databricks-claude-sonnet-4-5',
          'gpt-there': 'databricks-gpt-5-1',
          vectors: 'databricks-gte',
        },
      }),
      snowflake({
        key: 'access-token',
        baseUrl: `${url}/api/v2/cortex/v1`,
        models: { 'on-snowflake': 'claude-sonnet-4-5', llama: 'llama3.1-70b' },
      }),
    ],
  }));
});
afterAll(() => provider.close());

const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'c2lnbmVk' };
const reply = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [thinking, { type: 'text', text: 'Yes.' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 9, output_tokens: 4, cache_read_input_tokens: 6 },
};

test.each([
  ['on-databricks', '/serving-endpoints/anthropic/v1/messages', 'databricks-claude-sonnet-4-5', 'dapi-token'],
  ['at-the-gateway', '/anthropic/v1/messages', 'databricks-claude-sonnet-4-5', 'dapi-token'],
  ['on-snowflake', '/api/v2/cortex/v1/messages', 'claude-sonnet-4-5', 'access-token'],
])(
  'Claude %s is asked in the messages format, with its thinking and what came from the cache',
  async (model, path, there, token) => {
    provider.says(() => ({ body: reply }));
    const answer = await provider.post('/v1/chat/completions', {
      model,
      max_tokens: 4000,
      reasoning_effort: 'low',
      messages: [{ role: 'user', content: 'Well?' }],
    });
    expect(await answer.json()).toMatchObject({
      choices: [{ message: { content: 'Yes.', reasoning_content: 'Hm.' } }],
      usage: { prompt_tokens: 15, prompt_tokens_details: { cached_tokens: 6 } },
    });
    expect(provider.paths).toEqual([`POST ${path}`]);
    expect(provider.requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${token}`,
      'anthropic-version': '2023-06-01',
    });
    expect(provider.posted()).toMatchObject({ model: there, thinking: { type: 'enabled' } });
  },
);

test('the proof of what Claude thought goes back to it, whole and streamed', async () => {
  const events = [
    { type: 'message_start', message: { ...reply, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'Hm.' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'c2lnbmVk' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 4 } },
    { type: 'message_stop' },
  ];
  provider.says(() => sse(events));
  const postMessages = (body: object): Promise<Response> =>
    provider.post('/v1/messages', { model: 'on-databricks', max_tokens: 4000, ...body });
  const text = await (
    await postMessages({ stream: true, messages: [{ role: 'user', content: 'Well?' }] })
  ).text();
  expect(text).toContain('"signature":"c2lnbmVk"');
  provider.says(() => ({ body: reply }));
  const messages = [
    { role: 'user', content: 'Well?' },
    { role: 'assistant', content: [thinking, { type: 'text', text: 'Yes.' }] },
    { role: 'user', content: 'Why?' },
  ];
  expect((await postMessages({ messages })).status).toBe(200);
  expect(provider.posted()['messages']).toEqual(messages);
});

test('all others are asked in chat completions', async () => {
  const answer = {
    body: {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Yes.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    },
  };
  const sendChat = async (model: string): Promise<unknown> => {
    provider.says(() => answer);
    const body = { model, reasoning_effort: 'low', messages: [{ role: 'user', content: 'Well?' }] };
    expect((await provider.post('/v1/chat/completions', body)).status).toBe(200);
    return provider.posted()['model'];
  };
  expect(await sendChat('gpt')).toBe('databricks-gpt-5-1');
  expect(provider.paths).toEqual(['POST /serving-endpoints/chat/completions']);
  expect(await sendChat('gpt-there')).toBe('databricks-gpt-5-1');
  expect(provider.paths).toEqual(['POST /mlflow/v1/chat/completions']);
  expect(await sendChat('llama')).toBe('llama3.1-70b');
  expect(provider.paths).toEqual(['POST /api/v2/cortex/v1/chat/completions']);
});

test('an AI Gateway embeds', async () => {
  provider.says(() => ({
    body: {
      object: 'list',
      model: 'm',
      data: [{ object: 'embedding', index: 0, embedding: [0.5] }],
      usage: { prompt_tokens: 1, total_tokens: 1 },
    },
  }));
  expect((await provider.post('/v1/embeddings', { model: 'vectors', input: 'a' })).status).toBe(200);
  expect(provider.paths).toEqual(['POST /mlflow/v1/embeddings']);
});
