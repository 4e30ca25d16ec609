import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { definePlugin } from 'sluice';
import azureOpenai from '../../channels/azure-openai.ts';
import openai from '../../channels/openai.ts';
import sluice from '../../channels/sluice.ts';
import xai from '../../channels/xai/index.ts';
import { Provider } from './_provider.ts';

let provider: Provider;

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    channels: [
      openai({ key: 'k', baseUrl: url }),
      xai({ key: 'k', baseUrl: url }),
      azureOpenai({ key: 'k', baseUrl: url, models: ['mine', 'gpt-5.5'] }),
      openai({
        id: 'chat-only',
        key: 'k',
        baseUrl: url,
        models: { 'only-5.5': 'gpt-5.5', 'only-5.6': 'gpt-5.6-sol', 'only-astra': 'gpt-6-astra' },
        traits: { '*': { formats: ['chat-completions'] } },
      }),
    ],
  }));
});
afterAll(() => provider.close());

const url_citation = { url: 'https://a.example/cats', title: 'Cats', start_index: 0, end_index: 10 };
const chat = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Cats purr.' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};
const response = {
  id: 'r',
  object: 'response',
  created_at: 1,
  status: 'completed',
  output: [
    {
      id: 'ws_1',
      type: 'web_search_call',
      status: 'completed',
      action: { type: 'search', query: 'cats' },
    },
    {
      id: 'm',
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [
        { type: 'output_text', text: 'Cats purr.', annotations: [{ type: 'url_citation', ...url_citation }] },
      ],
    },
  ],
  usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
};

/** Asks the provider's own tool of a client format, and answers with what came back and where the provider was asked. */
async function callServerTool(
  client: 'messages' | 'generateContent' | 'chat',
  model: string,
  tool?: 'search' | 'code',
): Promise<{ readonly status: number; readonly text: string; readonly url: string }> {
  provider.says(({ url }) => ({ body: url.includes('/responses') ? response : chat }));
  const answer = await {
    messages: () =>
      provider.post('/v1/messages', {
        model,
        max_tokens: 100,
        messages: [{ role: 'user', content: 'Well?' }],
        ...(tool === undefined
          ? {}
          : {
              tools: [
                tool === 'search'
                  ? { type: 'web_search_20250305', name: 'web_search' }
                  : { type: 'code_execution_20250825', name: 'code_execution' },
              ],
            }),
      }),
    generateContent: () =>
      provider.post(`/v1beta/models/${model}:generateContent`, {
        contents: [{ role: 'user', parts: [{ text: 'Well?' }] }],
        ...(tool === undefined
          ? {}
          : { tools: [tool === 'search' ? { googleSearch: {} } : { codeExecution: {} }] }),
      }),
    chat: () =>
      provider.post('/v1/chat/completions', {
        model,
        messages: [{ role: 'user', content: 'Well?' }],
        ...(tool === 'search' ? { web_search_options: {} } : {}),
      }),
  }[client]();
  return { status: answer.status, text: await answer.text(), url: provider.requests[0]?.url ?? '' };
}

describe.each(['gpt-5', 'grok-4', 'mine'])('%s, which searches and runs code in responses alone', (model) => {
  test.each(['messages', 'generateContent'] as const)('is asked there by a client of %s', async (client) => {
    for (const tool of ['search', 'code'] as const) {
      const { status, text, url } = await callServerTool(client, model, tool);
      expect([status, url]).toEqual([200, expect.stringMatching(/\/responses(?:\?|$)/)]);
      expect(text).toContain('Cats purr.');
      const type = provider.posted()['tools'];
      expect(type).toEqual([
        expect.objectContaining({ type: tool === 'search' ? 'web_search' : 'code_interpreter' }),
      ]);
    }
    expect((await callServerTool(client, model)).url).toMatch(/\/chat\/completions(?:\?|$)/);
  });

  test('is asked in the words of a client that speaks as the provider does', async () => {
    expect((await callServerTool('chat', model, 'search')).url).toMatch(/\/chat\/completions(?:\?|$)/);
    expect(provider.posted()['web_search_options']).toEqual({});
  });
});

test('models that search in chat completions alone are asked there', async () => {
  const { status, url } = await callServerTool('messages', 'gpt-4o-search-preview', 'search');
  expect([status, url]).toEqual([200, expect.stringMatching(/\/chat\/completions$/)]);
  expect(provider.posted()['web_search_options']).toEqual({});
});

test('a count is asked in the format of its client, also where it is read on its way', async () => {
  const reader = definePlugin({
    name: 'reader',
    stage: 'shape',
    reads: 'content',
    setup: () => (call, next) => next(call),
  });
  const counter = await Provider.start((url) => ({
    channels: [sluice({ key: 'k', baseUrl: url, models: ['counts'] })],
    plugins: [reader()],
  }));
  onTestFinished(() => counter.close());
  counter.says(() => ({ body: { object: 'response.input_tokens', input_tokens: 7 } }));
  const answer = await counter.post('/v1/responses/input_tokens', { model: 'counts', input: 'Well?' });
  expect(counter.paths).toEqual(['POST /responses/input_tokens']);
  expect(await answer.json()).toMatchObject({ input_tokens: 7 });
});

const functions = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
const callWithFunctions = async (
  model: string,
  more: object,
  tools: readonly object[] = functions,
): Promise<Response> => {
  provider.says(({ url }) => ({ body: url.includes('/responses') ? response : chat }));
  const messages = [{ role: 'user', content: 'Well?' }];
  return provider.post('/v1/chat/completions', { model, messages, tools, ...more });
};

test.each([
  ['gpt-5.6-sol', {}, 'responses'],
  ['gpt-6-sol', {}, 'responses'],
  ['gpt-6-sol', { reasoning_effort: 'low' }, 'responses'],
  ['gpt-6-astra', { reasoning_effort: 'none' }, 'responses'],
  ['gpt-5.6-sol', { reasoning_effort: 'none' }, 'chat/completions'],
  ['gpt-5.4', { reasoning_effort: 'low' }, 'responses'],
  ['gpt-5.4-mini', { reasoning_effort: 'high' }, 'responses'],
  ['gpt-5.4', {}, 'chat/completions'],
  ['gpt-5.5', {}, 'chat/completions'],
  ['gpt-5.5', { reasoning_effort: 'low' }, 'responses'],
  ['gpt-5.1', { reasoning_effort: 'low' }, 'chat/completions'],
])('function tools of a chat completions client go to %s with %j in %s', async (model, effort, path) => {
  const answer = await callWithFunctions(model, effort);
  expect([answer.status, provider.requests[0]?.url]).toEqual([200, expect.stringContaining(path)]);
  expect(await answer.json()).toMatchObject({ choices: [{ message: { content: 'Cats purr.' } }] });
});

test('a model that refuses function tools in chat completions is asked in them without any', async () => {
  const answer = await callWithFunctions('gpt-5.6-sol', { reasoning_effort: 'low' }, []);
  expect([answer.status, provider.requests[0]?.url]).toEqual([
    200,
    expect.stringContaining('chat/completions'),
  ]);
});

test.each([
  ['only-5.6', {}, 'none'],
  ['only-5.6', { reasoning_effort: 'low' }, 'none'],
  ['only-5.5', { reasoning_effort: 'low' }, undefined],
  // This model cannot be told not to think: the provider decides.
  ['only-astra', { reasoning_effort: 'low' }, 'low'],
])(
  'a channel without Responses asks %s with %j and function tools for the effort %s',
  async (model, effort, sent) => {
    const answer = await callWithFunctions(model, effort);
    expect(answer.status).toBe(200);
    const body = JSON.parse(String(provider.requests[0]?.body ?? '{}')) as {
      readonly reasoning_effort?: string;
    };
    expect(body.reasoning_effort).toBe(sent);
    expect(answer.headers.get('x-sluice-loss')?.includes('reasoning_effort') ?? false).toBe(sent !== 'low');
  },
);
