import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import type { WireFrame } from '../../core/sdk/format.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { checkLegal } from '../support/legal-responses.ts';

const channels = ['chat-completions', 'messages', 'generate-content', 'responses'] as const;

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({
    channels: channels.map((format) =>
      demo({
        id: format,
        speaks: [format],
        models: { [`via-${format}`]: 'demo', [`thinks-${format}`]: 'demo-thinking' },
      }),
    ),
  });
});
afterAll(() => gateway.close());

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const tools = [
  { type: 'function', name: 'get_weather', parameters },
  { type: 'function', name: 'get_time', parameters },
  { type: 'namespace', name: 'shell', tools: [{ type: 'custom', name: 'exec' }] },
];

/** Requests for everything that a model may do in one reply. */
const requests: readonly (readonly [what: string, body: object, thinks?: boolean])[] = [
  ['says something', { input: 'Grüße, 世界 🌍, and so on' }],
  ['says nothing of its usage', { input: '!no-usage Hello' }],
  ['thinks in a summary', { input: 'Why?', reasoning: { effort: 'high', summary: 'auto' } }, true],
  ['thinks in words of its own', { input: 'Why?', reasoning: { effort: 'high' } }, true],
  ['thinks unseen', { input: '!redacted Why?', reasoning: { effort: 'high' } }, true],
  ['calls a tool', { input: 'Please call get_weather', tools }],
  ['thinks and calls two tools', { input: 'Please call get_weather and get_time', tools }, true],
  ['mixes the arguments of two calls', { input: '!interleave Please call get_weather and get_time', tools }],
  ['runs code', { input: 'Please call shell__exec', tools }],
  ['declines', { input: '!refusal Hello' }],
  ['is filtered', { input: '!content-filter Hello' }],
  ['quotes a source', { input: '!cite Hello' }],
  ['paints', { input: '!image Hello' }],
  ['is cut at the limit', { input: 'a long story '.repeat(9), max_output_tokens: 17 }],
  [
    'is cut while it thinks',
    { input: 'Why? '.repeat(30), max_output_tokens: 17, reasoning: { effort: 'high' } },
    true,
  ],
  [
    'answers in a shape',
    {
      input: 'Hello',
      text: { format: { type: 'json_schema', name: 'city', schema: parameters, strict: true } },
    },
  ],
  [
    'tells its log probabilities',
    { input: 'Hello', top_logprobs: 2, include: ['message.output_text.logprobs'] },
  ],
];

/** Failures of a provider during a stream. */
const failing = [
  '!error-after=5 one two three four',
  '!cut-after=5 one two three four',
  '!end-after=5 one two three four',
];

async function framesOf(body: object): Promise<WireFrame[]> {
  const response = await fetch(`${gateway.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ stream: true, ...body }),
  });
  const text = await response.text();
  expect({ status: response.status, text }).toMatchObject({ status: 200 });
  return parseSse(Buffer.from(text)).map(({ event, data }) => ({
    ...(event === undefined ? {} : { event }),
    ...(data === '[DONE]' ? { text: data } : { json: JSON.parse(data) as JsonObject }),
  }));
}

describe.each(channels)(
  'a stream of Responses from a %s channel is what the official types say',
  (format) => {
    test.each(requests.map(([what, body, thinks]) => ({ what, body, thinks })))(
      'when the model $what',
      async ({ body, thinks }) => {
        const frames = await framesOf({ model: `${thinks === true ? 'thinks' : 'via'}-${format}`, ...body });
        expect(checkLegal(frames)).toEqual([]);
        expect(frames.at(-1)).toEqual({ text: '[DONE]' });
        expect(frames.at(-2)?.event).toMatch(/^response\.(completed|incomplete)$/);
      },
    );

    // A provider's own stream passes as it came, and ends with the one event that is added to it.
    if (format === 'responses') return;
    test.each(failing)('when the provider fails: %s', async (input) => {
      const frames = await framesOf({ model: `via-${format}`, input });
      expect(checkLegal(frames)).toEqual([]);
      expect(frames.some(({ event }) => event === 'error')).toBe(true);
    });
  },
);
