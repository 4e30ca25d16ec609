import { request as send, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { definePlugin, type InternalTools } from 'sluice/internal';
import type { UsageRecord } from '../../core/model/usage-record.ts';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, read, readError, voices, type Answer } from './_wire.ts';

type Behaviour = (response: ServerResponse) => void;

const voice = voices['chat-completions'];
const stream = { 'content-type': 'text/event-stream' };
const json = { 'content-type': 'application/json' };
const says =
  (word: string, after = 0): Behaviour =>
  (response) =>
    void setTimeout(() => response.writeHead(200, stream).end(voice.frames([word]).join('')), after);
const silent: Behaviour = () => {};

let first: ScriptedUpstream;
let second: ScriptedUpstream;
let onFirst: Behaviour;
let onSecond: Behaviour;
let gateway: TestGateway | undefined;
let tools: InternalTools | undefined;

const spy = definePlugin({
  name: 'spy',
  stage: 'observe',
  setup(_options, given: InternalTools) {
    tools = given;
    return (request, next) => next(request);
  },
});

beforeEach(async () => {
  onFirst = silent;
  onSecond = says('second');
  first = await startUpstream((_, response) => onFirst(response));
  second = await startUpstream((_, response) => onSecond(response));
});
afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
  tools = undefined;
  await first.close();
  await second.close();
});

async function start(after: number, config: GatewayConfig = {}): Promise<TestGateway> {
  gateway = await startGateway({
    channels: [
      voice.channel(first.url, { id: 'first', priority: 1, models: ['m'] }),
      voice.channel(second.url, { id: 'second', models: ['m'] }),
    ],
    plugins: [spy()],
    prices: { m: { input: 1, output: 1 } },
    ...config,
    routing: { hedge: { after }, ...config.routing },
  });
  return gateway;
}

const sendCall = (
  body: Record<string, unknown> = {},
  format: 'chat-completions' | 'messages' = 'chat-completions',
) => {
  if (gateway === undefined) throw new Error('no gateway');
  return call(gateway, format, 'm', true, { body: { ...voices[format].body('m', true), ...body } });
};
const textOf = (answer: Answer): string => read('chat-completions', true, answer).text;

async function records(): Promise<readonly UsageRecord[]> {
  const found: UsageRecord[] = [];
  if (tools !== undefined) for await (const record of tools.usageLog.each({})) found.push(record);
  return found;
}

describe('a silent provider', () => {
  test('loses to the next one, and its request is cancelled at once', async () => {
    await start(100);
    const answer = await sendCall();
    expect(textOf(answer)).toBe('second');
    // It would never have ended by itself.
    await first.requests[0]?.closed;
    expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
  });

  test('wins when it speaks first after all, and the other one is cancelled at once', async () => {
    await start(50);
    onFirst = says('first', 250);
    onSecond = silent;
    const answer = await sendCall();
    expect(textOf(answer)).toBe('first');
    await second.requests[0]?.closed;
  });

  test('and a slow one that both fail leave the client with the failure', async () => {
    await start(50);
    const fails: Behaviour = (response) => void setTimeout(() => response.writeHead(500).end(), 200);
    onFirst = fails;
    onSecond = fails;
    expect(readError('chat-completions', await sendCall()).status).toBe(502);
    expect([first.requests.length, second.requests.length]).toEqual([1, 1]);
  });

  test('does not keep a failure of the other one from being waited out', async () => {
    await start(50);
    onFirst = says('first', 300);
    onSecond = (response) => void response.writeHead(500).end();
    expect(textOf(await sendCall())).toBe('first');
  });

  test('that left its headers behind is cancelled as well, and the reply flows on', async () => {
    await start(80);
    onFirst = (response) => void response.writeHead(200, stream).write(': hold on\n\n');
    onSecond = (response) => {
      const frames = voice.frames(Array.from({ length: 400 }, () => 'word '.repeat(50)));
      response.writeHead(200, stream);
      let next = 0;
      const timer = setInterval(() => {
        for (let count = 0; count < 50; count += 1) {
          const frame = frames[next];
          next += 1;
          if (frame === undefined) {
            clearInterval(timer);
            response.end();
            return;
          }
          response.write(frame);
        }
      }, 2);
    };
    expect(textOf(await sendCall())).toHaveLength(400 * 250);
    await first.requests[0]?.closed;
  });

  test('is let go together with the other that was asked when the client leaves, who pays for what both had to read', async () => {
    const { url, key } = await start(50);
    onSecond = silent;
    const request = send(new URL('/v1/chat/completions', url), {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    });
    request.on('error', () => {});
    request.end(JSON.stringify(voice.body('m', true)));
    await expect.poll(() => second.requests.length).toBe(1);
    request.destroy();
    await Promise.all([first.requests[0]?.closed, second.requests[0]?.closed]);
    await expect.poll(records).toMatchObject([{ ended: 'left', input: 10, output: 0, estimated: true }]);
  });
});

describe('a provider that answers in time', () => {
  test('is asked alone', async () => {
    await start(2_000);
    onFirst = says('first');
    expect(textOf(await sendCall())).toBe('first');
    expect(second.requests).toHaveLength(0);
    await expect.poll(records).toMatchObject([{ input: 5, output: 7 }]);
    expect((await records())[0]?.attempts).toBeUndefined();
  });

  test('with an error is followed by the next at once', async () => {
    await start(60_000);
    onFirst = (response) => void response.writeHead(503).end();
    expect(textOf(await sendCall())).toBe('second');
  });

  test('with the caller’s mistake is believed, though another one is being asked', async () => {
    await start(50);
    onFirst = (response) =>
      void setTimeout(() => response.writeHead(400, json).end('{"error":{"message":"bad field"}}'), 200);
    onSecond = silent;
    expect(readError('chat-completions', await sendCall())).toEqual({ status: 400, message: 'bad field' });
    await second.requests[0]?.closed;
  });
});

describe('the bill', () => {
  test('has the input of the one that was given up, as an estimate; the record names it', async () => {
    const { apiKeys, url } = await start(50);
    const { value } = await apiKeys.create({
      name: 'paying',
      budgets: [{ unit: 'token', period: 'day', amount: 1_000_000 }],
    });
    const words = 'word '.repeat(2_000);
    const answer = await call({ url, key: value }, 'chat-completions', 'm', true, {
      body: { model: 'm', stream: true, max_tokens: 50, messages: [{ role: 'user', content: words }] },
    });
    expect(textOf(answer)).toBe('second');
    await expect.poll(records).toHaveLength(1);
    const [record] = await records();
    expect(record).toMatchObject({
      channel: 'second',
      estimated: true,
      output: 7,
      attempts: [{ channel: 'first', model: 'm', failure: 'hedged' }],
    });
    // The provider that answered says 5; the other had about 2,500 to read.
    expect(record?.input).toBeGreaterThan(2_300);
    expect(record?.input).toBeLessThan(2_700);
    expect(record?.microDollars).toBe((record?.input ?? 0) + 7);
    // What the client reads is what the provider said.
    expect(answer.text).not.toContain(String(record?.input));
  });

  // The reservation is an upper bound: at most 10,100 tokens for each reading of these 10,000 bytes, and 50 for the answer.
  test.each([
    ['one provider where one is asked', 0, 11_000, 200],
    ['one provider where two may be asked', 1, 11_000, 429],
    ['two providers where two may be asked', 1, 21_000, 200],
    ['two providers where three may be asked', 2, 21_000, 429],
    ['three providers where three may be asked', 2, 31_000, 200],
  ])(
    'of a budget has room for all that may be asked, or the call is refused: %s',
    async (_room, most, amount, status) => {
      const hedge = most === 0 ? false : { after: 60_000, most };
      const { apiKeys, url } = await start(0, { routing: { hedge } });
      onFirst = says('first');
      const { value } = await apiKeys.create({
        name: 'tight',
        budgets: [{ unit: 'token', period: 'day', amount }],
      });
      const words = 'word '.repeat(2_000);
      const answer = await call({ url, key: value }, 'chat-completions', 'm', true, {
        body: { model: 'm', stream: true, max_tokens: 50, messages: [{ role: 'user', content: words }] },
      });
      expect(answer.status).toBe(status);
      expect(first.requests).toHaveLength(status === 200 ? 1 : 0);
    },
  );
});

test.each([{ store: true }])(
  'a call that leaves something at the provider (%j) is sent once',
  async (body) => {
    await start(50);
    onFirst = says('first', 250);
    expect(textOf(await sendCall(body))).toBe('first');
    expect(second.requests).toHaveLength(0);
  },
);
