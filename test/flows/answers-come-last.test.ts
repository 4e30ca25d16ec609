import { from, of } from 'rxjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { definePlugin, type GatewayEvent, type Plugin } from 'sluice';
import demo from '../../channels/demo/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { refusedSocket } from '../support/websocket.ts';

type Json = Record<string, unknown>;

/** Calls that reached the plugin, by their model. */
const reached: string[] = [];

/** Answers every chat from elsewhere, as a cache or a guard does, and sends the others to a model of its choice. */
const answering = definePlugin({
  name: 'answering',
  stage: 'shape',
  setup: () =>
    async function answers(call, next) {
      if (call.operation === 'list-models') return next(call);
      reached.push(call.model);
      if (call.operation === 'chat') {
        const position = { block: 0, choice: 0 };
        return from<GatewayEvent[]>([
          { type: 'head', id: call.id, model: call.model },
          { type: 'text-start', ...position },
          { type: 'text-delta', ...position, text: 'from the cache' },
          { type: 'text-end', ...position },
          { type: 'finish', choice: 0, reason: 'stop' },
          { type: 'usage', usage: { input: 9, output: 9, cacheRead: 0, cacheWrite: 0, reasoning: 0 } },
        ]);
      }
      return of();
    },
});

let gateway: TestGateway;
let outsider: string;
let spender: string;
let unpriced: string;
let guest: string;

beforeAll(async () => {
  gateway = await startGateway({
    channels: [demo({ models: ['demo', 'other'] })],
    // First in the list, and so before all others of its stage.
    plugins: [answering() as ReturnType<Plugin>],
    prices: { other: { input: 1_000, output: 1_000 } },
  });
  const make = async (options: object): Promise<string> =>
    (await gateway.apiKeys.create({ name: 'key', ...options })).value;
  outsider = await make({ models: ['other'] });
  spender = await make({ budgets: [{ unit: 'token', period: 'total', amount: 0 }] });
  unpriced = await make({ budgets: [{ unit: 'micro-dollar', period: 'total', amount: 1 }] });
  guest = await make({ models: ['demo'] });
});
afterAll(() => gateway.close());

const message = { messages: [{ role: 'user', content: 'hi' }] };
const messages = { ...message, max_tokens: 5 };
const contents = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] };
const requests: readonly (readonly [string, Json])[] = [
  ['/v1/chat/completions', { model: 'demo', ...message }],
  ['/v1/chat/completions', { model: 'demo', stream: true, ...message }],
  ['/v1/completions', { model: 'demo', prompt: 'hi' }],
  ['/v1/messages', { model: 'demo', ...messages }],
  ['/v1/messages', { model: 'demo', stream: true, ...messages }],
  ['/v1beta/models/demo:generateContent', contents],
  ['/v1beta/models/demo:streamGenerateContent?alt=sse', contents],
  ['/v1/responses', { model: 'demo', input: 'hi' }],
  ['/v1/responses', { model: 'demo', input: 'hi', stream: true }],
  ['/v1/embeddings', { model: 'demo', input: 'hi' }],
  ['/v1/images/generations', { model: 'demo', prompt: 'hi' }],
  ['/v1/audio/speech', { model: 'demo', input: 'hi', voice: 'alloy' }],
  ['/v1/rerank', { model: 'demo', query: 'a', documents: ['b'] }],
];

async function post(path: string, body: Json, key: string) {
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'anthropic-version': '2023-06-01',
      'x-api-key': key,
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, text: await response.text() };
}

describe('a plugin that answers by itself', () => {
  test.each(requests)('is not reached by a key that may not ask for the model: %s %j', async (path, body) => {
    reached.length = 0;
    expect((await post(path, body, outsider)).status).toBe(403);
    expect(reached).toEqual([]);
  });

  test.each(requests)('is not reached by a key whose budget is spent: %s %j', async (path, body) => {
    reached.length = 0;
    expect((await post(path, body, spender)).status).toBe(429);
    expect(reached).toEqual([]);
  });

  test('is not reached by a key in dollars whose model has no price, nor by a session of one that may not ask', async () => {
    reached.length = 0;
    const free = await post('/v1/chat/completions', { model: 'nobody-knows', ...message }, unpriced);
    expect(free.status).toBe(403);
    const refused = await refusedSocket(`${gateway.url}/v1/realtime?model=demo`, {
      headers: { authorization: `Bearer ${outsider}` },
    });
    expect(refused.status).toBe(403);
    expect(reached).toEqual([]);
  });

  test('answers whoever may ask, and that costs nothing', async () => {
    reached.length = 0;
    const { status, text } = await post('/v1/chat/completions', { model: 'demo', ...message }, guest);
    expect([status, text.includes('from the cache')]).toEqual([200, true]);
    expect(reached).toEqual(['demo']);
    const models = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${guest}` } });
    expect(await models.json()).toMatchObject({ data: [{ id: 'demo' }] });
  });
});
