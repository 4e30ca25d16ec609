import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import providerObjects from '../../plugins/provider-objects/index.ts';
import { startAnthropicObjects } from '../support/anthropic-objects.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { charges } from '../plugins/provider-objects/_records.ts';
import { voices } from './_wire.ts';

type Json = Record<string, unknown>;

/** Usage of a reply whose small model asked a large one: the figures at the top leave the large one out. */
const usage = {
  input_tokens: 100,
  output_tokens: 50,
  iterations: [
    { type: 'message', model: null, input_tokens: 100, output_tokens: 50 },
    { type: 'advisor_message', model: 'claude-large', input_tokens: 20_000, output_tokens: 20_000 },
  ],
};
const prices = {
  'claude-small': { input: 1, output: 1 },
  'claude-large': { input: 1, output: 50 },
};
/** 150 for the small model, 20,000 and 1,000,000 for the large one. */
const cost = 150 + 20_000 + 1_000_000;

const whole = (): Json => ({ ...voices.messages.whole('hi', 'claude-small'), usage });
const stream = (): string =>
  voices.messages
    .frames(['hi'], 'claude-small')
    .join('')
    .replace(/"usage":\{[^{}]*\}(?=\}\n\nevent: message_stop)/, `"usage":${JSON.stringify(usage)}`);

let upstream: ScriptedUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream(({ body }, response) => {
    const isStream = body.toString().includes('"stream":true');
    response
      .writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' })
      .end(isStream ? stream() : JSON.stringify(whole()));
  });
  gateway = await startGateway({
    channels: [anthropic({ key: 'k', baseUrl: `${upstream.url}/v1`, models: ['claude-small'] })],
    prices,
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => void (upstream.requests.length = 0));

async function post(path: string, body: Json) {
  const { value, record } = await gateway.apiKeys.create({ name: 'one' });
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      authorization: `Bearer ${value}`,
    },
    body: JSON.stringify({
      model: 'claude-small',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'hi' }],
      ...body,
    }),
  });
  const text = await response.text();
  const log = openUsageLog(gateway.stores);
  await expect.poll(async () => (await log.page({ keyId: record.id }, 10)).records).toHaveLength(1);
  const { records } = await log.page({ keyId: record.id }, 10);
  return { text, record: records[0] };
}

const charged = {
  input: 20_100,
  output: 20_050,
  microDollars: cost,
  price: { model: 'claude-small', otherModels: [{ model: 'claude-large' }] },
};

test('a reply is charged for the tokens of the advisor, at its price, and reaches its client unchanged', async () => {
  const { text, record } = await post('/v1/messages', {});
  expect(text).toBe(JSON.stringify(whole()));
  expect(record).toMatchObject(charged);
});

test('so is a stream', async () => {
  const { text, record } = await post('/v1/messages', { stream: true });
  expect(text).toBe(stream());
  expect(text).toContain('"iterations"');
  expect(record).toMatchObject(charged);
});

test.each([false, true])('a client of another format is told the sum (stream: %s)', async (isStream) => {
  const { text, record } = await post('/v1/chat/completions', {
    stream: isStream,
    stream_options: isStream ? { include_usage: true } : undefined,
  });
  expect(text).toContain('"prompt_tokens":20100,"completion_tokens":20050');
  expect(record).toMatchObject(charged);
});

test('a batch is charged for the tokens of advisors', async () => {
  const provider = await startAnthropicObjects();
  const own = await startGateway({
    plugins: [providerObjects({ poll: { first: 20, most: 50 } })],
    prices,
    channels: [anthropic({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['claude-small'] })],
  });
  onTestFinished(async () => {
    await own.close();
    await provider.close();
  });
  const { value, record } = await own.apiKeys.create({ name: 'one' });
  const client = new Anthropic({ baseURL: own.url, apiKey: value, maxRetries: 0 });
  const params = {
    model: 'claude-small',
    max_tokens: 10,
    messages: [{ role: 'user' as const, content: 'hi' }],
  };
  const batch = await client.messages.batches.create({ requests: [{ custom_id: 'a', params }] });
  provider.finish(batch.id, [{ custom_id: 'a', result: { type: 'succeeded', message: whole() } }]);
  await expect.poll(() => charges(own)).toHaveLength(1);
  expect(await charges(own)).toMatchObject([
    { keyId: record.id, input: 20_100, output: 20_050, microDollars: cost / 2 },
  ]);
});
