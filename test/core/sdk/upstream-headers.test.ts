import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import openaiChannel from '../../../channels/openai.ts';
import {
  addUpstreamHeaders,
  definePlugin,
  type CallOutcome,
  type PluginTime,
  type Target,
} from '../../../core/sdk/index.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../../support/upstream.ts';

const seen: Target[] = [];
const outcomes: CallOutcome[] = [];
const times: PluginTime[] = [];

const adding = definePlugin({
  name: 'adding',
  stage: 'observe',
  setup: (_options, tools) => {
    tools.watchPlugins((_call, time) => times.push(time));
    return async function adds(call, next) {
      call.onOutcome((outcome) => outcomes.push(outcome));
      addUpstreamHeaders(call, (target) => {
        seen.push(target);
        return target.channel.id === 'other'
          ? undefined
          : {
              'x-call': call.id,
              authorization: 'Bearer not-this-one',
              'Content-Type': 'text/plain',
              'x-set-by-operator': 'not this one',
              host: 'elsewhere.example',
              'transfer-encoding': 'identity',
              'x-broken': 'two\r\nlines',
              'not a name': 'x',
            };
      });
      addUpstreamHeaders(call, () => ({ 'x-second': '2' }));
      return next(call);
    };
  },
});

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let answers: number[] = [];

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    const status = answers.shift() ?? 200;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(
      status === 200
        ? '{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}'
        : '{"error":{"message":"broken"}}',
    );
  });
  const common = { baseUrl: `${upstream.url}/v1`, headers: { set: { 'x-set-by-operator': 'yes' } } };
  gateway = await startGateway({
    plugins: [adding()],
    channels: [
      openaiChannel({ id: 'first', key: 'key-of-first', models: ['m'], priority: 5, ...common }),
      openaiChannel({ id: 'other', key: 'key-of-other', models: ['m'], ...common }),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  for (const list of [seen, outcomes, times, upstream.requests]) list.length = 0;
  answers = [];
});

const sendChat = async (): Promise<void> => {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] }),
  });
  await answer.text();
  await expect.poll(() => outcomes.length).toBe(1);
};

describe('headers that a plugin adds to requests to providers', () => {
  test('are sent beside those of the channel, which win', async () => {
    await sendChat();
    expect(upstream.requests[0]?.headers).toMatchObject({
      'x-call': expect.stringMatching(/^req_/),
      'x-second': '2',
      'x-set-by-operator': 'yes',
      authorization: 'Bearer key-of-first',
      'content-type': 'application/json',
      host: new URL(upstream.url).host,
    });
    for (const name of ['x-broken', 'transfer-encoding'])
      expect(upstream.requests[0]?.headers).not.toHaveProperty(name);
  });

  test('are made for each attempt, by its target', async () => {
    answers = [500];
    await sendChat();
    expect(seen.map(({ channel }) => channel.id)).toEqual(['first', 'other']);
    expect(
      upstream.requests.map(({ headers }) => [headers['x-call'] !== undefined, headers['x-second']]),
    ).toEqual([
      [true, '2'],
      [false, '2'],
    ]);
  });
});

test('the outcome of a call has the key and the times of each attempt', async () => {
  answers = [500];
  await sendChat();
  const [{ attempts = [], times: { totalMs = 0 } = {} } = {}] = outcomes;
  expect(attempts).toMatchObject([
    { channel: 'first', key: expect.any(String), failure: 'upstream_error' },
    { channel: 'other', key: expect.any(String) },
  ]);
  const marks = attempts.flatMap(({ startMs = -1, endMs = -1 }) => [startMs, endMs]);
  expect(marks).toEqual(marks.toSorted((one, other) => one - other));
  expect(marks[0]).toBeGreaterThanOrEqual(0);
  expect(marks.at(-1)).toBe(totalMs);
});

test('whoever watches plugins is told of the time that each took before it passed a call on', async () => {
  await sendChat();
  const names = times.map(({ plugin }) => plugin);
  expect(names).toEqual(expect.arrayContaining(['adding', 'auth', 'quota', 'translation']));
  for (const { startedAt, endedAt } of times) expect(endedAt).toBeGreaterThanOrEqual(startedAt);
  // From the outside in, each behind the one before it.
  const starts = times.map(({ startedAt }) => startedAt);
  expect(starts).toEqual(starts.toSorted((one, other) => one - other));
});
