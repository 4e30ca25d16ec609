import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import openaiCompatible from '../../channels/openai-compatible.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { voices } from './_wire.ts';

type Json = Record<string, unknown>;

let gateway: TestGateway;
let upstream: ScriptedUpstream;
/** Response of the provider: a JSON document, or frames of a stream that stays open. */
let says: Json | { readonly frames: readonly string[]; readonly isOpen?: boolean };

beforeAll(async () => {
  upstream = await startUpstream((_request, reply) => {
    if (!('frames' in says) || !Array.isArray(says.frames)) {
      reply.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(says));
      return;
    }
    reply.writeHead(200, { 'content-type': 'text/event-stream' });
    reply.write(says.frames.join(''));
    if (says.isOpen !== true) reply.end();
  });
  const at = { key: 'k', baseUrl: `${upstream.url}/v1` };
  const limits = { traits: { '*': { inputLimit: 1000, outputLimit: 100 } } };
  gateway = await startGateway({
    channels: [
      openai({ ...at, ...limits, models: ['gpt-5-x', 'gpt-own', 'gpt-all', 'gpt-4o-search-preview'] }),
      openai({ ...at, ...limits, id: 'told', models: ['gpt-5-told'], systemPrompt: 'Be brief.' }),
      anthropic({ ...at, ...limits, models: ['claude-x'] }),
      gemini({ ...at, ...limits, models: ['gemini-3-x'] }),
      openaiCompatible({ ...at, ...limits, name: 'other', models: ['other-x'] }),
    ],
    prices: {
      '*': { input: 1, output: 1 },
      'gpt-own': { input: 1, output: 1, services: { 'web-search': 0.5 } },
      'gpt-all': {
        input: 1,
        output: 1,
        services: {
          'web-search': 0.01,
          'x-search': 0.01,
          'file-search': 0.01,
          'image-generation': 0.01,
          'code-container': 0.01,
        },
      },
    },
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => void (upstream.requests.length = 0));

const item = (type: string, more: Json = {}): Json => ({ id: type, type, status: 'completed', ...more });
const response = (output: readonly Json[], more: Json = {}): Json => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt-5-x',
  output,
  usage: { input_tokens: 10, output_tokens: 10, total_tokens: 20 },
  ...more,
});
const frame = (value: Json): string => `event: ${String(value.type)}\ndata: ${JSON.stringify(value)}\n\n`;
const search = item('web_search_call', { action: { type: 'search', query: 'a', queries: ['a', 'b'] } });
const opened = item('web_search_call', { action: { type: 'open_page', url: 'https://a.example' } });

const turns = [{ role: 'user', content: 'hi' }];
const responses = {
  path: '/v1/responses',
  body: { model: 'gpt-5-x', max_output_tokens: 16, input: 'hi', store: false },
};
const messages = { path: '/v1/messages', body: { model: 'claude-x', max_tokens: 16, messages: turns } };
const chat = {
  path: '/v1/chat/completions',
  body: { model: 'gpt-4o-search-preview', max_tokens: 16, messages: turns },
};
const content = {
  path: '/v1beta/models/gemini-3-x:generateContent',
  body: { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], generationConfig: { maxOutputTokens: 16 } },
};
const webSearch = { type: 'web_search' };

async function keyOf(dollars: number) {
  const { value, record } = await gateway.apiKeys.create({
    name: 'one',
    budgets: [{ unit: 'micro-dollar', period: 'total', amount: dollars * 1e6 }],
  });
  return { value, id: record.id };
}

async function callWithBudget({ path, body }: { path: string; body: Json }, more: Json, dollars = 5) {
  const key = await keyOf(dollars);
  const reply = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      authorization: `Bearer ${key.value}`,
    },
    body: JSON.stringify({ ...body, ...more }),
  });
  return { key, status: reply.status, text: await reply.text() };
}

async function recordOf(keyId: string) {
  const log = openUsageLog(gateway.stores);
  await expect.poll(async () => (await log.page({ keyId }, 10)).records).toHaveLength(1);
  return (await log.page({ keyId }, 10)).records[0];
}

const sent = (): Json => JSON.parse(upstream.requests[0]?.body.toString() ?? '{}') as Json;

describe('a call is charged for each use of a service', () => {
  test.each<[string, { path: string; body: Json }, Json, () => typeof says, Json, number]>([
    [
      'that the items of a response tell',
      responses,
      {
        tools: [
          webSearch,
          { type: 'file_search', vector_store_ids: [] },
          { type: 'code_interpreter', container: { type: 'auto' } },
        ],
      },
      () =>
        response([
          search,
          opened,
          item('file_search_call', { queries: [] }),
          item('code_interpreter_call', { container_id: 'c', code: '' }),
          item('code_interpreter_call', { container_id: 'c', code: '' }),
        ]),
      { 'web-search': 2, 'file-search': 1, 'code-container': 1 },
      20 + 2 * 10_000 + 2_500 + 30_000,
    ],
    [
      'that a response counts itself, and the tokens of images',
      responses,
      { tools: [webSearch, { type: 'image_generation' }] },
      () =>
        response([search, item('image_generation_call', { result: '' })], {
          tool_usage: {
            web_search: { num_requests: 3 },
            image_gen: { input_tokens: 1000, output_tokens: 2000 },
          },
        }),
      { 'web-search': 3, 'image-input-token': 1000, 'image-output-token': 2000 },
      20 + 3 * 10_000 + 8_000 + 60_000,
    ],
    [
      'in a stream of a response',
      responses,
      { stream: true, tools: [webSearch] },
      () => ({
        frames: [
          frame({ type: 'response.created', response: { ...response([]), status: 'in_progress' } }),
          frame({ type: 'response.output_item.done', output_index: 0, item: search }),
          frame({ type: 'response.completed', response: response([search]) }),
        ],
      }),
      { 'web-search': 2 },
      20 + 2 * 10_000,
    ],
    [
      'that messages tell in their usage',
      messages,
      { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      () => ({
        ...voices.messages.whole('hi'),
        usage: { input_tokens: 10, output_tokens: 10, server_tool_use: { web_search_requests: 4 } },
      }),
      { 'web-search': 4 },
      20 + 4 * 10_000,
    ],
    [
      'that messages do not tell: one container for each call',
      messages,
      { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] },
      () => ({ ...voices.messages.whole('hi'), usage: { input_tokens: 10, output_tokens: 10 } }),
      { 'code-container': 1 },
      20 + 50_000,
    ],
    [
      'that the grounding of generateContent tells',
      content,
      { tools: [{ googleSearch: {} }] },
      () => ({
        candidates: [
          {
            content: { role: 'model', parts: [{ text: 'hi' }] },
            finishReason: 'STOP',
            groundingMetadata: { webSearchQueries: ['a', 'b', 'a'] },
          },
        ],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
      }),
      { 'web-search': 2 },
      20 + 2 * 14_000,
    ],
    [
      'that chat completions have for each call with search options',
      chat,
      { web_search_options: {} },
      () => ({
        ...voices['chat-completions'].whole('hi'),
        usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
      }),
      { 'web-search': 1 },
      20 + 25_000,
    ],
    [
      'at the price of the config',
      responses,
      { model: 'gpt-own', tools: [webSearch] },
      () => response([search]),
      { 'web-search': 2 },
      20 + 2 * 500_000,
    ],
    [
      'that a translated response tells',
      { ...messages, body: { ...messages.body, model: 'gpt-5-x' } },
      { tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 3 }] },
      () =>
        response([
          search,
          item('message', {
            role: 'assistant',
            content: [{ type: 'output_text', text: 'hi', annotations: [] }],
          }),
        ]),
      { 'web-search': 2 },
      20 + 2 * 10_000,
    ],
  ])('%s', async (_name, call, more, reply, services, cost) => {
    says = reply();
    const { key, status } = await callWithBudget(call, more);
    expect(status).toBe(200);
    expect(await recordOf(key.id)).toMatchObject({ units: { services }, microDollars: cost });
  });

  test('and its record shows the prices', async () => {
    says = response([search]);
    const { key } = await callWithBudget(responses, { tools: [webSearch] });
    expect((await recordOf(key.id))?.price).toMatchObject({ model: '*', services: { 'web-search': 0.01 } });
  });

  /** Responses with one use of a service, after which a client leaves early. */
  const seen: readonly (readonly [service: string, tool: Json, item: string, uses: number])[] = [
    ['image-generation', { type: 'image_generation' }, 'image_generation_call', 2],
    ['web-search', webSearch, 'web_search_call', 2],
    ['x-search', { type: 'x_search' }, 'x_search_call', 2],
    ['file-search', { type: 'file_search', vector_store_ids: [] }, 'file_search_call', 2],
    // A call has one container, however often it is used.
    ['code-container', { type: 'code_interpreter', container: { type: 'auto' } }, 'code_interpreter_call', 1],
  ];
  test.each(seen.flatMap((row) => [false, true].map((isSpaced) => [...row, isSpaced] as const)))(
    'that was seen before its client left, and one that may have been running: %s',
    async (service, tool, type, uses, isSpaced) => {
      const frames = [
        frame({ type: 'response.created', response: { ...response([]), status: 'in_progress' } }),
        frame({ type: 'response.output_item.added', output_index: 0, item: item(type) }),
        frame({
          type: 'response.output_item.added',
          output_index: 1,
          item: item('message', { role: 'assistant', content: [] }),
        }),
        frame({
          type: 'response.output_text.delta',
          output_index: 1,
          content_index: 0,
          item_id: 'message',
          delta: 'hi',
        }),
      ];
      // Some providers write JSON with a space behind each colon.
      says = { isOpen: true, frames: isSpaced ? frames.map((text) => text.replaceAll('":', '": ')) : frames };
      const key = await keyOf(20);
      const leave = new AbortController();
      const reply = await fetch(gateway.url + responses.path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key.value}` },
        body: JSON.stringify({ ...responses.body, model: 'gpt-all', stream: true, tools: [tool] }),
        signal: leave.signal,
      });
      expect(reply.status).toBe(200);
      let text = '';
      for await (const bytes of reply.body ?? []) {
        text += Buffer.from(bytes).toString();
        if (text.includes(type)) break;
      }
      leave.abort();
      expect((await recordOf(key.id))?.units).toEqual({ services: { [service]: uses } });
    },
  );

  test.each(seen)('and for none that a complete response did not use: %s', async (_service, tool) => {
    says = response([]);
    const { key, status } = await callWithBudget(responses, { model: 'gpt-all', tools: [tool] }, 20);
    expect(status).toBe(200);
    const { units, microDollars } = (await recordOf(key.id)) ?? {};
    expect({ units, microDollars }).toEqual({ units: undefined, microDollars: 20 });
  });

  test('and for no other member by which a provider charges more', async () => {
    says = response([]);
    const { value, record } = await gateway.apiKeys.create({
      name: 'tokens',
      budgets: [{ unit: 'token', period: 'total', amount: 1e9 }],
    });
    const reply = await fetch(gateway.url + responses.path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${value}` },
      body: JSON.stringify({ ...responses.body, service_tier: 'priority', tools: [{ type: 'oracle' }] }),
    });
    expect(reply.status).toBe(200);
    expect((await recordOf(record.id))?.units).toBeUndefined();
  });
});

describe('what a call may use is reserved', () => {
  test('a call without a limit is sent with one', async () => {
    says = response([]);
    await callWithBudget(responses, { tools: [webSearch] });
    expect(sent()).toMatchObject({ max_tool_calls: 10 });
    upstream.requests.length = 0;
    says = voices.messages.whole('hi');
    const tool = { type: 'web_search_20250305', name: 'web_search' };
    await callWithBudget(messages, { tools: [{ name: 'f', input_schema: { type: 'object' } }, tool] });
    expect(sent().tools).toMatchObject([{ name: 'f' }, { ...tool, max_uses: 10 }]);
  });

  test('all else of a long call goes to the provider as the client wrote it', async () => {
    says = response([]);
    const input = Array.from({ length: 100 }, () => ({ role: 'user', content: 'x'.repeat(2000) }));
    const more = { tools: [webSearch], future: 1.0, input };
    expect(await callWithBudget(responses, more, 100)).toMatchObject({ status: 200 });
    const whole = JSON.stringify({ ...responses.body, ...more });
    expect(upstream.requests[0]?.body.toString()).toBe(`${whole.slice(0, -1)},"max_tool_calls":10}`);
  });

  test('a call that is written anew for its channel has the limit too', async () => {
    says = response([]);
    expect(await callWithBudget(responses, { model: 'gpt-5-told', tools: [webSearch] })).toMatchObject({
      status: 200,
    });
    expect(sent()).toMatchObject({ max_tool_calls: 10, instructions: 'Be brief.' });
  });

  test('a limit of its own is reserved as it is, also a higher one', async () => {
    says = response([]);
    // 40 searches at a cent are more than 39 cents.
    expect(await callWithBudget(responses, { max_tool_calls: 40, tools: [webSearch] }, 0.39)).toMatchObject({
      status: 429,
    });
    expect(await callWithBudget(responses, { max_tool_calls: 40, tools: [webSearch] }, 0.45)).toMatchObject({
      status: 200,
    });
    expect(sent()).toMatchObject({ max_tool_calls: 40 });
    const tool = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 };
    says = voices.messages.whole('hi');
    expect(await callWithBudget(messages, { tools: [tool] }, 0.02)).toMatchObject({ status: 429 });
    expect(await callWithBudget(messages, { tools: [tool] }, 0.06)).toMatchObject({ status: 200 });
  });

  test('a limit of null is no limit, so that the call is sent with one', async () => {
    says = response([]);
    const tools = [webSearch];
    expect(await callWithBudget(responses, { max_tool_calls: null, tools })).toMatchObject({ status: 200 });
    expect(sent()).toMatchObject({ max_tool_calls: 10 });
    upstream.requests.length = 0;
    expect(await callWithBudget(responses, { max_tool_calls: null, tools }, 0.03)).toMatchObject({
      status: 200,
    });
    expect(sent()).toMatchObject({ max_tool_calls: 1 });
  });

  test('the limit of responses is none in other formats, so that less is not reserved for it', async () => {
    says = voices.messages.whole('hi');
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }];
    expect(await callWithBudget(messages, { max_tool_calls: 1, tools }, 0.03)).toMatchObject({ status: 200 });
    expect(sent().tools).toMatchObject([{ max_uses: 1 }]);
    // Ten searches at 1.4 cents.
    const searching = { max_tool_calls: 1, tools: [{ googleSearch: {} }] };
    expect(await callWithBudget(content, searching, 0.1)).toMatchObject({ status: 429 });
  });

  test('a tool that has no limit is sent without one', async () => {
    says = voices.messages.whole('hi');
    const tools = [{ type: 'code_execution_20250825', name: 'code_execution' }];
    expect(await callWithBudget(messages, { tools })).toMatchObject({ status: 200 });
    expect(sent().tools).toEqual(tools);
    upstream.requests.length = 0;
    const hosted = { type: 'web_search_20250305', name: 'web_search' };
    expect(await callWithBudget(messages, { tools: [...tools, hosted] })).toMatchObject({ status: 200 });
    expect(sent().tools).toEqual([...tools, { ...hosted, max_uses: 10 }]);
  });

  test('near the end of a budget a call is sent with a limit of one use', async () => {
    says = response([]);
    expect(await callWithBudget(responses, { tools: [webSearch] }, 0.03)).toMatchObject({ status: 200 });
    expect(sent()).toMatchObject({ max_tool_calls: 1 });
    expect(await callWithBudget(responses, { tools: [webSearch] }, 0.005)).toMatchObject({ status: 429 });
  });

  test('and given back when it was not needed', async () => {
    says = response([]);
    const { key } = await callWithBudget(responses, { tools: [webSearch] });
    await recordOf(key.id);
    const budget = { unit: 'micro-dollar', period: 'total', amount: 5e6 } as const;
    await expect
      .poll(() => openLedger(gateway.stores).states(key.id, [budget]))
      .toMatchObject([{ spent: 20, reserved: 0 }]);
  });

  test('keys without a budget in dollars are sent as they are', async () => {
    says = response([]);
    const { value } = await gateway.apiKeys.create({
      name: 'tokens',
      budgets: [{ unit: 'token', period: 'total', amount: 1e9 }],
    });
    for (const key of [gateway.key, value]) {
      upstream.requests.length = 0;
      // oxlint-disable-next-line no-await-in-loop
      const reply = await fetch(gateway.url + responses.path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
        body: JSON.stringify({ ...responses.body, tools: [webSearch] }),
      });
      expect(reply.status).toBe(200);
      expect(sent()).not.toHaveProperty('max_tool_calls');
    }
  });
});

test.each<[string, { path: string; body: Json }, Json, string]>([
  [
    'a service that has no price',
    { ...chat, body: { ...chat.body, model: 'other-x' } },
    { web_search_options: {} },
    `prices: { \\"other-x\\": { …, services: { \\"web-search\\": 0.01 } } }`,
  ],
  [
    'a container with more memory',
    responses,
    { tools: [{ type: 'code_interpreter', container: { type: 'auto', memory_limit: '64g' } }] },
    'has a budget in dollars',
  ],
])(
  '%s is refused to a key with a budget in dollars, and the refusal says what to do',
  async (_name, call, more, words) => {
    const { status, text } = await callWithBudget(call, more);
    expect({ status, text }).toEqual({ status: 403, text: expect.stringContaining(words) });
    expect(upstream.requests).toEqual([]);
  },
);
