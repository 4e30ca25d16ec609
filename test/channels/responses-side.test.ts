import { afterAll, beforeAll, expect, test } from 'vitest';
import deepseek from '../../channels/deepseek.ts';
import openrouter from '../../channels/openrouter.ts';
import together from '../../channels/together/index.ts';
import { Provider, type ProviderResponse } from './_provider.ts';
import { UsageListener } from './_usage-listener.ts';

let provider: Provider;
const listener = new UsageListener();

const gpt = 'openai/gpt-5-mini';

beforeAll(async () => {
  provider = await Provider.start((url) => ({
    plugins: [listener.plugin],
    channels: [
      openrouter({ key: 'k', baseUrl: `${url}/api/v1`, models: [gpt], discover: false }),
      together({
        key: 'k',
        baseUrl: `${url}/together/v1`,
        models: ['zai-org/*', 'moonshotai/*'],
        discover: false,
      }),
      deepseek({ key: 'k', baseUrl: `${url}/deepseek/v1`, models: ['deepseek-v4-flash', 'deepseek-chat'] }),
    ],
  }));
});
afterAll(() => provider.close());

const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed' };
const responseNamed = (id: string) => ({
  id,
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: gpt,
  output: [
    reasoning,
    {
      type: 'message',
      id: `msg_${id}`,
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: `said in ${id}`, annotations: [] }],
    },
  ],
  usage: {
    input_tokens: 30,
    input_tokens_details: { cached_tokens: 20 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 5 },
    total_tokens: 37,
    cost: 0.5,
  },
});

/** https://openrouter.ai/docs/api_reference/responses/error-handling: 400 for `store: true` and for a `previous_response_id`. */
function answerAsOpenrouter(): void {
  provider.says((_, count): ProviderResponse => {
    const { store, previous_response_id: previous } = provider.posted(-1);
    const isRefused = store === true || (previous ?? null) !== null;
    const error = { error: { code: 'invalid_prompt', message: 'Invalid request' }, metadata: null };
    return isRefused ? { status: 400, body: error } : { body: responseNamed(`resp_${count}`) };
  });
}

test('a client of Responses is served in its format: reasoning, tools and caches go as they are', async () => {
  answerAsOpenrouter();
  const body = {
    model: gpt,
    instructions: 'You are an agent.',
    input: [{ role: 'user', content: 'Hi' }, reasoning, { role: 'assistant', content: 'Hello.' }],
    reasoning: { effort: 'high', summary: 'auto' },
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'session-1',
    tools: [
      { type: 'custom', name: 'apply_patch', description: 'Patches.' },
      { type: 'function', name: 'look', parameters: { type: 'object', properties: {} }, strict: false },
    ],
  };
  const answer = await provider.post('/v1/responses', body);
  expect([answer.status, answer.headers.get('x-sluice-loss')]).toEqual([200, null]);
  expect(await answer.json()).toMatchObject({ output: [reasoning, { type: 'message' }] });
  expect(provider.paths).toEqual(['POST /api/v1/responses']);
  expect(provider.requests[0]?.body.toString()).toBe(JSON.stringify(body));
  expect(listener.last).toMatchObject({ input: 30, cacheRead: 20, output: 7, raw: { cost: 0.5 } });
});

// DeepSeek ignores what names earlier turns: https://api-docs.deepseek.com/guides/responses_api
test.each([
  ['OpenRouter', gpt, '/api/v1/responses'],
  ['DeepSeek', 'deepseek-v4-flash', '/deepseek/v1/responses'],
  ['Together', 'zai-org/GLM-5.3', '/together/v1/responses'],
])('the gateway keeps responses for %s, which keeps none', async (_, model, path) => {
  answerAsOpenrouter();
  const first = await provider.post('/v1/responses', { model, store: true, input: 'My name is Ada.' });
  expect([first.status, first.headers.get('x-sluice-loss')]).toEqual([200, null]);
  const { id } = (await first.json()) as { readonly id: string };
  const second = await provider.post('/v1/responses', {
    model,
    store: true,
    previous_response_id: id,
    input: 'And now?',
  });
  expect([second.status, second.headers.get('x-sluice-loss')]).toEqual([200, null]);
  expect(await second.json()).toMatchObject({ previous_response_id: id });
  expect(provider.paths).toEqual([`POST ${path}`, `POST ${path}`]);
  expect(provider.posted(0)).toEqual({ model, input: 'My name is Ada.' });
  const sent = provider.posted(1);
  expect(Object.keys(sent)).not.toContain('store');
  const words = JSON.stringify(sent['input']);
  for (const part of ['My name is Ada.', `said in ${id}`, 'And now?']) expect(words).toContain(part);
});

test('DeepSeek V4 gets the effort of a client of Responses, and free-text tools as functions', async () => {
  answerAsOpenrouter();
  const answer = await provider.post('/v1/responses', {
    model: 'deepseek-v4-flash',
    input: 'Hi',
    reasoning: { effort: 'high' },
    tools: [{ type: 'custom', name: 'note', description: 'Notes.' }],
  });
  expect(answer.status).toBe(200);
  expect(provider.paths).toEqual(['POST /deepseek/v1/responses']);
  expect(provider.posted()).toMatchObject({
    reasoning: { effort: 'high' },
    tools: [{ type: 'function', name: 'note' }],
  });
});

test.each([
  ['clients of other formats', '/v1/chat/completions', gpt, '/api/v1'],
  ['clients of other formats at DeepSeek', '/v1/chat/completions', 'deepseek-v4-flash', '/deepseek/v1'],
  ['clients of other formats at Together', '/v1/chat/completions', 'zai-org/GLM-5.3', '/together/v1'],
  ['models of Together that have no Responses', '/v1/responses', 'moonshotai/Kimi-K2.6', '/together/v1'],
  ['models of DeepSeek that have no Responses', '/v1/responses', 'deepseek-chat', '/deepseek/v1'],
])('%s are served in chat completions', async (_, path, model, base) => {
  const message = { role: 'assistant', content: 'fine' };
  provider.says(() => ({
    body: {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model,
      choices: [{ index: 0, message, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    },
  }));
  const body = path === '/v1/responses' ? { input: 'Hi' } : { messages: [{ role: 'user', content: 'Hi' }] };
  const answer = await provider.post(path, { model, ...body });
  expect(answer.status).toBe(200);
  expect(provider.paths).toEqual([`POST ${base}/chat/completions`]);
});
