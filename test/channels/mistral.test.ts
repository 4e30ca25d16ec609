import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from 'vitest';
import type { HttpRequest } from '../../core/sdk/http.ts';
import mistral from '../../channels/mistral/index.ts';
import vertex from '../../channels/vertex/index.ts';
import { testCall } from '../support/call.ts';
import { Provider, sse } from './_provider.ts';

type Json = Record<string, unknown>;

let provider: Provider;
/** One whole reply, or the pieces of a stream. */
let answer: Json | readonly Json[] = {};

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      vertex({ key: 'express', baseUrl: `${url}/vertex`, models: { 'on-vertex': 'mistral-medium-3' } }),
      mistral({ key: 'k', baseUrl: `${url}/v1`, models: ['*'] }),
    ],
  }));
});
afterAll(() => provider.close());
beforeEach(() => {
  answer = whole('Bonjour.');
  provider.says(() =>
    Array.isArray(answer) ? sse(answer as readonly Json[], 'data: [DONE]\n\n') : { body: answer },
  );
});

const post = (path: string, body: Json): Promise<Response> => provider.post(path, body);
const chat = (body: Json): Promise<Response> =>
  post('/v1/chat/completions', { model: 'mistral-small-latest', ...body });
const messages = (body: Json): Promise<Response> =>
  post('/v1/messages', { model: 'mistral-small-latest', max_tokens: 99, ...body });
const sent = (index = 0): Json => provider.posted(index);
/** A file of the key's own, which its calls may name. */
const upload = async (id: string): Promise<void> => {
  answer = { id, object: 'file', bytes: 1, created_at: 1, filename: 'a.pdf', purpose: 'user_data' };
  const body = new FormData();
  body.set('purpose', 'user_data');
  body.set('file', new Blob(['x']), 'a.pdf');
  const { url, key } = provider.gateway;
  const made = await fetch(`${url}/v1/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body,
  });
  expect(made.status).toBe(200);
  answer = whole('Bonjour.');
  provider.requests.length = 0;
};
const hello = [{ role: 'user', content: 'Hello' }];

const usage = { prompt_tokens: 31, total_tokens: 192, completion_tokens: 161 };
const top = { id: 'c1', created: 1_785_156_128, model: 'mistral-small-latest' };

function whole(content: unknown, more: Json = {}): Json {
  return {
    ...top,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        message: { role: 'assistant', tool_calls: null, content, ...more },
      },
    ],
    usage,
  };
}

function stream(...contents: readonly unknown[]): readonly Json[] {
  const chunk = (delta: Json, finish: string | null, more: Json = {}): Json => ({
    ...top,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  });
  return [
    ...contents.map((content) => chunk({ role: 'assistant', content }, null)),
    chunk({ content: '' }, 'stop', { usage }),
  ];
}

const thinking = (text: string, more: Json = {}): Json => ({
  type: 'thinking',
  thinking: [{ type: 'text', text }],
  ...more,
});
const text = (words: string): Json => ({ type: 'text', text: words });

describe('settings', () => {
  test('seed, limit and choice of a tool go by Mistral’s names, and what it refuses is told', async () => {
    const look = { type: 'function', function: { name: 'look' } };
    const reply = await chat({
      messages: [{ ...hello[0], name: 'Ann' }],
      seed: 7,
      max_completion_tokens: 5,
      store: true,
      user: 'ann',
      tools: [look],
      tool_choice: 'required',
      prompt_cache_key: 'shared',
      service_tier: 'default',
    });
    expect(sent()).toEqual({
      model: 'mistral-small-latest',
      messages: hello,
      random_seed: 7,
      max_tokens: 5,
      tools: [
        { type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } },
      ],
      tool_choice: 'any',
      prompt_cache_key: 'shared',
      service_tier: 'standard_only',
    });
    const lost = reply.headers.get('x-sluice-loss');
    expect(lost).toContain('store');
    expect(lost).toContain('user');
    expect(lost).toContain('messages[0].name');
  });

  test('words of Mistral’s own go as they are', async () => {
    const own = {
      safe_prompt: true,
      random_seed: 3,
      prompt_mode: 'reasoning',
      guardrails: [{ block_on_error: true }],
    };
    await chat({ messages: hello, tool_choice: 'any', ...own });
    expect(sent()).toMatchObject(own);
  });

  test('a choice among some tools leaves out the others', async () => {
    const tool = (name: string): Json => ({
      type: 'function',
      function: { name, parameters: { type: 'object' } },
    });
    await chat({
      messages: hello,
      tools: ['look', 'listen'].map(tool),
      tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [tool('listen')] } },
    });
    expect(sent()).toMatchObject({ tools: [tool('listen')], tool_choice: 'any' });
  });

  test('a wish to think is an effort where a model can be asked, and never turns thinking off', async () => {
    await messages({ messages: hello, thinking: { type: 'enabled', budget_tokens: 2048 }, max_tokens: 4096 });
    expect(sent()).toMatchObject({ reasoning_effort: 'high' });
    await chat({ messages: hello, reasoning_effort: 'none' });
    expect(sent(1)).toMatchObject({ reasoning_effort: 'none' });
    const reply = await chat({
      model: 'mistral-large-2512',
      messages: hello,
      reasoning_effort: 'high',
    });
    expect(sent(2)).not.toHaveProperty('reasoning_effort');
    expect(reply.headers.get('x-sluice-loss')).toContain('reasoning_effort');
  });
});

describe('parts', () => {
  test('documents go by their address or with their bytes, texts as text, sounds in base64', async () => {
    await messages({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' }, title: 'A' },
            {
              type: 'document',
              source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' },
            },
            {
              type: 'document',
              source: { type: 'text', media_type: 'text/plain', data: 'Marmalade.' },
              title: 'notes',
            },
            text('Compare.'),
          ],
        },
      ],
    });
    expect(sent()['messages']).toEqual([
      {
        role: 'user',
        content: [
          { type: 'document_url', document_url: 'https://example.com/a.pdf', document_name: 'A' },
          { type: 'document_url', document_url: 'data:application/pdf;base64,JVBERi0=' },
          text('notes:\nMarmalade.'),
          text('Compare.'),
        ],
      },
    ]);
    await upload('f1');
    await chat({
      model: 'voxtral-small-latest',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'input_audio', input_audio: { data: 'AAAA', format: 'mp3' } },
            { type: 'file', file: { file_id: 'f1' } },
            { type: 'document_url', document_url: 'https://example.com/b.pdf' },
          ],
        },
      ],
    });
    expect(sent()['messages']).toEqual([
      {
        role: 'user',
        content: [
          { type: 'input_audio', input_audio: 'AAAA' },
          { type: 'file', file_id: 'f1' },
          { type: 'document_url', document_url: 'https://example.com/b.pdf' },
        ],
      },
    ]);
  });

  test('parts that clients of Mistral write pass', async () => {
    const parts = [
      { type: 'input_audio', input_audio: 'https://example.com/a.mp3' },
      { type: 'file', file_id: 'f2' },
      { type: 'image_url', image_url: 'https://example.com/a.png' },
    ];
    await upload('f2');
    await chat({ messages: [{ role: 'user', content: parts }] });
    const [turn] = sent()['messages'] as readonly Json[];
    expect(turn?.['content']).toEqual([
      parts[0],
      parts[1],
      { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
    ]);
  });
});

describe('thinking', () => {
  test.each([
    [
      'whole',
      () => whole([thinking('17 times 20 is 340.', { signature: 'sig', closed: true }), text('391')]),
      false,
    ],
    [
      'streamed',
      () => stream([thinking('17 times ')], [thinking('20 is 340.', { signature: 'sig' })], [text('391')]),
      true,
    ],
  ] as const)(
    '%s, it is reasoning, and its signature comes back to Mistral alone',
    async (_, makeReply, streams) => {
      answer = makeReply();
      const reply = await (await messages({ messages: hello, stream: streams })).text();
      expect(reply).toContain('391');
      const block = streams ? undefined : ((JSON.parse(reply) as Json)['content'] as readonly Json[])[0];
      const signature =
        /"signature":"([^"]+)"/.exec(streams ? reply.slice(reply.indexOf('signature_delta')) : reply)?.[1] ??
        '';
      const thought = { type: 'thinking', thinking: '17 times 20 is 340.', signature };
      if (block !== undefined) expect(block).toEqual(thought);
      // Nobody but Mistral would know it as its own.
      expect(signature).not.toBe('sig');
      answer = whole('Yes.');
      const again = [
        ...hello,
        { role: 'assistant', content: [thought, text('391')] },
        { role: 'user', content: 'Sure?' },
      ];
      await messages({ messages: again });
      expect(sent(1)['messages']).toEqual([
        hello[0],
        {
          role: 'assistant',
          content: [thinking('17 times 20 is 340.', { signature: 'sig', closed: true }), text('391')],
        },
        { role: 'user', content: 'Sure?' },
      ]);
    },
  );

  test('clients of chat completions read and return it beside the content', async () => {
    answer = whole([thinking('Let me see.'), text('391')]);
    const reply = (await (await chat({ messages: hello })).json()) as Json;
    const [choice] = reply['choices'] as readonly Json[];
    expect(choice?.['message']).toMatchObject({ reasoning_content: 'Let me see.', content: '391' });
    await chat({
      messages: [...hello, choice?.['message'], { role: 'user', content: 'Sure?' }],
    });
    expect(sent(1)['messages']).toEqual([
      hello[0],
      { role: 'assistant', content: [thinking('Let me see.', { closed: true }), text('391')] },
      { role: 'user', content: 'Sure?' },
    ]);
  });

  test('a model that does not think is not shown it, and the client is told', async () => {
    const reply = await chat({
      model: 'codestral-latest',
      messages: [
        ...hello,
        { role: 'assistant', content: 'Hi.', reasoning_content: 'They greet.' },
        { role: 'user', content: 'Well?' },
      ],
    });
    expect(sent()['messages']).toEqual([
      hello[0],
      { role: 'assistant', content: 'Hi.' },
      { role: 'user', content: 'Well?' },
    ]);
    expect(reply.headers.get('x-sluice-loss')).toContain('messages[1].reasoning_content');
  });
});

describe('references', () => {
  const parts = [
    text('It went to Nihon Hidankyo'),
    { type: 'reference', reference_ids: [0] },
    text(' in 2024.'),
    { type: 'tool_reference', tool: 'web_search', title: 'Prizes', url: 'https://example.com/prizes' },
  ];
  const citations = [
    {
      type: 'url_citation',
      url_citation: { start_index: 0, end_index: 25 },
      reference_ids: [0],
    },
    {
      type: 'url_citation',
      url_citation: { start_index: 25, end_index: 34, title: 'Prizes', url: 'https://example.com/prizes' },
      tool: 'web_search',
      title: 'Prizes',
      url: 'https://example.com/prizes',
    },
  ];

  test('whole, they say which words they vouch for', async () => {
    answer = whole(parts);
    const reply = await (await chat({ messages: hello })).json();
    expect(reply).toMatchObject({
      choices: [{ message: { content: 'It went to Nihon Hidankyo in 2024.', annotations: citations } }],
    });
  });

  test('streamed, they do so too', async () => {
    answer = stream('It went to', [text(' Nihon Hidankyo'), parts[1]], [parts[2], parts[3]]);
    const frames = (await (await chat({ messages: hello, stream: true })).text())
      .split('\n\n')
      .flatMap((frame) => (frame.startsWith('data: {') ? [JSON.parse(frame.slice(6)) as Json] : []));
    const deltas = frames.flatMap(({ choices }) =>
      (choices as readonly Json[]).map((choice) => choice['delta'] as Json),
    );
    expect(deltas.map(({ content }) => content ?? '').join('')).toBe('It went to Nihon Hidankyo in 2024.');
    expect(deltas.flatMap(({ annotations }) => annotations ?? [])).toEqual(citations);
  });
});

describe('history', () => {
  test('calls have ids of nine letters, results name their tool, and the assistant speaks before the user', async () => {
    const call = {
      type: 'tool_use',
      id: 'toolu_01A09q90qw90lq917835lq9',
      name: 'look',
      input: { at: 1 },
    };
    await messages({
      messages: [
        ...hello,
        { role: 'assistant', content: [call] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: call.id, content: 'seen' }, text('Stop there.')],
        },
      ],
      tools: [{ name: 'look', input_schema: { type: 'object' } }],
    });
    const [, assistantMessage, result, ...rest] = sent()['messages'] as readonly Json[];
    const [made] = (assistantMessage?.['tool_calls'] ?? []) as readonly Json[];
    expect(made?.['id']).toMatch(/^[A-Za-z0-9]{9}$/);
    expect(result).toEqual({ role: 'tool', tool_call_id: made?.['id'], name: 'look', content: 'seen' });
    expect(rest).toEqual([
      { role: 'assistant', content: 'OK.' },
      { role: 'user', content: 'Stop there.' },
    ]);
  });

  test('ids that Mistral gave come back to it as they were', async () => {
    const call = { id: 'F4HiRgdZp', type: 'function', function: { name: 'look', arguments: '{}' } };
    await chat({
      messages: [
        ...hello,
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: call.id, content: 'seen' },
      ],
    });
    expect(sent()).toMatchObject({
      messages: [{}, { tool_calls: [call] }, { role: 'tool', tool_call_id: call.id, name: 'look' }],
    });
  });

  test('a last turn of the assistant is marked as a beginning', async () => {
    await messages({ messages: [...hello, { role: 'assistant', content: 'Bon' }] });
    expect(sent()['messages']).toEqual([hello[0], { role: 'assistant', content: 'Bon', prefix: true }]);
  });
});

describe('a begun answer', () => {
  const begun = [...hello, { role: 'assistant', content: 'Bon ' }];

  test.each([
    ['that Mistral says again', ['Bo', 'n ', 'jour'], 'jour'],
    ['that it says again in one piece', ['Bon jour'], 'jour'],
    ['that it goes on with', ['jour'], 'jour'],
    ['that it seems to say again', ['Bo', 'ris'], 'Boris'],
    ['after which it says the half of it', ['Bo'], 'Bo'],
  ] as const)('%s is not said twice', async (_, pieces, expected) => {
    answer = stream(...pieces);
    const streamed = await (await chat({ messages: begun, stream: true })).text();
    const words = [...streamed.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece).join('');
    expect(words).toBe(expected);
    answer = whole(pieces.join(''));
    expect(await (await messages({ messages: begun })).json()).toMatchObject({ content: [text(expected)] });
  });
});

describe('a model that Google serves', () => {
  test('is asked in Mistral’s words, and its thinking is reasoning', async () => {
    answer = whole([thinking('Hm.', { closed: true }), text('Bonjour.')]);
    const reply = (await (
      await chat({ model: 'on-vertex', messages: hello, seed: 7, user: 'u', stop: 'END' })
    ).json()) as { choices: { message: Json }[] };
    expect(provider.paths).toEqual(['POST /vertex/publishers/mistralai/models/mistral-medium-3:rawPredict']);
    expect(sent()).toMatchObject({ model: 'mistral-medium-3', random_seed: 7 });
    expect(sent()).not.toHaveProperty('user');
    expect(reply.choices[0]?.message).toMatchObject({ content: 'Bonjour.', reasoning_content: 'Hm.' });
  });

  test('streams so too, at an address of its own', async () => {
    answer = stream([thinking('Hm.')], 'Bonjour.');
    const streamText = await (await chat({ model: 'on-vertex', messages: hello, stream: true })).text();
    expect(provider.paths).toEqual([
      'POST /vertex/publishers/mistralai/models/mistral-medium-3:streamRawPredict',
    ]);
    expect(streamText).toContain('"reasoning_content":"Hm."');
    expect(streamText).toContain('"content":"Bonjour."');
  });
});

test('what came from the cache counts as read from it', async () => {
  answer = { ...whole('Hi.'), usage: { ...usage, num_cached_tokens: 30 } };
  const reply = await (await messages({ messages: hello })).json();
  expect(reply).toMatchObject({
    usage: { input_tokens: 1, cache_read_input_tokens: 30, output_tokens: 161 },
  });
});

test('an answer that Mistral broke off is an error', async () => {
  const [broken] = stream('Bon').slice(0, 1);
  answer = {
    ...whole('Bon'),
    choices: [{ index: 0, finish_reason: 'error', message: { role: 'assistant', content: 'Bon' } }],
  };
  expect((await chat({ messages: hello })).status).toBe(502);
  answer = [broken ?? {}];
  expect(await (await chat({ messages: hello, stream: true })).text()).not.toContain(
    '"finish_reason":"error"',
  );
});

test('vectors have as many dimensions as are wished for', async () => {
  answer = {
    id: 'e1',
    object: 'list',
    data: [{ index: 0, embedding: [0.5] }],
    model: 'codestral-embed',
    usage,
  };
  await post('/v1/embeddings', { model: 'codestral-embed', input: ['a'], dimensions: 1, user: 'ann' });
  expect(sent()).toEqual({ model: 'codestral-embed', input: ['a'], output_dimension: 1 });
});

it('passes chats as they are where the config says so, but for names that Mistral refuses', async () => {
  const seen: HttpRequest[] = [];
  const http = {
    send: (_: unknown, request: HttpRequest) => (seen.push(request), Promise.reject(new Error('enough'))),
    close: () => Promise.resolve(),
  };
  const channel = mistral.spec.setup({ key: 'k' }, { http, keys: ['k'] } as never);
  const body =
    '{"model":"m","seed":7,"stream_options":{"include_usage":true},"max_completion_tokens":5,"messages":[{"role":"user","content":"seed"}]}';
  const request = {
    operation: 'chat',
    format: 'chat-completions',
    model: 'm',
    stream: true,
    path: '/chat/completions',
    query: {},
    headers: {},
    body,
  } as const;
  await channel.open(testCall().call, request).catch(() => {});
  expect(JSON.parse(String(seen[0]?.body))).toEqual({
    model: 'm',
    random_seed: 7,
    max_tokens: 5,
    messages: [{ role: 'user', content: 'seed' }],
  });
});
