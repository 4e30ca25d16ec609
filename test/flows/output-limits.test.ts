import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import anthropicChannel from '../../channels/anthropic.ts';
import geminiChannel from '../../channels/gemini.ts';
import openaiChannel from '../../channels/openai.ts';
import translation from '../../plugins/translation/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { fetchRaw, wholeReplies, type Answer } from './_wire.ts';

type Json = Record<string, unknown>;

let upstream: ScriptedUpstream;
const gateways: Record<string, TestGateway> = {};

/** A gateway for each choice of the operator: what it does by default, `clamp` and `forward`. */
beforeAll(async () => {
  upstream = await startUpstream(({ url }, answer) => {
    const format = url.includes(':generateContent')
      ? 'generate-content'
      : url.includes('/messages')
        ? 'messages'
        : url.includes('/responses')
          ? 'responses'
          : 'chat-completions';
    answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wholeReplies[format]));
  });
  const endpoint = { key: 'sk-upstream', baseUrl: `${upstream.url}/v1` };
  for (const outputLimit of ['refuse', 'clamp', 'forward'] as const)
    gateways[outputLimit] = await startGateway({
      channels: [
        anthropicChannel({
          ...endpoint,
          models: ['claude-*', 'mine', 'mine-too'],
          traits: { mine: { outputLimit: 100 }, 'mine-*': { outputLimit: 100 } },
        }),
        openaiChannel({ ...endpoint, models: ['gpt-4o', 'gpt-4o-of-tomorrow'] }),
        geminiChannel({ ...endpoint, models: ['gemini-2.5-flash'] }),
      ],
      ...(outputLimit === 'refuse' ? {} : { plugins: [translation({ outputLimit })] }),
    });
});
afterAll(async () => {
  for (const gateway of Object.values(gateways)) await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.requests.length = 0;
});

const turns = [{ role: 'user', content: 'Hi' }];
const clients: Readonly<
  Record<string, (model: string, most: number) => { readonly path: string; readonly body: Json }>
> = {
  messages: (model, most) => ({ path: '/v1/messages', body: { model, max_tokens: most, messages: turns } }),
  chat: (model, most) => ({
    path: '/v1/chat/completions',
    body: { model, max_tokens: most, messages: turns },
  }),
  'chat of today': (model, most) => ({
    path: '/v1/chat/completions',
    body: { model, max_completion_tokens: most, messages: turns },
  }),
  responses: (model, most) => ({
    path: '/v1/responses',
    body: { model, max_output_tokens: most, input: 'Hi' },
  }),
  generateContent: (model, most) => ({
    path: `/v1beta/models/${model}:generateContent`,
    body: {
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
      generationConfig: { maxOutputTokens: most },
    },
  }),
};

const sendCall = (
  choice: string,
  client: string,
  model: string,
  most: number,
  headers: Record<string, string> = {},
): Promise<Answer> => {
  const { path, body } = clients[client]?.(model, most) ?? { path: '', body: {} };
  const gateway = gateways[choice];
  if (gateway === undefined) throw new Error(`no gateway for ${choice}`);
  return fetchRaw(gateway, path, { body, headers: { 'anthropic-version': '2023-06-01', ...headers } });
};
const sent = (): string => upstream.requests.at(-1)?.body.toString() ?? 'nothing';

describe('a messages client that asks for more than the model can give', () => {
  test.each([
    ['claude-sonnet-4-5', 64_001, 64_000],
    ['gpt-4o', 16_385, 16_384],
    ['gemini-2.5-flash', 65_537, 65_536],
    ['mine', 101, 100],
  ])('gets 400 for %s and %i tokens, which names the field and the limit', async (model, most, limit) => {
    const answer = await sendCall('refuse', 'messages', model, most);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: expect.stringMatching(`^max_tokens: ${most} > ${limit}, .* for ${model}`) as unknown,
      },
    });
    expect(upstream.requests).toEqual([]);
  });

  test.each([
    ['of exactly as many', 'claude-sonnet-4-5', 64_000, {}],
    ['of a model that the catalogue does not know', 'claude-of-tomorrow', 900_000, {}],
    ['where a pattern of the config states the limit', 'mine-too', 101, {}],
    [
      'of a longer output as a beta',
      'claude-sonnet-4-5',
      128_000,
      { 'anthropic-beta': 'output-128k-2025-02-19' },
    ],
  ])('passes a request byte for byte: %s', async (_, model, most, headers) => {
    const answer = await sendCall('refuse', 'messages', model, most, headers);
    expect(answer.status).toBe(200);
    expect(sent()).toBe(JSON.stringify(clients['messages']?.(model, most).body));
  });

  test('is left to the provider where the operator wants that', async () => {
    const answer = await sendCall('forward', 'messages', 'claude-sonnet-4-5', 64_001);
    expect([answer.status, JSON.parse(sent())]).toEqual([
      200,
      expect.objectContaining({ max_tokens: 64_001 }),
    ]);
  });
});

test('the provider decides about what clients of other formats ask for', async () => {
  const answer = await sendCall('refuse', 'chat', 'gpt-4o', 100_000);
  expect(answer.status).toBe(200);
  expect(sent()).toBe(JSON.stringify(clients['chat']?.('gpt-4o', 100_000).body));
});

describe('where the operator clamps', () => {
  const lost: Readonly<Record<string, string>> = {
    messages: 'max_tokens',
    chat: 'max_completion_tokens',
    'chat of today': 'max_completion_tokens',
    responses: 'max_output_tokens',
    generateContent: 'generationConfig.maxOutputTokens',
  };

  test.each(
    Object.keys(clients).flatMap((client) =>
      (
        [
          ['claude-sonnet-4-5', 64_000],
          ['gpt-4o', 16_384],
          ['gemini-2.5-flash', 65_536],
        ] as const
      ).map(([model, limit]) => [client, model, limit] as const),
    ),
  )(
    'a request of a %s client for %s is sent with the limit %i, and says so',
    async (client, model, limit) => {
      const answer = await sendCall('clamp', client, model, 100_000);
      expect(answer.status).toBe(200);
      expect(sent()).toMatch(
        new RegExp(`"(max_tokens|max_completion_tokens|max_output_tokens|maxOutputTokens)":${limit}\\b`),
      );
      expect(sent()).not.toContain('100000');
      expect(answer.headers['x-sluice-loss']).toContain(lost[client]);
    },
  );

  test('nothing but the limit changes in the client’s own bytes', async () => {
    const body =
      '{ "model":"claude-sonnet-4-5",  "max_tokens": 100000, "messages":[{"role":"user","content":"Hi"}],"tomorrow":[ 1 ] }';
    const gateway = gateways['clamp'];
    if (gateway === undefined) throw new Error('no gateway');
    const response = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'anthropic-version': '2023-06-01',
        authorization: `Bearer ${gateway.key}`,
      },
      body,
    });
    expect(response.status).toBe(200);
    expect(sent()).toBe(
      '{"max_tokens":64000,"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Hi"}],"tomorrow":[ 1 ]}',
    );
  });

  test('a strict client gets 400 instead', async () => {
    const answer = await sendCall('clamp', 'chat', 'gpt-4o', 100_000, { 'x-sluice-strict': 'true' });
    expect([answer.status, upstream.requests.length]).toEqual([400, 0]);
    expect(answer.text).toContain('max_completion_tokens');
  });

  test('models that the catalogue does not know are asked as the client says', async () => {
    const answer = await sendCall('clamp', 'chat', 'gpt-4o-of-tomorrow', 100_000);
    expect([answer.status, answer.headers['x-sluice-loss']]).toEqual([200, undefined]);
    expect(sent()).toContain('100000');
  });
});
