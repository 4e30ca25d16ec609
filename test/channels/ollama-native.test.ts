import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import ollama from '../../channels/ollama/index.ts';
import { eventually } from '../support/eventually.ts';
import { ndjson, Provider } from './_provider.ts';

type Json = Record<string, unknown>;

let provider: Provider;
let lines: readonly Json[] = [];

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      ollama({ native: true, keepAlive: '10m', baseUrl: url, models: ['qwen3*', 'llama*', 'nomic*'] }),
    ],
  }));
});
afterAll(() => provider.close());
beforeEach(() => {
  provider.says(({ method }) =>
    method === 'GET' ? { body: { models: [{ name: 'qwen3:8b', model: 'qwen3:8b' }] } } : ndjson(lines),
  );
});

const post = (path: string, body: Json): Promise<Response> => provider.post(path, body);
const sent = (): Json => provider.posted(-1);

const done = { model: 'qwen3:8b', done: true, done_reason: 'stop', prompt_eval_count: 5, eval_count: 2 };

test('a tool loop of messages thinks, calls and goes on in Ollama’s own words', async () => {
  lines = [
    {
      ...done,
      message: {
        role: 'assistant',
        content: '',
        thinking: 'They want the weather.',
        tool_calls: [{ function: { name: 'weather', arguments: { city: 'Oslo' } } }],
      },
    },
  ];
  const request = {
    model: 'qwen3:8b',
    max_tokens: 2000,
    thinking: { type: 'enabled', budget_tokens: 1024 },
    tools: [{ name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }],
    messages: [{ role: 'user', content: 'Weather in Oslo?' }],
  };
  const first = await post('/v1/messages', request);
  const reply = (await first.json()) as { content: Json[]; stop_reason: string };
  expect(reply.stop_reason).toBe('tool_use');
  expect(reply.content).toMatchObject([
    { type: 'thinking', thinking: 'They want the weather.' },
    { type: 'tool_use', name: 'weather', input: { city: 'Oslo' } },
  ]);
  expect(sent()).toMatchObject({
    model: 'qwen3:8b',
    stream: false,
    think: true,
    keep_alive: '10m',
    options: { num_predict: 2000 },
    tools: [{ type: 'function', function: { name: 'weather' } }],
  });
  lines = [{ ...done, message: { role: 'assistant', content: 'Hail.' } }];
  const call = reply.content.find(({ type }) => type === 'tool_use');
  const second = await post('/v1/messages', {
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', content: reply.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call?.['id'], content: 'hail' }] },
    ],
  });
  expect(second.status).toBe(200);
  expect(sent()['messages']).toEqual([
    { role: 'user', content: 'Weather in Oslo?' },
    {
      role: 'assistant',
      content: '',
      thinking: 'They want the weather.',
      tool_calls: [
        { type: 'function', function: { index: 0, name: 'weather', arguments: { city: 'Oslo' } } },
      ],
    },
    { role: 'tool', content: 'hail', tool_name: 'weather' },
  ]);
});

test('a client of chat completions reaches options that only Ollama has', async () => {
  lines = [{ ...done, message: { role: 'assistant', content: '{}' } }];
  const answer = await post('/v1/chat/completions', {
    model: 'llama3.2',
    messages: [{ role: 'user', content: 'hi' }],
    temperature: 0.5,
    stop: 'END',
    keep_alive: 0,
    options: { num_ctx: 8192 },
    logit_bias: { 5: 1 },
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } },
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('x-sluice-loss')).toContain('logit_bias');
  expect(sent()).toEqual({
    model: 'llama3.2',
    messages: [{ role: 'user', content: 'hi' }],
    stream: false,
    format: { type: 'object' },
    options: { temperature: 0.5, stop: ['END'], num_ctx: 8192 },
    keep_alive: 0,
  });
});

test('a line that tells an error in the middle of a stream is told, and a stream without its last line was cut', async () => {
  const begun = { model: 'llama3.2', message: { role: 'assistant', content: 'Hel' }, done: false };
  const body = { model: 'llama3.2', stream: true, messages: [{ role: 'user', content: 'hi' }] };
  lines = [begun, { error: 'model runner has unexpectedly stopped' }];
  expect(await (await post('/v1/chat/completions', body)).text()).toContain('unexpectedly stopped');
  lines = [begun];
  const cut = await (await post('/v1/chat/completions', body)).text();
  expect(cut).toContain('"error"');
  expect(cut).not.toContain('[DONE]');
});

test('embeddings', async () => {
  lines = [{ model: 'nomic-embed-text', embeddings: [[0.5], [0.25]], prompt_eval_count: 4 }];
  const answer = await post('/v1/embeddings', {
    model: 'nomic-embed-text',
    input: ['a', 'b'],
    dimensions: 1,
  });
  expect(await answer.json()).toMatchObject({
    data: [{ embedding: [0.5] }, { embedding: [0.25] }],
    usage: { prompt_tokens: 4 },
  });
  expect(provider.requests.at(-1)?.url).toBe('/api/embed');
  expect(sent()).toMatchObject({ input: ['a', 'b'], dimensions: 1, keep_alive: '10m' });
});

test('the models that are there are asked for where Ollama lists them', async () => {
  const listed = await Provider.start((url) => ({
    channels: [ollama({ native: true, baseUrl: `${url}/v1`, models: 'discover' })],
  }));
  await eventually(() => expect(listed.paths).toContain('GET /api/tags'));
  await listed.close();
});
