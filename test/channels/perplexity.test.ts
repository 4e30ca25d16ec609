import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import perplexity from '../../channels/perplexity/index.ts';
import { Provider, sse } from './_provider.ts';
import { UsageListener } from './_usage-listener.ts';

let provider: Provider;
const listener = new UsageListener();

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [listener.plugin],
    channels: [
      perplexity({
        key: 'k',
        baseUrl: `${url}/v1`,
        models: ['sonar*', 'preset/*', 'openai/*', 'google/*', 'pplx-embed-v1-*'],
      }),
    ],
  }));
});
afterAll(() => provider.close());

const text = 'Dogs bark [2], cats purr [1] [2].';
const results = [
  { id: 1, title: 'Cats', url: 'https://a.example/cats', snippet: 'They purr.', date: '2025-01-01' },
  { id: 2, title: 'Dogs', url: 'https://b.example/dogs', snippet: 'They bark.' },
  { id: 3, title: 'Cows', url: 'https://c.example/cows', snippet: 'They moo.' },
];
const searched = { type: 'search_results', queries: ['dogs cats'], results };
const message = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
};
const usage = {
  input_tokens: 30,
  input_tokens_details: { cache_read_input_tokens: 20, cache_creation_input_tokens: 0 },
  output_tokens: 9,
  total_tokens: 39,
  tool_calls_details: { web_search: { invocation: 1 } },
  cost: {
    currency: 'USD',
    input_cost: 0.0001,
    output_cost: 0.0002,
    tool_calls_cost: 0.0025,
    total_cost: 0.0028,
  },
};
const whole = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  model: 'perplexity/sonar',
  status: 'completed',
  output: [searched, message],
  usage,
};

/** As the Agent API streams: events of the search belong to no item, and no part is begun. */
const pieces = [
  { type: 'response.created', response: { ...whole, status: 'in_progress', output: [], usage: undefined } },
  { type: 'response.in_progress' },
  { type: 'response.reasoning.started', thought: 'I look for dogs.' },
  { type: 'response.reasoning.search_queries', queries: ['dogs cats'] },
  { type: 'response.reasoning.search_results', results },
  { type: 'response.reasoning.stopped' },
  { type: 'response.output_item.added', output_index: 0, item: searched },
  { type: 'response.output_item.done', output_index: 0, item: searched },
  {
    type: 'response.output_item.added',
    output_index: 1,
    item: { ...message, content: [], status: 'in_progress' },
  },
  ...['Dogs bark [', '2], cats purr', ' [1] [2].'].map((delta) => ({
    type: 'response.output_text.delta',
    item_id: 'msg_1',
    output_index: 1,
    content_index: 0,
    delta,
  })),
  { type: 'response.output_text.done', item_id: 'msg_1', output_index: 1, content_index: 0, text },
  { type: 'response.output_item.done', output_index: 1, item: message },
  { type: 'response.completed', response: whole },
].map((piece, number) => ({ ...piece, sequence_number: number }));

describe.each([false, true])('streamed: %s', (stream) => {
  beforeEach(() => {
    provider.says(() => (stream ? sse(pieces) : { body: whole }));
  });
  const user = [{ role: 'user', content: 'Well?' }];

  test('a client of Responses has all that the Agent API says and takes', async () => {
    const answer = await provider.post('/v1/responses', {
      model: 'openai/gpt-5.5',
      input: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'output_text', text: 'Hello.', annotations: [] }] },
        { role: 'user', content: [{ type: 'input_text', text: 'Well?' }] },
      ],
      previous_response_id: undefined,
      reasoning: { effort: 'low' },
      tools: [{ type: 'fetch_url' }],
      max_steps: 3,
      text: { format: { type: 'json_schema', name: 'word', schema: { type: 'object' }, strict: true } },
      stream,
    });
    expect([answer.status, answer.headers.get('x-sluice-loss')]).toEqual([200, null]);
    const answerText = await answer.text();
    expect(answerText).toContain('"search_results"');
    expect(answerText).toContain('They moo.');
    expect(provider.paths).toEqual(['POST /v1/responses']);
    expect(provider.posted()).toEqual({
      model: 'openai/gpt-5.5',
      input: [
        { type: 'message', role: 'user', content: 'Hi' },
        { type: 'message', role: 'assistant', content: 'Hello.' },
        { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Well?' }] },
      ],
      reasoning: { effort: 'low' },
      tools: [{ type: 'fetch_url' }],
      max_steps: 3,
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'word', schema: { type: 'object' }, strict: true },
      },
      stream,
    });
    expect(listener.last).toMatchObject({ input: 30, cacheRead: 20, output: 9, raw: { cost: usage.cost } });
  });

  test('a client of messages has its sources as citations', async () => {
    const answer = await provider.post('/v1/messages', {
      model: 'sonar',
      max_tokens: 99,
      messages: user,
      stream,
    });
    const answerText = await answer.text();
    const cites = [...answerText.matchAll(/"url":"([^"]*)","title":"([^"]*)"/g)].map(([, url, title]) => [
      url,
      title,
    ]);
    expect(cites).toEqual([
      ['https://b.example/dogs', 'Dogs'],
      ['https://a.example/cats', 'Cats'],
    ]);
    if (stream) expect(answerText).toContain('I look for dogs.');
  });

  test('a client of chat completions has the text, and its sources where the text names them first', async () => {
    const answer = await provider.post('/v1/chat/completions', { model: 'sonar', messages: user, stream });
    const answerText = await answer.text();
    expect(answerText).toContain('"url":"https://a.example/cats"');
    expect(answerText).toContain(`"start_index":${text.indexOf('[2]')}`);
    expect(answerText).not.toContain('cows');
  });

  test('a client of generateContent has them as grounding', async () => {
    const verb = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    const contents = [{ role: 'user', parts: [{ text: 'Well?' }] }];
    const answerText = await (await provider.post(`/v1beta/models/sonar:${verb}`, { contents })).text();
    expect(answerText).toContain('"web":{"uri":"https://a.example/cats","title":"Cats"}');
    expect(answerText).toContain('"web":{"uri":"https://b.example/dogs","title":"Dogs"}');
  });
});

test('where it keeps nothing it gets the earlier turns, without the traces of its tools', async () => {
  provider.says(() => ({ body: whole }));
  const first = await provider.post('/v1/responses', {
    model: 'sonar',
    store: true,
    input: 'My name is Ada.',
  });
  const { id } = (await first.json()) as { readonly id: string };
  await provider.post('/v1/responses', { model: 'sonar', previous_response_id: id, input: 'And?' });
  const input = provider.posted(1)['input'] as readonly { readonly type: string; readonly role?: string }[];
  expect(input.map(({ type, role }) => `${type} ${role}`)).toEqual([
    'message user',
    'message assistant',
    'message user',
  ]);
});

test.each([
  ['sonar', { model: 'perplexity/sonar', preset: 'fast' }],
  ['sonar-pro', { model: 'perplexity/sonar', preset: 'low' }],
  ['sonar-reasoning-pro', { model: 'perplexity/sonar', preset: 'medium' }],
  ['sonar-deep-research', { model: 'perplexity/sonar', preset: 'high' }],
  ['preset/xhigh', { preset: 'xhigh' }],
  ['google/gemini-3.7-flash', { model: 'google/gemini-3.7-flash' }],
])('%s is asked as %j', async (model, expected) => {
  provider.says(() => ({ body: whole }));
  const messages = [{ role: 'user', content: 'Well?' }];
  const answer = await provider.post('/v1/chat/completions', { model, messages });
  expect([answer.status, answer.headers.get('x-sluice-loss')]).toEqual([200, null]);
  const { model: sent, preset } = provider.posted();
  expect({ model: sent, preset }).toEqual({ model: undefined, preset: undefined, ...expected });
});

test('filters of Sonar are options of the search tool', async () => {
  provider.says(() => ({ body: whole }));
  const answer = await provider.post('/v1/chat/completions', {
    model: 'sonar',
    messages: [{ role: 'user', content: 'Well?' }],
    search_domain_filter: ['-c.example'],
    search_recency_filter: 'week',
    web_search_options: { search_context_size: 'low' },
    return_images: true,
  });
  expect(answer.headers.get('x-sluice-loss')).toBe('return_images');
  expect(provider.posted()).toMatchObject({
    tools: [
      {
        type: 'web_search',
        search_context_size: 'low',
        filters: { search_domain_filter: ['-c.example'], search_recency_filter: 'week' },
      },
    ],
  });
});

test('images behind what a tool gave go in the result of that tool', async () => {
  provider.says(() => ({ body: whole }));
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } };
  const tools = [{ name: 'look', input_schema: { type: 'object', properties: {} } }];
  const answer = await provider.post('/v1/messages', {
    model: 'sonar-pro',
    max_tokens: 99,
    tools,
    messages: [
      { role: 'user', content: 'What is there?' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [image] }] },
    ],
  });
  expect(answer.status).toBe(200);
  const input = provider.posted()['input'] as readonly object[];
  expect(input.at(-1)).toMatchObject({
    type: 'function_call_output',
    output: [{ type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' }],
  });
});

test('a reply that failed is an error, whole and streamed', async () => {
  const error = { code: 'model_error', message: 'The model failed.', type: 'server_error' };
  const sendChat = (stream: boolean) =>
    provider.post('/v1/chat/completions', {
      model: 'sonar',
      messages: [{ role: 'user', content: 'Hi' }],
      stream,
    });
  provider.says(() => ({ body: { ...whole, status: 'failed', output: [], error } }));
  expect((await sendChat(false)).status).toBeGreaterThanOrEqual(500);
  provider.says(() => sse([{ type: 'response.failed', sequence_number: 0, error }]));
  expect((await sendChat(true)).status).toBeGreaterThanOrEqual(500);
});

test('a client of Responses goes on from what Perplexity keeps', async () => {
  provider.says(() => ({ body: { ...whole, store: true } }));
  const first = await provider.post('/v1/responses', {
    model: 'sonar',
    store: true,
    input: 'My name is Ada.',
  });
  const { id } = (await first.json()) as { readonly id: string };
  const second = await provider.post('/v1/responses', {
    model: 'sonar',
    previous_response_id: id,
    input: 'And?',
  });
  expect(second.status).toBe(200);
  expect(provider.posted(1)).toMatchObject({ previous_response_id: 'resp_1', input: 'And?' });
});

test('embeddings, which come as signed bytes, are numbers for every client', async () => {
  const bytes = (...numbers: number[]): string => Buffer.from(Int8Array.from(numbers)).toString('base64');
  const cost = { currency: 'USD', input_cost: 0.00003, total_cost: 0.00003 };
  provider.says(() => ({
    body: {
      object: 'list',
      model: 'pplx-embed-v1-4b',
      data: [
        { object: 'embedding', index: 1, embedding: bytes(1, 0) },
        { object: 'embedding', index: 0, embedding: bytes(127, -128) },
      ],
      usage: { prompt_tokens: 5, total_tokens: 5, cost },
    },
  }));
  const sendChat = async (encoding: string) => {
    const answer = await provider.post('/v1/embeddings', {
      model: 'pplx-embed-v1-4b',
      input: ['cat', 'dog'],
      dimensions: 2,
      encoding_format: encoding,
      user: 'ann',
    });
    expect(answer.headers.get('x-sluice-loss')).toContain('user');
    return (await answer.json()) as { readonly data: readonly { readonly embedding: unknown }[] };
  };
  expect((await sendChat('float')).data.map(({ embedding }) => embedding)).toEqual([
    [127, -128],
    [1, 0],
  ]);
  expect(provider.posted()).toEqual({
    model: 'pplx-embed-v1-4b',
    input: ['cat', 'dog'],
    dimensions: 2,
    encoding_format: 'base64_int8',
  });
  const [first] = (await sendChat('base64')).data;
  const packed = Buffer.from(String(first?.embedding), 'base64');
  expect([packed.readFloatLE(0), packed.readFloatLE(4)]).toEqual([127, -128]);
});
