import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import cohere from '../../channels/cohere/index.ts';
import { Provider, sse } from './_provider.ts';

type Json = Record<string, unknown>;

let provider: Provider;
let answer: Json | readonly Json[] = {};

beforeAll(async () => {
  provider = await Provider.start((url) => ({ channels: [cohere({ key: 'k', baseUrl: url })] }));
});
afterAll(() => provider.close());
beforeEach(() => {
  provider.says(() => (Array.isArray(answer) ? sse(answer as readonly Json[]) : { body: answer }));
});

const post = (path: string, body: Json): Promise<Response> => provider.post(path, body);
const sent = (): Json => provider.posted();

const documents = [
  {
    id: 'd1',
    data: { title: 'Tall penguins', url: 'https://penguins.example', snippet: 'Emperors are tall.' },
  },
];
const citation = {
  start: 0,
  end: 8,
  text: 'Emperors',
  sources: [{ type: 'document', id: 'd1', document: { id: 'd1', ...documents[0]?.data } }],
  type: 'TEXT_CONTENT',
};
const usage = {
  billed_units: { input_tokens: 9, output_tokens: 4 },
  tokens: { input_tokens: 80, output_tokens: 6 },
};

test('documents go to Cohere, and its citations come back with their sources', async () => {
  answer = {
    id: 'c1',
    finish_reason: 'COMPLETE',
    message: { role: 'assistant', content: [{ type: 'text', text: 'Emperors.' }], citations: [citation] },
    usage,
  };
  const reply = await post('/v1/chat/completions', {
    model: 'command-a-03-2025',
    messages: [{ role: 'user', content: 'Who is tall?' }],
    documents,
    citation_options: { mode: 'FAST' },
    safety_mode: 'STRICT',
    top_p: 0.5,
    stop: 'END',
  });
  expect(await reply.json()).toMatchObject({
    choices: [
      {
        message: {
          content: 'Emperors.',
          annotations: [
            {
              type: 'url_citation',
              url_citation: {
                url: 'https://penguins.example',
                title: 'Tall penguins',
                start_index: 0,
                end_index: 8,
              },
              sources: [{ id: 'd1' }],
            },
          ],
        },
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
  });
  expect(provider.requests[0]?.url).toBe('/v2/chat');
  expect(sent()).toEqual({
    model: 'command-a-03-2025',
    messages: [{ role: 'user', content: 'Who is tall?' }],
    stream: false,
    p: 0.5,
    stop_sequences: ['END'],
    documents,
    citation_options: { mode: 'FAST' },
    safety_mode: 'STRICT',
  });
});

test('a stream tells its plan, its calls, and its citations', async () => {
  const start = { type: 'message-start', id: 'c2', delta: { message: { role: 'assistant', content: [] } } };
  answer = [
    start,
    { type: 'tool-plan-delta', delta: { message: { tool_plan: 'I will look.' } } },
    {
      type: 'tool-call-start',
      index: 0,
      delta: {
        message: {
          tool_calls: { id: 'look_1', type: 'function', function: { name: 'look', arguments: '' } },
        },
      },
    },
    {
      type: 'tool-call-delta',
      index: 0,
      delta: { message: { tool_calls: { function: { arguments: '{"at":1}' } } } },
    },
    { type: 'tool-call-end', index: 0 },
    { type: 'message-end', delta: { finish_reason: 'TOOL_CALL', usage } },
  ];
  const tools = [{ name: 'look', input_schema: { type: 'object' } }];
  const request = {
    model: 'command-a-03-2025',
    max_tokens: 99,
    messages: [{ role: 'user', content: 'Look.' }],
  };
  const planned = await (await post('/v1/messages', { ...request, tools, stream: true })).text();
  expect(planned).toContain('I will look.');
  expect(planned).toContain('"stop_reason":"tool_use"');
  expect(planned).toContain('{\\"at\\":1}');
  answer = [
    start,
    { type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text: '' } } } },
    { type: 'content-delta', index: 0, delta: { message: { content: { text: 'Emperors.' } } } },
    { type: 'citation-start', index: 0, delta: { message: { citations: citation } } },
    { type: 'citation-end', index: 0 },
    { type: 'content-end', index: 0 },
    { type: 'message-end', delta: { finish_reason: 'COMPLETE', usage } },
  ];
  const cited = await (await post('/v1/chat/completions', { ...request, stream: true })).text();
  expect(cited).toContain('https://penguins.example');
  expect(cited).toMatch(/data: \[DONE\]\s*$/);
});

test('the plan goes back with the results of its calls', async () => {
  answer = {
    id: 'c3',
    finish_reason: 'COMPLETE',
    message: { content: [{ type: 'text', text: 'Done.' }] },
    usage,
  };
  const call = { id: 'look_1', type: 'function', function: { name: 'look', arguments: '{}' } };
  await post('/v1/chat/completions', {
    model: 'command-a-03-2025',
    messages: [
      { role: 'user', content: 'Look.' },
      { role: 'assistant', content: null, reasoning_content: 'I will look.', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'look_1', content: 'seen' },
    ],
    tool_choice: { type: 'function', function: { name: 'look' } },
    tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
  });
  expect(sent()).toMatchObject({
    tool_choice: 'REQUIRED',
    messages: [
      { role: 'user', content: 'Look.' },
      { role: 'assistant', tool_plan: 'I will look.', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'look_1', content: 'seen' },
    ],
  });
});

test('a text that came as a file is a document, and an answer that broke off is an error', async () => {
  answer = { id: 'c4', finish_reason: 'ERROR', message: { content: [] }, usage };
  const data = Buffer.from('The secret is marmalade.').toString('base64');
  const reply = await post('/v1/chat/completions', {
    model: 'command-a-03-2025',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'The secret?' },
          { type: 'file', file: { filename: 'a.txt', file_data: `data:text/plain;base64,${data}` } },
        ],
      },
    ],
  });
  expect(reply.status).toBe(502);
  expect(sent()).toMatchObject({
    messages: [{ role: 'user', content: [{ type: 'text', text: 'The secret?' }] }],
    documents: [{ data: { title: 'a.txt', text: 'The secret is marmalade.' } }],
  });
});

test('what it has no part for is refused by its name', async () => {
  const sound = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } };
  const reply = await post('/v1/chat/completions', {
    model: 'command-a-03-2025',
    messages: [{ role: 'user', content: [sound] }],
  });
  expect(reply.status).toBe(400);
  expect(await reply.json()).toMatchObject({
    error: { code: 'unsupported_content', message: expect.stringContaining('input_audio') as string },
  });
  expect(provider.paths).toEqual([]);
});

// The shapes of cohere-ai 8.1.0, api/types/Usage.d.ts and AssistantMessageResponse.d.ts.
test('billed tokens count in full, also where the prompt was cached', async () => {
  answer = {
    id: 'c5',
    finish_reason: 'COMPLETE',
    message: { role: 'assistant', content: [{ type: 'text', text: 'Hi.' }] },
    usage: { ...usage, cached_tokens: 64 },
  };
  const request = { model: 'command-a-03-2025', messages: [{ role: 'user', content: 'Hi' }] };
  const reply = (await (await post('/v1/chat/completions', request)).json()) as { usage: Json };
  expect(reply.usage).toEqual({ prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 });
});

const call = (args: string): Json => ({
  id: 'now_1',
  type: 'function',
  function: { name: 'now', arguments: args },
});
const now = { type: 'function', function: { name: 'now', parameters: { type: 'object', properties: {} } } };

// @ai-sdk/cohere 3.0.63, src/cohere-chat-language-model.ts: arguments of tools without parameters may be `null`.
test('a call without arguments has an empty object, and a reply of calls alone has no text', async () => {
  answer = {
    id: 'c6',
    finish_reason: 'TOOL_CALL',
    message: { role: 'assistant', tool_plan: 'I will look.', tool_calls: [call('null')] },
    usage,
  };
  const request = {
    model: 'command-a-03-2025',
    messages: [{ role: 'user', content: 'When?' }],
    tools: [now],
  };
  expect(await (await post('/v1/chat/completions', request)).json()).toMatchObject({
    choices: [{ message: { content: null, tool_calls: [call('{}')] }, finish_reason: 'tool_calls' }],
  });
  const start = { type: 'message-start', id: 'c6', delta: { message: { role: 'assistant', content: [] } } };
  const piece = (type: string, calls: Json): Json => ({
    type,
    index: 0,
    delta: { message: { tool_calls: calls } },
  });
  answer = [
    start,
    piece('tool-call-start', call('')),
    piece('tool-call-delta', { function: { arguments: 'nu' } }),
    piece('tool-call-delta', { function: { arguments: 'll' } }),
    { type: 'tool-call-end', index: 0 },
    { type: 'message-end', delta: { finish_reason: 'TOOL_CALL', usage } },
  ];
  const streamed = await (await post('/v1/chat/completions', { ...request, stream: true })).text();
  const deltas = [...streamed.matchAll(/^data: (\{.*)$/gm)].map(
    ([, data]) =>
      JSON.parse(data ?? '') as { choices: { delta: { content?: string; tool_calls?: Json[] } }[] },
  );
  const args = deltas.flatMap(({ choices }) =>
    (choices[0]?.delta.tool_calls ?? []).map((one) => (one['function'] as Json)['arguments'] ?? ''),
  );
  expect(args.join('')).toBe('{}');
  expect(deltas.some(({ choices }) => typeof choices[0]?.delta.content === 'string')).toBe(false);
});

test('citations of documents without an address come as Cohere has them, and not as those of pages', async () => {
  const bare = {
    ...citation,
    sources: [{ type: 'document', id: 'd2', document: { id: 'd2', snippet: 'Emperors are tall.' } }],
  };
  answer = {
    id: 'c7',
    finish_reason: 'COMPLETE',
    message: {
      role: 'assistant',
      content: [{ type: 'text', text: 'Emperors.' }],
      citations: [bare, citation],
    },
    usage,
  };
  const request = { model: 'command-a-03-2025', messages: [{ role: 'user', content: 'Who is tall?' }] };
  const reply = (await (await post('/v1/chat/completions', request)).json()) as {
    choices: [{ message: { annotations: Json[]; citations: Json[] } }];
  };
  const [{ message }] = reply.choices;
  expect(message.annotations.map(({ url_citation: cited }) => (cited as Json)['url'])).toEqual([
    'https://penguins.example',
  ]);
  expect(message.citations).toEqual([bare]);
  answer = [
    { type: 'message-start', id: 'c7', delta: { message: { role: 'assistant', content: [] } } },
    { type: 'content-start', index: 0, delta: { message: { content: { type: 'text', text: '' } } } },
    { type: 'content-delta', index: 0, delta: { message: { content: { text: 'Emperors.' } } } },
    { type: 'citation-start', index: 0, delta: { message: { citations: bare } } },
    { type: 'citation-end', index: 0 },
    { type: 'content-end', index: 0 },
    { type: 'message-end', delta: { finish_reason: 'COMPLETE', usage } },
  ];
  const streamed = await (await post('/v1/chat/completions', { ...request, stream: true })).text();
  expect(streamed).not.toContain('url_citation');
  expect(streamed).toContain('Emperors are tall.');
});

test('thinking has a budget of its own, which leaves room for the answer, or is switched off', async () => {
  answer = {
    id: 'c8',
    finish_reason: 'COMPLETE',
    message: { content: [{ type: 'text', text: 'Done.' }] },
    usage,
  };
  const model = 'command-a-reasoning-08-2025';
  const messages = [{ role: 'user', content: 'Think.' }];
  const thinkingOf = async (body: Json): Promise<unknown> => {
    const reply = await post('/v1/chat/completions', { model, messages, ...body });
    expect(reply.headers.get('x-sluice-loss')).toBeNull();
    return provider.posted(-1)['thinking'];
  };
  expect(await thinkingOf({ reasoning_effort: 'medium' })).toEqual({ type: 'enabled', token_budget: 8192 });
  expect(await thinkingOf({ reasoning_effort: 'medium', max_tokens: 4000 })).toEqual({
    type: 'enabled',
    token_budget: 3000,
  });
  expect(await thinkingOf({ reasoning_effort: 'none' })).toEqual({ type: 'disabled' });
  expect(await thinkingOf({ thinking: { type: 'enabled', token_budget: 500 } })).toEqual({
    type: 'enabled',
    token_budget: 500,
  });
  expect(await thinkingOf({})).toBeUndefined();
  const budget = await post('/v1/messages', {
    model,
    messages,
    max_tokens: 20_000,
    thinking: { type: 'enabled', budget_tokens: 5000 },
  });
  expect(budget.headers.get('x-sluice-loss')).toBeNull();
  expect(provider.posted(-1)['thinking']).toEqual({ type: 'enabled', token_budget: 5000 });
});

test('a tool that is forced by its name goes alone, and nothing is lost that nobody sent', async () => {
  answer = { id: 'c9', finish_reason: 'TOOL_CALL', message: { tool_calls: [call('{}')] }, usage };
  const other = { type: 'function', function: { name: 'look', parameters: { type: 'object' } } };
  const reply = await post('/v1/chat/completions', {
    model: 'command-a-03-2025',
    messages: [{ role: 'user', content: 'When?' }],
    tools: [other, now],
    tool_choice: { type: 'function', function: { name: 'now' } },
    temperature: 1.5,
  });
  expect(sent()).toMatchObject({ tool_choice: 'REQUIRED', tools: [now], temperature: 1 });
  expect(reply.headers.get('x-sluice-loss')).toBe('temperature');
});

const look = (parameters: object, strict: boolean) => ({
  type: 'function',
  function: { name: 'look', parameters, strict },
});
const trip = {
  type: 'object',
  properties: {
    city: { type: 'string', minLength: 2, pattern: '^[A-Z]' },
    days: { type: 'integer', minimum: 1, maximum: 9 },
    mail: { type: 'string', format: 'email' },
    stops: { type: 'array', items: { type: 'string' }, minItems: 1 },
    from: { oneOf: [{ type: 'string', format: 'date' }, { type: 'integer' }] },
  },
};
const adapted = {
  type: 'object',
  properties: {
    city: { type: 'string', description: '{minLength: 2, pattern: "^[A-Z]"}' },
    days: { type: 'integer', description: '{minimum: 1, maximum: 9}' },
    mail: { type: 'string', description: '{format: "email"}' },
    stops: { type: 'array', items: { type: 'string' }, description: '{minItems: 1}' },
    from: { anyOf: [{ type: 'string', format: 'date' }, { type: 'integer' }] },
  },
  required: ['city'],
};

test('schemas of answers are adapted to what Cohere takes, strict or not', async () => {
  for (const strict of [true, false]) {
    answer = { id: 'c1', finish_reason: 'COMPLETE', message: { role: 'assistant', content: [] }, usage };
    const reply = await post('/v1/chat/completions', {
      model: 'command-a-03-2025',
      messages: [{ role: 'user', content: 'Plan.' }],
      response_format: { type: 'json_schema', json_schema: { name: 'trip', strict, schema: trip } },
    });
    expect(reply.status).toBe(200);
    expect(sent()).toMatchObject({ response_format: { type: 'json_object', json_schema: adapted } });
    expect(reply.headers.get('x-sluice-loss')).toContain('schema.required');
  }
});

test('tools that are all strict are kept so, with schemas that Cohere takes', async () => {
  answer = { id: 'c1', finish_reason: 'COMPLETE', message: { role: 'assistant', content: [] }, usage };
  await post('/v1/chat/completions', {
    model: 'command-a-03-2025',
    messages: [{ role: 'user', content: 'Plan.' }],
    tools: [look(trip, true)],
  });
  expect(sent()).toMatchObject({ strict_tools: true });
  expect(sent()['tools']).toEqual([{ type: 'function', function: { name: 'look', parameters: adapted } }]);
});

test.each([
  ['one of them is not', [look(trip, true), { type: 'function', function: { name: 'now' } }]],
  ['one has no fields', [look({ type: 'object', properties: {} }, true)]],
  [
    'they have more than 200 fields',
    [
      look(
        {
          type: 'object',
          properties: Object.fromEntries(
            Array.from({ length: 201 }, (_, at) => [`f${at}`, { type: 'string' }]),
          ),
        },
        true,
      ),
    ],
  ],
])('strict tools go without that where %s', async (_, tools) => {
  answer = { id: 'c1', finish_reason: 'COMPLETE', message: { role: 'assistant', content: [] }, usage };
  const reply = await post('/v1/chat/completions', {
    model: 'command-a-03-2025',
    messages: [{ role: 'user', content: 'Plan.' }],
    tools,
  });
  expect(JSON.stringify(sent())).not.toContain('strict');
  expect(reply.headers.get('x-sluice-loss')).toBe('tools[0].function.strict');
});
