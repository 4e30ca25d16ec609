import type Anthropic from '@anthropic-ai/sdk';
import * as messagesErrors from '@anthropic-ai/sdk';
import { ApiError } from '@google/genai';
import * as chatErrors from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import anthropicChannel from '../../channels/anthropic.ts';
import geminiChannel from '../../channels/gemini.ts';
import openaiChannel from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { anthropic, formats, genai, olderAnthropic, openai, type Access, type FormatName } from './sdks.ts';

let gateway: TestGateway;
let upstream: ScriptedUpstream;
/** The same gateway with a key that may use two models and no other. */
let restricted: Access;

const models = [
  'thinker-chat',
  'thinker-gemini',
  'thinker-claude',
  'vendor/with-slash',
  'via-chat-completions',
  'via-generate-content',
  'via-messages',
  'via-responses',
];
const sorted = [...models].toSorted();

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    if (request.url.includes('count_tokens')) response.end('{"input_tokens":4711}');
    else if (request.url.includes(':countTokens')) response.end('{"totalTokens":4711}');
    else if (request.url.includes('generateContent')) {
      response.end(
        '{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"m","responseId":"r"}',
      );
    } else if (request.url.includes('/messages')) {
      response.end(
        '{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}',
      );
    } else {
      response.end(
        '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}',
      );
    }
  });
  gateway = await startGateway({
    channels: [
      ...formats.map((format) =>
        demo({ id: format, speaks: [format], models: { [`via-${format}`]: 'demo' } }),
      ),
      openaiChannel({
        key: 'k',
        baseUrl: `${upstream.url}/v1`,
        models: { 'thinker-chat': 'gpt-5.1', 'vendor/with-slash': 'gpt-5.1' },
      }),
      anthropicChannel({
        key: 'k',
        baseUrl: `${upstream.url}/v1`,
        models: { 'thinker-claude': 'claude-opus-4-8' },
      }),
      geminiChannel({
        key: 'k',
        baseUrl: `${upstream.url}/v1beta`,
        models: { 'thinker-gemini': 'gemini-3-flash' },
      }),
    ],
  });
  restricted = {
    url: gateway.url,
    key: (await gateway.apiKeys.create({ name: 'restricted', models: ['via-messages', 'thinker-*'] })).value,
  };
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(() => {
  upstream.requests.length = 0;
});

describe('counting tokens', () => {
  const messages = [{ role: 'user' as const, content: 'one two three' }];

  test.each([
    ['2026', anthropic],
    ['2023', olderAnthropic],
  ])('messages.countTokens of %s: the provider’s own figure where it counts', async (_version, client) => {
    expect(await client(gateway).messages.countTokens({ model: 'thinker-claude', messages })).toEqual({
      input_tokens: 4711,
    });
    expect(upstream.requests.map(({ url }) => url.split('?')[0])).toEqual(['/v1/messages/count_tokens']);
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toEqual({
      model: 'claude-opus-4-8',
      messages,
    });
  });

  test('models.countTokens: the provider’s own figure where it counts, under both versions of the path', async () => {
    for (const apiVersion of [undefined, 'v1beta']) {
      upstream.requests.length = 0;
      const client = genai(gateway, apiVersion === undefined ? {} : { apiVersion });
      expect(
        await client.models.countTokens({ model: 'thinker-gemini', contents: 'one two three' }),
      ).toMatchObject({ totalTokens: 4711 });
      expect(upstream.requests.map(({ url }) => url.split('?')[0])).toEqual([
        '/v1beta/models/gemini-3-flash:countTokens',
      ]);
    }
  });

  test('a provider of the other format counts too', async () => {
    expect(
      await anthropic(gateway).messages.countTokens({
        model: 'thinker-gemini',
        system: 'Be brief.',
        messages,
      }),
    ).toEqual({ input_tokens: 4711 });
    expect(upstream.requests[0]?.url).toMatch(/\/models\/gemini-3-flash:countTokens/);
    expect(
      await genai(gateway).models.countTokens({ model: 'thinker-claude', contents: 'one two three' }),
    ).toMatchObject({ totalTokens: 4711 });
    expect(upstream.requests[1]?.url).toMatch(/\/v1\/messages\/count_tokens/);
    expect(upstream.requests[1]?.headers['anthropic-version']).toMatch(/^20/);
    expect(JSON.parse(upstream.requests[1]?.body.toString() ?? '')).not.toHaveProperty('max_tokens');
  });

  test('the demo counts the same in both formats', async () => {
    for (const model of ['via-messages', 'via-generate-content']) {
      expect(await anthropic(gateway).messages.countTokens({ model, messages })).toEqual({ input_tokens: 3 });
      expect(await genai(gateway).models.countTokens({ model, contents: 'one two three' })).toMatchObject({
        totalTokens: 3,
      });
    }
  });

  test('where the provider does not count, the gateway estimates and asks nobody', async () => {
    const tool = {
      name: 'get_weather',
      description: 'The weather in a city',
      input_schema: { type: 'object' as const, properties: { city: { type: 'string' } } },
    };
    const short = await anthropic(gateway).messages.countTokens({ model: 'thinker-chat', messages });
    const long = await anthropic(gateway).messages.countTokens({
      model: 'thinker-chat',
      system: 'You are terse.',
      messages: [{ role: 'user', content: 'one two three '.repeat(100) }],
      tools: [tool],
    });
    expect(short.input_tokens).toBeGreaterThanOrEqual(3);
    expect(short.input_tokens).toBeLessThan(20);
    expect(long.input_tokens).toBeGreaterThanOrEqual(300);
    expect(long.input_tokens).toBeLessThan(500);
    const same = await genai(gateway).models.countTokens({
      model: 'thinker-chat',
      contents: 'one two three',
    });
    expect(same.totalTokens).toBe(short.input_tokens);
    expect(upstream.requests).toEqual([]);
  });

  test('a model that nobody serves is a 503, one outside the key’s list a 403', async () => {
    await expect(
      anthropic(gateway).messages.countTokens({ model: 'nobody', messages }),
    ).rejects.toBeInstanceOf(messagesErrors.ServiceUnavailableError);
    await expect(
      anthropic(restricted).messages.countTokens({ model: 'via-chat-completions', messages }),
    ).rejects.toBeInstanceOf(messagesErrors.PermissionDeniedError);
    await expect(
      genai(restricted).models.countTokens({ model: 'via-chat-completions', contents: 'x' }),
    ).rejects.toMatchObject({ status: 403 });
  });
});

async function messagesIds(client: Anthropic): Promise<string[]> {
  const found: string[] = [];
  for await (const model of client.models.list()) {
    expect(model).toMatchObject({ type: 'model', display_name: expect.stringMatching(/./) as string });
    expect(Number.isNaN(Date.parse(model.created_at))).toBe(false);
    found.push(model.id);
  }
  return found;
}

async function generateContentIds(access: Access, apiVersion: string | undefined): Promise<string[]> {
  const found: string[] = [];
  for await (const model of await genai(
    access,
    apiVersion === undefined ? {} : { apiVersion },
  ).models.list()) {
    expect(model.name).toMatch(/^models\//);
    expect(model.supportedActions).toContain('generateContent');
    found.push(model.name?.slice('models/'.length) ?? '');
  }
  return found;
}

describe('model lists', () => {
  const ids: Readonly<Record<string, (access: Access) => Promise<string[]>>> = {
    async openai(access) {
      const found: string[] = [];
      for await (const model of openai(access).models.list()) {
        expect(model).toMatchObject({
          object: 'model',
          created: expect.any(Number) as number,
          owned_by: expect.stringMatching(/./) as string,
        });
        found.push(model.id);
      }
      return found;
    },
    anthropic: (access) => messagesIds(anthropic(access)),
    'anthropic 2023': (access) => messagesIds(olderAnthropic(access)),
    genai: (access) => generateContentIds(access, undefined),
    'genai v1beta': (access) => generateContentIds(access, 'v1beta'),
  };

  test.each(Object.entries(ids))(
    '%s lists every model of the gateway in its own format',
    async (_name, list) => {
      expect((await list(gateway)).toSorted()).toEqual(sorted);
    },
  );

  test.each(Object.entries(ids))(
    '%s with a restricted key lists only what that key may use',
    async (_name, list) => {
      expect((await list(restricted)).toSorted()).toEqual([
        'thinker-chat',
        'thinker-claude',
        'thinker-gemini',
        'via-messages',
      ]);
    },
  );

  test('anthropic pages through a long list, forwards and by cursor', async () => {
    const found: string[] = [];
    let pages = 0;
    for await (const page of (await anthropic(gateway).models.list({ limit: 3 })).iterPages()) {
      pages += 1;
      expect(page.data.length).toBeLessThanOrEqual(3);
      found.push(...page.data.map(({ id }) => id));
    }
    expect(pages).toBe(3);
    expect(found.toSorted()).toEqual(sorted);
    const [, second = ''] = found;
    const rest = await anthropic(gateway).models.list({ after_id: second, limit: 2 });
    expect(rest.data.map(({ id }) => id)).toEqual(found.slice(2, 4));
    expect(rest).toMatchObject({ has_more: true, first_id: found[2], last_id: found[3] });
    const before = await anthropic(gateway).models.list({ before_id: found[3] ?? '', limit: 2 });
    expect(before.data.map(({ id }) => id)).toEqual(found.slice(1, 3));
  });

  test('genai pages through a long list', async () => {
    const pager = await genai(gateway).models.list({ config: { pageSize: 3 } });
    const sizes = [pager.page.length];
    const found = pager.page.map(({ name = '' }) => name);
    while (pager.hasNextPage()) {
      const page = await pager.nextPage();
      sizes.push(page.length);
      found.push(...page.map(({ name = '' }) => name));
    }
    expect(sizes).toEqual([3, 3, 2]);
    expect(found.map((name) => name.replace('models/', '')).toSorted()).toEqual(sorted);
  });
});

describe('one model', () => {
  test.each(['via-messages', 'vendor/with-slash'])('%s is described in each format', async (id) => {
    expect(await openai(gateway).models.retrieve(id)).toMatchObject({ id, object: 'model' });
    for (const client of [anthropic(gateway), olderAnthropic(gateway)]) {
      expect(await client.models.retrieve(id)).toMatchObject({
        id,
        type: 'model',
        display_name: expect.stringMatching(/./) as string,
      });
    }
    for (const apiVersion of [undefined, 'v1beta']) {
      const client = genai(gateway, apiVersion === undefined ? {} : { apiVersion });
      expect(await client.models.get({ model: id })).toMatchObject({ name: `models/${id}` });
    }
  });

  test('limits are told where the format has a word for them', async () => {
    expect(await anthropic(gateway).models.retrieve('via-messages')).toMatchObject({
      max_input_tokens: 200_000,
      max_tokens: 32_000,
    });
    expect(await genai(gateway).models.get({ model: 'via-messages' })).toMatchObject({
      inputTokenLimit: 200_000,
      outputTokenLimit: 32_000,
    });
  });

  test.each([
    ['an unknown one', () => gateway as Access, 'nobody-serves-this'],
    ['one that the key may not use', () => restricted, 'via-chat-completions'],
  ])('%s is a 404 in each format', async (_what, access, id) => {
    const chat = await openai(access())
      .models.retrieve(id)
      .catch((error: unknown) => error);
    expect(chat).toBeInstanceOf(chatErrors.NotFoundError);
    expect(chat).toMatchObject({ code: 'model_not_found', type: 'invalid_request_error' });
    for (const client of [anthropic(access()), olderAnthropic(access())]) {
      const messages = await client.models.retrieve(id).catch((error: unknown) => error);
      expect(messages).toBeInstanceOf(messagesErrors.NotFoundError);
      expect(messages).toMatchObject({ type: 'not_found_error' });
    }
    for (const apiVersion of [undefined, 'v1beta']) {
      const client = genai(access(), apiVersion === undefined ? {} : { apiVersion });
      const generate = await client.models.get({ model: id }).catch((error: unknown) => error);
      expect(generate).toBeInstanceOf(ApiError);
      expect(generate).toMatchObject({ status: 404 });
      expect((generate as ApiError).message).toContain('NOT_FOUND');
    }
  });

  test('a wrong key is a 401 in each format', async () => {
    const stranger = { url: gateway.url, key: 'sk-0000000000000000000000000000000000000000000' };
    await expect(openai(stranger).models.list()).rejects.toBeInstanceOf(chatErrors.AuthenticationError);
    for (const client of [anthropic(stranger), olderAnthropic(stranger)]) {
      await expect(client.models.list()).rejects.toMatchObject({ status: 401, type: 'authentication_error' });
    }
    await expect(genai(stranger).models.list()).rejects.toMatchObject({
      status: 401,
      message: expect.stringContaining('UNAUTHENTICATED') as string,
    });
  });
});

describe('a model outside the key’s list', () => {
  const model = 'via-chat-completions';

  test('is a 403 in each format, and its name does not leak into the lists', async () => {
    await expect(
      openai(restricted).chat.completions.create({ model, messages: [{ role: 'user', content: 'Hi' }] }),
    ).rejects.toMatchObject({
      status: 403,
      code: 'model_not_allowed',
    });
    await expect(
      anthropic(restricted).messages.create({
        model,
        max_tokens: 9,
        messages: [{ role: 'user', content: 'Hi' }],
      }),
    ).rejects.toMatchObject({
      status: 403,
      type: 'permission_error',
    });
    await expect(genai(restricted).models.generateContent({ model, contents: 'Hi' })).rejects.toMatchObject({
      status: 403,
    });
  });

  test('while those of the list answer, also under a suffix', async () => {
    const message = await anthropic(restricted).messages.create({
      model: 'via-messages',
      max_tokens: 99,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(message.content).toMatchObject([{ type: 'text', text: 'You said: Hi' }]);
    const completion = await openai(restricted).chat.completions.create({
      model: 'via-messages-high',
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(completion.choices[0]?.message.content).toBe('You said: Hi');
  });
});

/** The body that the provider got. */
function sent(): Record<string, unknown> {
  expect(upstream.requests).toHaveLength(1);
  return JSON.parse(upstream.requests[0]?.body.toString() ?? '') as Record<string, unknown>;
}

describe('a suffix on the model', () => {
  const hi = [{ role: 'user' as const, content: 'Hi' }];
  const sendByFormat: Readonly<Record<FormatName, (model: string) => Promise<string | undefined>>> = {
    'chat-completions': async (model) =>
      (await openai(gateway).chat.completions.create({ model, messages: hi })).model,
    messages: async (model) =>
      (await anthropic(gateway).messages.create({ model, max_tokens: 2000, messages: hi })).model,
    'generate-content': async (model) =>
      (await genai(gateway).models.generateContent({ model, contents: 'Hi' })).modelVersion,
    responses: async (model) =>
      (await openai(gateway).responses.create({ model, input: 'Hi', store: false })).model,
  };

  test.each(formats.flatMap((format) => ['low', 'medium', 'high'].map((effort) => ({ format, effort }))))(
    '$format, -$effort: sets the effort at every provider, and the answer carries the name that was asked for',
    async ({ format, effort }) => {
      expect(await sendByFormat[format](`thinker-chat-${effort}`)).toBe(`thinker-chat-${effort}`);
      // This provider speaks both: each client finds its own words.
      expect(sent()).toMatchObject({
        model: 'gpt-5.1',
        ...(format === 'responses' ? { reasoning: { effort } } : { reasoning_effort: effort }),
      });
      upstream.requests.length = 0;

      expect(await sendByFormat[format](`thinker-claude-${effort}`)).toBe(`thinker-claude-${effort}`);
      expect(sent()).toMatchObject({
        model: 'claude-opus-4-8',
        thinking: { type: 'adaptive' },
        output_config: { effort },
      });
      upstream.requests.length = 0;

      expect(await sendByFormat[format](`thinker-gemini-${effort}`)).toBe(`thinker-gemini-${effort}`);
      expect(upstream.requests[0]?.url).toMatch(/\/models\/gemini-3-flash:generateContent/);
      expect(JSON.stringify(sent()).toLowerCase()).toContain(`"thinkinglevel":"${effort}"`);
    },
  );

  test('-thinking switches thinking on', async () => {
    await sendByFormat.messages('thinker-claude-thinking');
    expect(sent()).toMatchObject({ model: 'claude-opus-4-8', thinking: { type: 'adaptive' } });
    upstream.requests.length = 0;
    await sendByFormat['generate-content']('thinker-gemini-thinking');
    expect(sent()).toMatchObject({ generationConfig: { thinkingConfig: { includeThoughts: true } } });
  });

  test('what the request itself says wins', async () => {
    await openai(gateway).chat.completions.create({
      model: 'thinker-chat-high',
      reasoning_effort: 'low',
      messages: hi,
    });
    expect(sent()).toMatchObject({ model: 'gpt-5.1', reasoning_effort: 'low' });
  });

  test('a name without a suffix asks for nothing', async () => {
    await sendByFormat['chat-completions']('thinker-chat');
    expect(sent()).not.toHaveProperty('reasoning_effort');
    upstream.requests.length = 0;
    await sendByFormat.messages('thinker-claude');
    expect(sent()).not.toHaveProperty('thinking');
  });
});
