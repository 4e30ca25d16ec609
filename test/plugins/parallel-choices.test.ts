import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { GatewayError, type GatewayEvent } from 'sluice';
import {
  fail,
  reply,
  testPlugins,
  type CallOptions,
  type RunOptions,
  type Script,
  type Sent,
} from 'sluice/testing';
import anthropic from '../../channels/anthropic.ts';
import groq from '../../channels/groq.ts';
import openai from '../../channels/openai.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import type { BudgetState } from '../../core/money/ledger/index.ts';
import { openLedger } from '../../core/money/ledger/open.ts';
import type { Budget } from '../../core/sdk/budget.ts';
import parallelChoices from '../../plugins/parallel-choices.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';

const model = 'claude-sonnet-4-5';
const question = { model, messages: [{ role: 'user', content: 'Name a colour.' }] };

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

type Answering = (request: SeenRequest, response: ServerResponse, count: number) => void;

/** A gateway in front of a provider of messages, which makes one answer for each request. */
async function overMessages(
  answer: Answering,
  options: { readonly most?: number; readonly atOnce?: number } = {},
): Promise<{ readonly provider: ScriptedUpstream; readonly gateway: TestGateway }> {
  const provider = await startUpstream(answer);
  closing.push(() => provider.close());
  const gateway = await startGateway({
    plugins: [parallelChoices(options)],
    prices: { [model]: { input: 1, output: 1 } },
    channels: [anthropic({ key: 'k', baseUrl: `${provider.url}/v1`, models: [model] })],
  });
  closing.push(() => gateway.close());
  return { provider, gateway };
}

const sendChat = (
  { url, key }: Pick<TestGateway, 'url' | 'key'>,
  body: object,
  path = '/v1/chat/completions',
  signal?: AbortSignal,
): Promise<Response> =>
  fetch(url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });

const json = (response: ServerResponse, status: number, body: object): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

const message = (text: string) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model,
  content: [{ type: 'text', text }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 3 },
});

const frame = (type: string, more: object): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
const beginning = [
  frame('message_start', {
    message: {
      ...message(''),
      content: [],
      stop_reason: null,
      usage: { input_tokens: 10, output_tokens: 1 },
    },
  }),
  frame('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
].join('');
const delta = (text: string): string =>
  frame('content_block_delta', { index: 0, delta: { type: 'text_delta', text } });
const ending = [
  frame('content_block_stop', { index: 0 }),
  frame('message_delta', {
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 3 },
  }),
  frame('message_stop', {}),
].join('');
const begin = (response: ServerResponse, text: string): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(beginning + delta(text));
};

interface Chunk {
  readonly id: string;
  readonly choices: readonly { readonly index: number; readonly delta: { readonly content?: string } }[];
  readonly usage?: object;
  readonly error?: object;
}
const chunksOf = (text: string): Chunk[] =>
  parseSse(text).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data) as Chunk]));

describe('several answers from a provider that makes one for each request', () => {
  test('come in one reply, numbered, with the usage of all', async () => {
    const { gateway, provider } = await overMessages((_request, response, count) =>
      json(response, 200, message(`colour ${count}`)),
    );
    const response = await sendChat(gateway, { ...question, n: 3 });
    const body = (await response.json()) as { choices: { index: number; message: { content: string } }[] };
    expect(response.status).toBe(200);
    expect(response.headers.get('x-sluice-loss')).toBeNull();
    expect(body.choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(body.choices.map((choice) => choice.message.content).toSorted()).toEqual([
      'colour 1',
      'colour 2',
      'colour 3',
    ]);
    expect(body).toMatchObject({ usage: { prompt_tokens: 30, completion_tokens: 9, total_tokens: 39 } });
    expect(provider.requests).toHaveLength(3);
  });

  test('come to clients of generateContent and of text completions alike', async () => {
    const { gateway, provider } = await overMessages((_request, response) =>
      json(response, 200, message('red')),
    );
    const generated = await sendChat(
      gateway,
      { contents: [{ parts: [{ text: 'A colour?' }] }], generationConfig: { candidateCount: 2 } },
      `/v1beta/models/${model}:generateContent`,
    );
    expect(await generated.json()).toMatchObject({
      candidates: [{ index: 0 }, { index: 1 }],
      usageMetadata: { promptTokenCount: 20, candidatesTokenCount: 6 },
    });
    const completed = await sendChat(gateway, { model, prompt: ['a', 'b'], n: 2 }, '/v1/completions');
    expect(await completed.json()).toMatchObject({
      choices: [0, 1, 2, 3].map((index) => ({ index, text: 'red' })),
      usage: { prompt_tokens: 40, completion_tokens: 12 },
    });
    expect(provider.requests).toHaveLength(6);
  });

  test('interleave in a stream, each under its own index', async () => {
    const responses: ServerResponse[] = [];
    const { gateway } = await overMessages((_request, response) => {
      responses.push(response);
      if (responses.length < 3) return;
      // Nobody is complete before all have begun.
      responses.forEach((one, index) => begin(one, `first ${index} `));
      responses.forEach((one, index) => one.end(delta(`last ${index}`) + ending));
    });
    const response = await sendChat(gateway, {
      ...question,
      n: 3,
      stream: true,
      stream_options: { include_usage: true },
    });
    const text = await response.text();
    expect(text.slice(-600)).toMatch(/data: \[DONE\]\n\n$/);
    const chunks = chunksOf(text);
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    const texts = new Map<number, string>();
    for (const { choices } of chunks)
      for (const { index, delta: piece } of choices)
        texts.set(index, (texts.get(index) ?? '') + (piece.content ?? ''));
    expect([...texts.keys()].toSorted()).toEqual([0, 1, 2]);
    expect([...texts.values()].toSorted()).toEqual([0, 1, 2].map((index) => `first ${index} last ${index}`));
    const ends = chunks
      .flatMap(({ choices }) => choices)
      .filter((choice) => 'finish_reason' in choice && choice.finish_reason);
    expect(ends).toHaveLength(3);
    expect(chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 30, completion_tokens: 9 });
  });

  test('are asked for a few at a time', async () => {
    let running = 0;
    let most = 0;
    const waiting: (() => void)[] = [];
    const { gateway, provider } = await overMessages(
      (_request, response) => {
        running += 1;
        most = Math.max(most, running);
        waiting.push(() => {
          running -= 1;
          json(response, 200, message('red'));
        });
        if (waiting.length === 2) for (const go of waiting.splice(0)) go();
      },
      { atOnce: 2 },
    );
    const response = await sendChat(gateway, { ...question, n: 6 });
    expect(await response.json()).toMatchObject({
      choices: Array.from({ length: 6 }, () => ({ message: { content: 'red' } })),
    });
    expect([provider.requests.length, most]).toEqual([6, 2]);
    const streaming = await overMessages(
      (_request, one) => {
        begin(one, 'red');
        one.end(ending);
      },
      { atOnce: 2 },
    );
    const chunks = chunksOf(
      await (await sendChat(streaming.gateway, { ...question, n: 5, stream: true })).text(),
    );
    const indexes = chunks.flatMap(({ choices }) => choices.map(({ index }) => index));
    expect(new Set(indexes)).toEqual(new Set([0, 1, 2, 3, 4]));
  });

  test('are refused when they are more than the operator allows', async () => {
    const { gateway, provider } = await overMessages(() => {}, { most: 4 });
    const response = await sendChat(gateway, { ...question, n: 5 });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { param: 'n', message: 'n must be at most 4 for this model.' },
    });
    expect(provider.requests).toEqual([]);
  });
});

describe('when one of the requests fails', () => {
  test('the reply is one error, and the other requests are given up', async () => {
    const seen: SeenRequest[] = [];
    const { gateway } = await overMessages((request, response) => {
      seen.push(request);
      if (seen.length === 3)
        json(response, 400, { type: 'error', error: { type: 'invalid_request_error', message: 'No.' } });
    });
    const response = await sendChat(gateway, { ...question, n: 3 });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { message: 'No.' } });
    // The two that were never answered.
    await Promise.all(seen.map(({ closed }) => closed));
  });

  test('another channel answers where nothing was sent yet', async () => {
    const broken = await startUpstream((_request, response, count) =>
      count % 2 === 0
        ? json(response, 503, { type: 'error', error: { type: 'api_error', message: 'No.' } })
        : json(response, 200, message('red')),
    );
    const sound = await startUpstream((_request, response) => json(response, 200, message('green')));
    closing.push(
      () => broken.close(),
      () => sound.close(),
    );
    const gateway = await startGateway({
      channels: [
        anthropic({ id: 'broken', key: 'k', baseUrl: `${broken.url}/v1`, models: [model], priority: 1 }),
        anthropic({ id: 'sound', key: 'k', baseUrl: `${sound.url}/v1`, models: [model] }),
      ],
    });
    closing.push(() => gateway.close());
    const response = await sendChat(gateway, { ...question, n: 2 });
    expect(await response.json()).toMatchObject({
      choices: [{ message: { content: 'green' } }, { message: { content: 'green' } }],
      usage: { prompt_tokens: 20, completion_tokens: 6 },
    });
  });

  test('a stream ends with the error, and the other requests are given up', async () => {
    const seen: SeenRequest[] = [];
    const responses: ServerResponse[] = [];
    const { gateway } = await overMessages((request, response) => {
      seen.push(request);
      responses.push(response);
      begin(response, 'red');
      if (responses.length === 3)
        response.end(frame('error', { error: { type: 'overloaded_error', message: 'Busy.' } }));
    });
    const response = await sendChat(gateway, { ...question, n: 3, stream: true });
    const text = await response.text();
    expect(text).not.toContain('[DONE]');
    expect(chunksOf(text).at(-1)?.error).toBeDefined();
    await Promise.all(seen.map(({ closed }) => closed));
  });

  test('a client that leaves ends all of them, streamed or not', async () => {
    const { gateway, provider } = await overMessages((_request, response, count) => {
      if (count <= 3) begin(response, 'red');
    });
    const streaming = new AbortController();
    const response = await sendChat(
      gateway,
      { ...question, n: 3, stream: true },
      undefined,
      streaming.signal,
    );
    await response.body?.getReader().read();
    await eventually(() => expect(provider.requests).toHaveLength(3));
    streaming.abort();
    await Promise.all(provider.requests.map(({ closed }) => closed));
    const waiting = new AbortController();
    const never = sendChat(gateway, { ...question, n: 3 }, undefined, waiting.signal).catch(() => 'left');
    await eventually(() => expect(provider.requests).toHaveLength(6));
    waiting.abort();
    expect(await never).toBe('left');
    await Promise.all(provider.requests.map(({ closed }) => closed));
  });
});

describe('providers of chat completions', () => {
  test('get the number as it is, or as many requests where they refuse it', async () => {
    const provider = await startUpstream((request, response) => {
      const { n = 1 } = JSON.parse(String(request.body)) as { n?: number };
      const choices = Array.from({ length: n }, (_, index) => ({
        index,
        message: { role: 'assistant', content: `answer ${index}` },
        finish_reason: 'stop',
      }));
      const usage = { prompt_tokens: 5, completion_tokens: n, total_tokens: 5 + n };
      json(response, 200, { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage });
    });
    closing.push(() => provider.close());
    const gateway = await startGateway({
      channels: [
        openai({ key: 'k', baseUrl: `${provider.url}/v1`, models: ['gpt-4o'] }),
        groq({ key: 'k', baseUrl: `${provider.url}/groq`, models: ['llama-3.3-70b-versatile'] }),
      ],
    });
    closing.push(() => gateway.close());
    const native = await sendChat(gateway, { ...question, model: 'gpt-4o', n: 2 });
    expect(((await native.json()) as { choices: unknown[] }).choices).toHaveLength(2);
    expect(provider.requests).toHaveLength(1);
    const split = await sendChat(gateway, { ...question, model: 'llama-3.3-70b-versatile', n: 2 });
    // "n: 1" is what such a provider does anyway: nothing is lost.
    expect(split.headers.get('x-sluice-loss')).toBeNull();
    expect(await split.json()).toMatchObject({
      choices: [
        { index: 0, message: { content: 'answer 0' } },
        { index: 1, message: { content: 'answer 0' } },
      ],
      usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
    });
    expect(provider.requests.slice(1).map(({ body }) => 'n' in (JSON.parse(String(body)) as object))).toEqual(
      [false, false],
    );
  });
});

describe('the requests', () => {
  const answered = ({ call }: Sent): Script => [
    { type: 'attempt', channel: 'c', model: 'm' },
    { type: 'head', id: call.id, model: 'm' },
    { type: 'text-start', block: 0, choice: 0 },
    { type: 'text-delta', block: 0, choice: 0, text: 'x' },
    { type: 'text-end', block: 0, choice: 0 },
    { type: 'finish', choice: 0, reason: 'stop' },
    { type: 'usage', usage: { input: 4, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 } },
  ];
  const run = async (call: CallOptions, how: RunOptions = {}) => {
    const tested = await testPlugins(parallelChoices(), {
      channels: { test: { models: ['*'], speaks: ['messages'] } },
    });
    closing.push(() => tested.close());
    return tested.run(call, { reply: answered, ...how });
  };

  test('have seeds of their own, because one seed would give one answer', async () => {
    const { sent, events } = await run({ settings: { choices: 3, seed: 7, temperature: 0.5 } });
    expect(sent.map(({ request }) => request.settings)).toEqual(
      [7, 8, 9].map((seed) => ({ choices: 1, seed, temperature: 0.5 })),
    );
    const once = events.filter(({ type }) => type === 'head' || type === 'attempt');
    expect(once).toHaveLength(2);
    const blocks = events.flatMap((event) =>
      event.type === 'text-delta' ? [[event.block, event.choice]] : [],
    );
    expect(blocks).toEqual([
      [0, 0],
      [1, 1],
      [2, 2],
    ]);
  });

  test('are one where one answer is asked for', async () => {
    for (const settings of [{}, { choices: 1 }]) {
      const { sent } = await run({ settings });
      expect(sent).toHaveLength(1);
    }
  });

  test('count as what they have read, also before the provider tells', async () => {
    const { events } = await run({ settings: { choices: 2 }, stream: true });
    const usages = events.flatMap((event: GatewayEvent) => (event.type === 'usage' ? [event.usage] : []));
    expect(usages[0]).toMatchObject({ output: 0, estimated: true });
    expect(usages[0]?.input).toBeGreaterThan(0);
    expect(usages.at(-1)).toMatchObject({ input: 8, output: 2 });
    expect(usages.at(-1)?.estimated).toBeUndefined();
  });

  test('fail together', async () => {
    const error = new GatewayError('upstream_error', 'No.', { origin: 'upstream' });
    const { error: failure, events } = await run(
      { settings: { choices: 2 } },
      { reply: (sent, index) => (index === 1 ? reply(fail(error)) : answered(sent)) },
    );
    expect(failure).toMatchObject({ code: 'upstream_error' });
    expect(events).toEqual([]);
  });
});

describe('budgets', () => {
  const budget = (amount: number): Budget => ({ unit: 'token', period: 'total', amount });
  const keyWith = async (gateway: TestGateway, amount: number) => {
    const budgets = [budget(amount)];
    const { value, record } = await gateway.apiKeys.create({ name: 'small', budgets });
    const ledger = openLedger(gateway.stores);
    const state = async (): Promise<BudgetState | undefined> => (await ledger.states(record.id, budgets))[0];
    return { caller: { url: gateway.url, key: value }, state };
  };

  test('reserve the input and the limit of every request, and pay what all have used', async () => {
    const waiting: ServerResponse[] = [];
    const { gateway, provider } = await overMessages((_request, response) => void waiting.push(response));
    const { caller, state } = await keyWith(gateway, 100_000);
    const one = sendChat(caller, { ...question, max_tokens: 500 });
    await eventually(() => expect(provider.requests).toHaveLength(1));
    const { reserved: single = 0 } = (await state()) ?? {};
    expect(single).toBeGreaterThan(500);
    const four = sendChat(caller, { ...question, max_tokens: 500, n: 4 });
    await eventually(() => expect(provider.requests).toHaveLength(5));
    expect(await state()).toMatchObject({ spent: 0, reserved: 5 * single });
    for (const response of waiting) json(response, 200, message('red'));
    expect(await (await four).json()).toMatchObject({ usage: { prompt_tokens: 40, completion_tokens: 12 } });
    expect((await one).status).toBe(200);
    await eventually(async () => expect(await state()).toMatchObject({ spent: 5 * 13, reserved: 0 }));
  });

  test('pay the fee of each request', async () => {
    const provider = await startUpstream((_request, response) => json(response, 200, message('red')));
    closing.push(() => provider.close());
    const gateway = await startGateway({
      prices: { [model]: { perCall: 0.01 } },
      channels: [anthropic({ key: 'k', baseUrl: `${provider.url}/v1`, models: [model] })],
    });
    closing.push(() => gateway.close());
    const dollars: Budget = { unit: 'micro-dollar', period: 'total', amount: 1_000_000 };
    const { value, record } = await gateway.apiKeys.create({ name: 'small', budgets: [dollars] });
    const answer = await sendChat({ url: gateway.url, key: value }, { ...question, n: 3 });
    expect(answer.status).toBe(200);
    await answer.text();
    await eventually(async () => {
      const [state] = await openLedger(gateway.stores).states(record.id, [dollars]);
      expect(state).toMatchObject({ spent: 30_000, reserved: 0 });
    });
  });

  test('are never exceeded by calls at the same time', async () => {
    const limit = 50;
    const { gateway } = await overMessages((_request, response) =>
      json(response, 200, { ...message('red'), usage: { input_tokens: 10, output_tokens: limit } }),
    );
    const amount = 2_000;
    const { caller, state } = await keyWith(gateway, amount);
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => sendChat(caller, { ...question, max_tokens: limit, n: 4 })),
    );
    const statuses = answers.map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    const served = statuses.filter((status) => status === 200).length;
    await eventually(async () =>
      expect(await state()).toMatchObject({ spent: served * 4 * (10 + limit), reserved: 0 }),
    );
    expect(served * 4 * (10 + limit)).toBeLessThanOrEqual(amount);
  });

  test('pay what every provider has read of a client that leaves', async () => {
    const provider = await startUpstream((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const choices = [{ index: 0, delta: { role: 'assistant', content: 'red' }, finish_reason: null }];
      // It never tells what was used.
      response.write(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })}\n\n`,
      );
    });
    closing.push(() => provider.close());
    const named = 'llama-3.3-70b-versatile';
    const gateway = await startGateway({
      channels: [groq({ key: 'k', baseUrl: provider.url, models: [named] })],
    });
    closing.push(() => gateway.close());
    const { caller, state } = await keyWith(gateway, 10_000_000);
    const text = 'colour '.repeat(400);
    const leaving = new AbortController();
    const body = { model: named, messages: [{ role: 'user', content: text }], n: 4, stream: true };
    const response = await sendChat(caller, body, undefined, leaving.signal);
    let seen = '';
    for await (const piece of response.body ?? []) {
      seen += Buffer.from(piece).toString();
      if ([0, 1, 2, 3].every((index) => seen.includes(`"index":${index}`))) break;
    }
    leaving.abort();
    await eventually(async () => expect((await state())?.reserved).toBe(0));
    const { spent = 0 } = (await state()) ?? {};
    expect(spent).toBeGreaterThan(4 * 400);
    expect(spent).toBeLessThan(4 * 1_000);
  });
});
