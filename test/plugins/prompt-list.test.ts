import { GatewayError, type GatewayEvent, type JsonObject } from 'sluice';
import {
  fail,
  reply,
  testPlugins,
  type CallOptions,
  type Outcome,
  type RunOptions,
  type Script,
  type Sent,
} from 'sluice/testing';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import openai from '../../channels/openai.ts';
import promptList from '../../plugins/prompt-list.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { between } from './_between.ts';

const textCall = (body: JsonObject): CallOptions => ({
  format: 'text-completions',
  body: { model: 'm', ...body },
});

const promptOf = ({ call }: Sent): unknown => call.body.prompt;

/** Answers every call with its prompt in two answers, and tells what it used. */
function repeating(sent: Sent): Script {
  const text = String(promptOf(sent));
  const usage = { input: text.length, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  const answer = (choice: number): GatewayEvent[] => [
    { type: 'text-start', block: choice, choice },
    { type: 'text-delta', block: choice, choice, text },
    { type: 'text-end', block: choice, choice },
    { type: 'finish', choice, reason: 'stop' },
  ];
  return [
    { type: 'attempt', channel: 'c', model: 'm' },
    { type: 'head', id: text, model: 'm' },
    { type: 'usage', usage: { ...usage, output: 0 } },
    ...answer(0),
    ...answer(1),
    { type: 'usage', usage },
  ];
}

async function run(
  body: JsonObject,
  { most, ...how }: RunOptions & { readonly most?: number } = {},
): Promise<Outcome> {
  const tested = await testPlugins(promptList(most === undefined ? {} : { most }));
  onTestFinished(() => tested.close());
  return tested.run(textCall(body), { reply: repeating, ...how });
}

describe('a list of prompts for a model that chats', () => {
  test('is answered in one reply: one head, answers and blocks numbered through, usage added up', async () => {
    const { events, body } = await run({ prompt: ['a', 'bc', 'def'], n: 2 });
    expect(body?.['choices']).toMatchObject(
      ['a', 'a', 'bc', 'bc', 'def', 'def'].map((text, index) => ({ index, text })),
    );
    expect(events.filter(({ type }) => type === 'head' || type === 'attempt')).toHaveLength(2);
    expect(events[1]).toMatchObject({ type: 'head', id: 'a' });
    const texts = events.flatMap((event) =>
      event.type === 'text-delta' ? [[event.choice, event.block, event.text]] : [],
    );
    expect(texts).toEqual([
      [0, 0, 'a'],
      [1, 1, 'a'],
      [2, 2, 'bc'],
      [3, 3, 'bc'],
      [4, 4, 'def'],
      [5, 5, 'def'],
    ]);
    expect(events.flatMap((event) => (event.type === 'finish' ? [event.choice] : []))).toEqual([
      0, 1, 2, 3, 4, 5,
    ]);
    expect(events.flatMap((event) => (event.type === 'usage' ? [event.usage] : []))).toMatchObject([
      { input: 1, output: 0 },
      { input: 1, output: 1 },
      { input: 3, output: 1 },
      { input: 3, output: 2 },
      { input: 6, output: 2 },
      { input: 6, output: 3 },
    ]);
  });

  test('asks for one prompt at a time, the next when the last is answered', async () => {
    // The client leaves in the middle of the second answer.
    const { sent } = await run({ prompt: ['a', 'b', 'c'] }, { leaveAfter: 14 });
    expect(sent.map(promptOf)).toEqual(['a', 'b']);
    expect(sent.every(({ call }) => call.edits.decoded)).toBe(true);
  });

  test('ends in the error of the prompt that failed', async () => {
    const error = new GatewayError('upstream_error', 'No.', { origin: 'upstream' });
    const failing = (sent: Sent): Script => (promptOf(sent) === 'b' ? reply(fail(error)) : repeating(sent));
    const late = await run({ prompt: ['a', 'b', 'c'] }, { reply: failing });
    expect(late.error).toMatchObject({ code: 'upstream_error' });
    expect(late.events.filter(({ type }) => type === 'finish')).toHaveLength(2);
    const early = await run({ prompt: ['b', 'a'] }, { reply: failing });
    expect(early).toMatchObject({ error: { code: 'upstream_error' }, events: [] });
  });

  test('is 400 when it is longer than the operator allows, or asks for what no chat can do', async () => {
    const list = (length: number): string[] => Array.from({ length }, () => 'a');
    expect(await run({ prompt: list(21) })).toMatchObject({
      status: 400,
      error: { param: 'prompt' },
      sent: [],
    });
    expect(await run({ prompt: list(3) }, { most: 2 })).toMatchObject({
      error: { message: 'prompt must be a list of at most 2 prompts for this model.' },
      sent: [],
    });
    expect(await run({ prompt: list(2), logprobs: 1 })).toMatchObject({
      status: 400,
      error: { param: 'logprobs' },
      sent: [],
    });
  });

  test.each([
    ['goes as it is to a channel that takes it', { prompt: ['a', 'b'] }, ['text-completions']],
    ['is left alone when it has one prompt', { prompt: ['a'] }, ['messages']],
    ['is left alone when it is tokens', { prompt: [[1], [2]] }, ['messages']],
    ['is left alone when it is a string', { prompt: 'a' }, ['messages']],
  ])('%s', async (_what, body, speaks) => {
    const { plugins, passed } = between(promptList());
    const tested = await testPlugins(plugins, { channels: { one: { models: ['m'], speaks } } });
    onTestFinished(() => tested.close());
    await tested.run(textCall(body));
    expect(passed).toHaveLength(1);
    expect(passed[0]?.on).toBe(passed[0]?.call);
  });
});

describe('over a socket', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;

  beforeAll(async () => {
    upstream = await startUpstream((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(
        '{"id":"cmpl-1","object":"text_completion","created":1,"model":"x","choices":[{"text":"!","index":0,"logprobs":null,"finish_reason":"stop"}]}',
      );
    });
    gateway = await startGateway({
      channels: [
        demo({ speaks: ['messages'] }),
        openai({
          key: 'k',
          baseUrl: `${upstream.url}/v1`,
          models: { native: 'gpt-3.5-turbo-instruct' },
        }),
      ],
    });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const send = (body: JsonObject) =>
    fetch(`${gateway.url}/v1/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });

  test('every prompt is answered, whole', async () => {
    const response = await send({ model: 'demo', prompt: ['one', 'two', 'three'], echo: true });
    expect(response.status).toBe(200);
    const { choices, usage } = (await response.json()) as {
      choices: unknown[];
      usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
    };
    expect(choices).toMatchObject([
      { index: 0, text: 'oneYou said: one', finish_reason: 'stop' },
      { index: 1, text: 'twoYou said: two', finish_reason: 'stop' },
      { index: 2, text: 'threeYou said: three', finish_reason: 'stop' },
    ]);
    const single = await send({ model: 'demo', prompt: 'one' });
    const one = ((await single.json()) as { usage: { completion_tokens: number } }).usage;
    expect(usage.completion_tokens).toBe(3 * one.completion_tokens);
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
  });

  test('every prompt is answered, streamed', async () => {
    const response = await send({
      model: 'demo',
      prompt: ['one', 'two'],
      stream: true,
      stream_options: { include_usage: true },
    });
    const text = await response.text();
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    const chunks = text
      .split('\n\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)) as { id: string; choices: { index: number; text: string }[] });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    const texts = ['', ''];
    for (const { choices } of chunks) for (const { index, text: piece } of choices) texts[index] += piece;
    expect(texts).toEqual(['You said: one', 'You said: two']);
  });

  test('a second prompt that fails breaks the stream with an error, and makes a whole reply one', async () => {
    const prompt = ['one', 'two !status=500'];
    const whole = await send({ model: 'demo', prompt });
    expect(whole.status).toBeGreaterThanOrEqual(500);
    const streamed = await send({ model: 'demo', prompt, stream: true });
    const text = await streamed.text();
    expect(text).toContain('one');
    expect(text.trimEnd().split('\n\n').at(-1)).toMatch(/^data: \{"error":/);
  });

  test('a channel that completes text gets the list as it was written', async () => {
    const body = { model: 'native', prompt: ['one', [1, 2]] };
    const response = await send(body);
    expect(((await response.json()) as { model: string }).model).toBe('native');
    expect(upstream.requests).toHaveLength(1);
    expect(upstream.requests[0]?.url).toBe('/v1/completions');
    expect(JSON.parse(String(upstream.requests[0]?.body))).toEqual({
      ...body,
      model: 'gpt-3.5-turbo-instruct',
    });
  });
});
