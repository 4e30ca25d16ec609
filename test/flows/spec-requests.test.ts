/* oxlint-disable vitest/expect-expect, vitest/valid-expect -- functions hold what is expected of every refusal, and the message says what came. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import anthropicChannel from '../../channels/anthropic.ts';
import demo from '../../channels/demo/index.ts';
import openaiChannel from '../../channels/openai.ts';
import { anthropic } from '../clients/sdks.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { fetchRaw, voices, type Answer } from './_wire.ts';

type Json = Record<string, unknown>;

const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'gpt',
  output: [
    {
      id: 'msg_1',
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'fine', annotations: [] }],
    },
  ],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};

let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream(({ url }, answer) => {
    const body = url.includes('/responses')
      ? response
      : url.includes('/messages')
        ? voices.messages.whole('fine')
        : voices['chat-completions'].whole('fine');
    answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const endpoint = { key: 'sk-upstream', baseUrl: `${upstream.url}/v1` };
  gateway = await startGateway({
    channels: [
      openaiChannel({
        ...endpoint,
        id: 'chat',
        models: ['chat'],
        traits: { '*': { formats: ['chat-completions'] } },
      }),
      openaiChannel({
        ...endpoint,
        id: 'responses',
        models: ['responses'],
        traits: { '*': { formats: ['responses'] } },
      }),
      anthropicChannel({
        ...endpoint,
        models: { messages: 'claude-sonnet-4-5', adaptive: 'claude-opus-4-8' },
      }),
      demo({ id: 'content', speaks: ['generate-content'], models: { content: 'demo' } }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.requests.length = 0;
});

const headers = { 'anthropic-version': '2023-06-01' };
const responses = (model: string, fields: Json): Promise<Answer> =>
  fetchRaw(gateway, '/v1/responses', { body: { model, input: 'Hi', ...fields } });
const messages = (model: string, fields: Json): Promise<Answer> =>
  fetchRaw(gateway, '/v1/messages', {
    body: { model, max_tokens: 4000, messages: [{ role: 'user', content: 'Hi' }], ...fields },
    headers,
  });
const losses = (answer: Answer): unknown => answer.headers['x-sluice-loss'];

/** Returns the request that the provider received. */
function sent(answer: Answer): Json {
  expect(answer.status, answer.text).toBe(200);
  return JSON.parse(upstream.requests.at(-1)?.body.toString() ?? '{}') as Json;
}

function expectRefused(answer: Answer, field: string): void {
  expect(answer.status, answer.text).toBe(400);
  expect(answer.text).toContain(field);
  expect(upstream.requests).toEqual([]);
}

describe('responses: instructions in an object', () => {
  test.each([
    ['as text', { text: 'Be brief.' }],
    ['as content', { content: 'Be brief.' }],
    ['as a message', { role: 'system', content: [{ type: 'input_text', text: 'Be brief.' }] }],
  ])('%s are a system message on every channel', async (_how, instructions) => {
    expect(sent(await responses('responses', { instructions }))).toMatchObject({ instructions: 'Be brief.' });
    expect(sent(await responses('chat', { instructions })).messages).toMatchObject([
      { content: 'Be brief.' },
      { role: 'user' },
    ]);
    expect(sent(await responses('messages', { instructions }))).toMatchObject({ system: 'Be brief.' });
  });

  test('in parts keep all of them, and the reply echoes the text', async () => {
    const instructions = { content: [{ type: 'input_text', text: 'Be brief.' }, { text: 'Be kind.' }] };
    const answer = await responses('chat', { instructions });
    expect(JSON.parse(answer.text)).toMatchObject({ instructions: 'Be brief.\n\nBe kind.' });
    expect(sent(await responses('responses', { instructions }))).toMatchObject({
      instructions: 'Be brief.\n\nBe kind.',
    });
  });

  test('of which a part has no place in a text: it is named', async () => {
    const instructions = { text: 'Be brief.', priority: 1 };
    for (const model of ['responses', 'chat', 'messages'])
      expect(losses(await responses(model, { instructions })), model).toBe('instructions.priority');
  });

  test.each([
    ['no text', {}, 'instructions'],
    ['another shape', { words: 'Be brief.' }, 'instructions'],
    ['a number for the text', { text: 5 }, 'instructions.text'],
    ['a number for the content', { content: 5 }, 'instructions.content'],
    ['a picture', { content: [{ type: 'input_image', image_url: 'data:' }] }, 'instructions.content[0].type'],
    ['a list', ['Be brief.'], 'instructions'],
  ])('with %s are refused by name', async (_what, instructions, field) => {
    for (const model of ['responses', 'chat']) expectRefused(await responses(model, { instructions }), field);
  });

  test('the request is the client’s own but for that', async () => {
    const fields = { metadata: { a: 'b' }, x_future: 1, instructions: { text: 'Be brief.' } };
    expect(sent(await responses('responses', fields))).toEqual({
      model: 'responses',
      input: 'Hi',
      ...fields,
      instructions: 'Be brief.',
    });
  });
});

describe('responses: words of the spec that no provider knows', () => {
  test('truncation in an object goes as its word', async () => {
    for (const [truncation, word] of [
      [{ type: 'auto' }, 'auto'],
      [{ type: 'disabled' }, 'disabled'],
      [{ strategy: 'auto' }, 'auto'],
    ] as const)
      expect(sent(await responses('responses', { truncation })).truncation).toBe(word);
    expectRefusedLater(await responses('responses', { truncation: 5 }), 'truncation');
  });

  test('the asking for usage is no business of the provider’s', async () => {
    expect(
      sent(await responses('responses', { stream_options: { include_usage: true } })),
    ).not.toHaveProperty('stream_options');
    expect(
      sent(
        await responses('responses', { stream_options: { include_usage: true, include_obfuscation: false } }),
      ).stream_options,
    ).toEqual({ include_obfuscation: false });
  });
});

function expectRefusedLater(answer: Answer, field: string): void {
  upstream.requests.length = 0;
  expectRefused(answer, field);
}

describe('messages: thinking without a budget', () => {
  const thinking = { type: 'enabled' };

  test('gets the one that the suffix -thinking means', async () => {
    const bySuffix = sent(await messages('messages-thinking', {})).thinking as Json;
    expect(bySuffix).toMatchObject({ type: 'enabled', budget_tokens: 3200 });
    expect(sent(await messages('messages', { thinking })).thinking).toEqual({
      type: 'enabled',
      budget_tokens: bySuffix.budget_tokens,
    });
    expect(
      sent(await messages('messages', { thinking: { type: 'enabled', budget_tokens: null } })).thinking,
    ).toEqual({
      type: 'enabled',
      budget_tokens: bySuffix.budget_tokens,
    });
  });

  test('stays below every output limit, and is reported where there is no room', async () => {
    for (const max_tokens of [1025, 1100, 2000, 64_000]) {
      const { budget_tokens: budget } = sent(await messages('messages', { thinking, max_tokens }))
        .thinking as {
        budget_tokens: number;
      };
      expect(budget).toBeGreaterThanOrEqual(1024);
      expect(budget).toBeLessThan(max_tokens);
    }
    const tight = await messages('messages', { thinking, max_tokens: 1024 });
    expect(sent(tight)).not.toHaveProperty('thinking');
    expect(losses(tight)).toBe('thinking');
  });

  test('leaves everything else of the client’s as it was', async () => {
    const fields = {
      thinking: { type: 'enabled', display: 'omitted', x_future: 1 },
      temperature: 1,
      output_config: { effort: 'low' },
      x_future: 2,
    };
    expect(sent(await messages('messages', fields))).toEqual({
      model: 'claude-sonnet-4-5',
      max_tokens: 4000,
      messages: [{ role: 'user', content: 'Hi' }],
      ...fields,
      thinking: { ...fields.thinking, budget_tokens: 3200 },
    });
  });

  test('is adaptive where the model knows nothing else', async () => {
    expect(sent(await messages('adaptive', { thinking })).thinking).toEqual({ type: 'adaptive' });
  });

  test('a budget of the client’s own is not touched', async () => {
    const own = { type: 'enabled', budget_tokens: 9000 };
    expect(sent(await messages('messages', { thinking: own })).thinking).toEqual(own);
  });

  test('nor is a count refused for it', async () => {
    const body = { model: 'messages', thinking, messages: [{ role: 'user', content: 'Hi' }] };
    await fetchRaw(gateway, '/v1/messages/count_tokens', { body, headers });
    const upstreamBody = JSON.parse(upstream.requests[0]?.body.toString() ?? '') as { thinking: Json };
    expect(upstreamBody.thinking.budget_tokens).toBeGreaterThanOrEqual(1024);
  });
});

describe('messages: the old place of the answer’s form, with its beta header', () => {
  const schema = {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  };
  const output_format = { type: 'json_schema', schema } as const;
  const betas = ['structured-outputs-2025-11-13'];
  const sendMessages = (model: string) =>
    fetchRaw(gateway, '/v1/messages?beta=true', {
      body: { model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }], output_format },
      headers: { ...headers, 'anthropic-beta': betas.join(',') },
    });

  test('passes to a channel of the format, header and all', async () => {
    await sendMessages('messages');
    const [request] = upstream.requests;
    expect(request?.headers['anthropic-beta']).toBe('structured-outputs-2025-11-13');
    expect(JSON.parse(request?.body.toString() ?? '')).toMatchObject({ output_format });
  });

  test('is taken from the official SDK, which moves it on its way', async () => {
    await anthropic(gateway).beta.messages.create({
      model: 'messages',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi' }],
      output_format,
      betas,
    });
    expect(upstream.requests[0]?.headers['anthropic-beta']).toContain(betas[0]);
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toMatchObject({
      output_config: { format: output_format },
    });
  });

  test('is asked for in the words of every other', async () => {
    await sendMessages('chat');
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toMatchObject({
      response_format: { type: 'json_schema', json_schema: { schema } },
    });
    await sendMessages('responses');
    expect(JSON.parse(upstream.requests[1]?.body.toString() ?? '')).toMatchObject({
      text: { format: { type: 'json_schema', schema } },
    });
    expect((await sendMessages('content')).text).toContain('{\\"city\\":');
  });
});

describe('what a provider would refuse is refused here, by its name', () => {
  test.each([
    ['no type', { properties: {} }],
    ['another type', { type: 'array', items: {} }],
    ['a list of types', { type: ['object'] }],
  ])('messages: an input_schema with %s', async (_what, input_schema) => {
    for (const model of ['messages', 'chat', 'content'])
      expectRefused(await messages(model, { tools: [{ name: 'f', input_schema }] }), 'tools[0].input_schema');
  });

  test('messages: max_tokens 0 warms a cache of the format’s own channels, and has no meaning elsewhere', async () => {
    expect(sent(await messages('messages', { max_tokens: 0 }))).toMatchObject({ max_tokens: 0 });
    upstream.requests.length = 0;
    for (const model of ['chat', 'responses', 'content'])
      expectRefused(await messages(model, { max_tokens: 0 }), 'max_tokens');
  });

  test.each(['yes', 1, {}, []])('stream_options.include_usage of %j', async (include_usage) => {
    const fields = { stream: true, stream_options: { include_usage } };
    const chat = { messages: [{ role: 'user', content: 'Hi' }], ...fields };
    for (const model of ['chat', 'messages', 'responses']) {
      const field = 'stream_options.include_usage';
      expectRefused(await fetchRaw(gateway, '/v1/chat/completions', { body: { model, ...chat } }), field);
      expectRefused(await responses(model, fields), field);
      const text = { model, prompt: 'Hi', ...fields };
      expectRefused(await fetchRaw(gateway, '/v1/completions', { body: text }), field);
    }
  });
});

describe('chat completions: temperature with top_p', () => {
  const body = { model: 'chat', messages: [{ role: 'user', content: 'Hi' }], temperature: 0.2, top_p: 0.9 };

  test.each(['Hi', 'long '.repeat(4000)])(
    'keeps temperature, and tells of top_p as lost (%#)',
    async (content) => {
      const requestBody = { ...body, messages: [{ role: 'user', content }] };
      for (const model of ['chat', 'messages']) {
        // oxlint-disable-next-line no-await-in-loop
        const answer = await fetchRaw(gateway, '/v1/chat/completions', { body: { ...requestBody, model } });
        const request = sent(answer);
        expect(request.temperature).toBe(0.2);
        expect(request).not.toHaveProperty('top_p');
        expect(String(losses(answer)).split(', ')).toContain('top_p');
      }
    },
  );

  test('is refused where the client wants nothing dropped', async () => {
    const strict = { ...headers, 'x-sluice-strict': 'true' };
    for (const model of ['chat', 'messages'])
      // oxlint-disable-next-line no-await-in-loop
      expectRefused(
        await fetchRaw(gateway, '/v1/chat/completions', { body: { ...body, model }, headers: strict }),
        'top_p',
      );
  });

  test.each([
    ['forward', 200],
    ['refuse', 400],
  ] as const)('is what the operator wants with sampling: %s', async (sampling, status) => {
    const open = await startGateway({
      sampling,
      channels: [openaiChannel({ key: 'k', baseUrl: `${upstream.url}/v1`, models: ['chat'] })],
    });
    try {
      const answer = await fetchRaw(open, '/v1/chat/completions', { body });
      expect(answer.status).toBe(status);
      if (status === 200) expect(sent(answer)).toMatchObject({ temperature: 0.2, top_p: 0.9 });
      else expectRefused(answer, "sampling: 'forward'");
    } finally {
      await open.close();
    }
  });
});
