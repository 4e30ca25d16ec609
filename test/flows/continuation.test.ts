import { request as send, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import mistral from '../../channels/mistral/index.ts';
import type { WireFrame } from '../../core/sdk/format.ts';
import type { JsonObject } from '../../core/model/json.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import continuation from '../../plugins/continuation/index.ts';
import { checkLegal as legalChat } from '../support/legal-chat-completions.ts';
import { checkLegal as legalContent } from '../support/legal-generate-content.ts';
import { checkLegal as legalMessages } from '../support/legal-messages.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { call, fetchRaw, read, voices, type Answer, type FormatName } from './_wire.ts';
import { eventually } from '../support/eventually.ts';

type Json = Record<string, unknown>;
type Script = (response: ServerResponse, count: number, request: SeenRequest) => void;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

const named = (value: Json): string => `event: ${String(value.type)}\ndata: ${JSON.stringify(value)}\n\n`;
const start = named({
  type: 'message_start',
  message: {
    id: 'msg_01',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 1 },
  },
});
const opened = (index = 0): string =>
  named({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } });
const textDelta = (text: string, index = 0): string =>
  named({ type: 'content_block_delta', index, delta: { type: 'text_delta', text } });
const closed = (index = 0): string => named({ type: 'content_block_stop', index });
const finished = (output: number): string =>
  named({
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: output },
  }) + named({ type: 'message_stop' });
const overloaded = named({ type: 'error', error: { type: 'overloaded_error', message: 'Try later.' } });

/** Writes this and breaks the connection. */
function breaks(response: ServerResponse, ...frames: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(frames.join(''), () => setTimeout(() => response.destroy(), 20));
}

function answers(response: ServerResponse, ...frames: readonly string[]): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(frames.join(''));
}

interface Stage {
  readonly gateway: TestGateway;
  readonly upstream: ScriptedUpstream;
  /** The bodies of the requests so far. */
  bodies(): readonly Json[];
}

async function stage(script: Script, options: Json = {}, plugin: Json = {}): Promise<Stage> {
  const upstream = await startUpstream((request, response, count) => script(response, count, request));
  closers.push(() => upstream.close());
  const gateway = await startGateway({
    plugins: [continuation({ pause: 10, ...plugin })],
    channels: [
      anthropic({
        key: 'sk-upstream',
        baseUrl: `${upstream.url}/v1`,
        models: { old: 'claude-sonnet-4-5', new: 'claude-sonnet-4-6' },
        ...options,
      }),
    ],
    prices: { old: { input: 1, output: 10 } },
    health: { enabled: false },
    routing: { attempts: 1 },
  });
  closers.push(() => gateway.close());
  return {
    gateway,
    upstream,
    bodies: () => upstream.requests.map(({ body }) => JSON.parse(body.toString()) as Json),
  };
}

const sendCall = (
  { gateway }: Stage,
  format: FormatName = 'messages',
  change: Json = {},
  model = 'old',
): Promise<Answer> =>
  call(gateway, format, model, true, { body: { ...voices[format].body(model, true), ...change } });

/** The line that tells of the call's end. */
async function ended({ gateway }: Stage): Promise<Json> {
  return eventually(() => {
    const line = gateway.lines.find(({ msg }) =>
      /^a (call (was answered|failed)|client left its call)/.test(String(msg)),
    );
    if (line === undefined) throw new Error('The call has not ended.');
    return line;
  });
}

const usageOf = async (one: Stage): Promise<Json> => (await ended(one)).usage as Json;

const legal = {
  'chat-completions': legalChat,
  messages: legalMessages,
  'generate-content': legalContent,
};

const framesOf = ({ text }: Answer): WireFrame[] =>
  parseSse(text).map(({ event, data }) => ({
    ...(event === undefined ? {} : { event }),
    ...(data === '[DONE]' ? { text: data } : { json: JSON.parse(data) as JsonObject }),
  }));

describe('a stream that breaks in the middle of its text', () => {
  const script: Script = (response, count) => {
    if (count === 1) breaks(response, start, opened(), textDelta('Hello, '), textDelta('wor'));
    else answers(response, start, opened(), textDelta('ld'), textDelta('!'), closed(), finished(3));
  };

  test.each<FormatName>(['messages', 'chat-completions', 'generate-content'])(
    'is one stream to its end for a client of %s',
    async (format) => {
      const one = await stage(script);
      const answer = await sendCall(one, format);
      expect(answer.status).toBe(200);
      expect(answer.headers['x-sluice-continuation']).toBe('2');
      const { text, complete, error, models } = read(format, true, answer);
      expect({ text, complete, error }).toEqual({ text: 'Hello, world!', complete: true, error: undefined });
      expect(new Set(models)).toEqual(new Set(['old']));
      expect(legal[format](framesOf(answer))).toEqual([]);
    },
  );

  test('is one stream of the Responses API, with one message', async () => {
    const one = await stage(script);
    const answer = await fetchRaw(one.gateway, '/v1/responses', {
      body: { model: 'old', input: 'hi', stream: true },
    });
    const sent = parseSse(answer.text);
    expect(sent.pop()?.data).toBe('[DONE]');
    const frames = sent.map(({ data }) => JSON.parse(data) as Json);
    const types = frames.map(({ type }) => type);
    expect(types.filter((type) => type === 'response.output_item.added')).toHaveLength(1);
    expect(types.at(-1)).toBe('response.completed');
    expect(frames.at(-1)).toMatchObject({
      response: {
        status: 'completed',
        output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hello, world!' }] }],
        usage: { input_tokens: 20 },
      },
    });
    // What was kept of it is the whole answer.
    const { id } = (frames.at(-1)?.response ?? {}) as { id?: string };
    const kept = await fetchRaw(one.gateway, `/v1/responses/${id}`);
    expect(kept.text).toContain('Hello, world!');
  });

  test('has one head, one block and one end', async () => {
    const one = await stage(script);
    const types = parseSse((await sendCall(one)).text).map(({ event }) => event);
    expect(types).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_delta',
      'content_block_delta',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
  });

  test('asks for the rest with what was said as the last turn, and leaves the request as it was', async () => {
    const one = await stage(script);
    await sendCall(one, 'messages', { temperature: 0.3, system: 'Be kind.' });
    const [first, second] = one.bodies();
    expect(second).toEqual({
      ...first,
      max_tokens: 97,
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'Hello, wor' },
      ],
    });
  });

  test('is charged for all its parts, and told of in log and record', async () => {
    const one = await stage(script);
    await sendCall(one);
    const line = await ended(one);
    // 10 told twice; 1 told and 10 bytes said of the first part, 3 of the second.
    expect(line).toMatchObject({
      ended: 'complete',
      usage: { input: 20, output: 7, estimated: true },
      failedAttempts: ['anthropic: upstream_cut'],
    });
    expect(one.gateway.lines).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        plugin: 'continuation',
        channel: 'anthropic',
        code: 'upstream_cut',
        request: 1,
      }),
    );
    const records = await eventually(async () => {
      const page = await openUsageLog(one.gateway.stores).page({}, 10);
      expect(page.records).toHaveLength(1);
      return page.records;
    });
    expect(records[0]).toMatchObject({
      ended: 'complete',
      input: 20,
      output: 7,
      microDollars: 90,
      attempts: [{ channel: 'anthropic', model: 'claude-sonnet-4-5', failure: 'upstream_cut' }],
    });
  });

  test('goes on after an error that the provider sends in the stream', async () => {
    const one = await stage((response, count) => {
      if (count === 1) answers(response, start, opened(), textDelta('Hel'), overloaded);
      else answers(response, start, opened(), textDelta('lo'), closed(), finished(1));
    });
    expect(read('messages', true, await sendCall(one))).toMatchObject({ text: 'Hello', complete: true });
  });

  test('goes on more than once, and adds up', async () => {
    const one = await stage((response, count) => {
      if (count === 1) breaks(response, start, opened(), textDelta('one '));
      else if (count === 2) breaks(response, start, opened(), textDelta('two '));
      else answers(response, start, opened(), textDelta('three'), closed(), finished(4));
    });
    const { text, complete } = read('messages', true, await sendCall(one));
    expect({ text, complete }).toEqual({ text: 'one two three', complete: true });
    expect(one.bodies()[2]?.messages).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'one two' },
    ]);
    expect(await usageOf(one)).toMatchObject({ input: 30, output: 8 });
  });

  test('is tried again when the request for the rest fails, and ends with the first error when that goes on', async () => {
    const one = await stage((response, count) => {
      if (count === 1) breaks(response, start, opened(), textDelta('Hello'));
      else response.writeHead(529, { 'content-type': 'application/json' }).end(overloadedBody);
    });
    const answer = await sendCall(one);
    const { text, complete, error } = read('messages', true, answer);
    expect({ text, complete }).toEqual({ text: 'Hello', complete: false });
    expect(JSON.stringify(error)).toContain('closed the connection before the response was complete');
    expect(one.upstream.requests).toHaveLength(3);
    expect(await ended(one)).toMatchObject({ ended: 'error', code: 'upstream_cut' });
  });

  test('is not tried again when the provider refuses the request for the rest', async () => {
    const one = await stage((response, count) => {
      if (count === 1) breaks(response, start, opened(), textDelta('Hello'));
      else
        response
          .writeHead(400, { 'content-type': 'application/json' })
          .end('{"type":"error","error":{"type":"invalid_request_error","message":"no prefill"}}');
    });
    const { complete, error } = read('messages', true, await sendCall(one));
    expect(complete).toBe(false);
    expect(JSON.stringify(error)).not.toContain('prefill');
    expect(one.upstream.requests).toHaveLength(2);
  });

  test('is left to break after so many requests', async () => {
    const one = await stage(
      (response) => breaks(response, start, opened(), textDelta('again ')),
      {},
      { most: 3 },
    );
    const answer = await sendCall(one);
    expect(answer.headers['x-sluice-continuation']).toBe('3');
    expect(read('messages', true, answer)).toMatchObject({
      text: 'again again again again ',
      complete: false,
    });
    expect(one.upstream.requests).toHaveLength(4);
    const { failedAttempts } = await ended(one);
    expect(failedAttempts).toHaveLength(1);
  });
});

const overloadedBody = '{"type":"error","error":{"type":"overloaded_error","message":"Try later."}}';

describe('where the text broke off', () => {
  test.each([
    ['a blank is not said twice', 'Hello, ', ' world', 'Hello, world'],
    ['a blank that the model leaves out stays', 'Hello, ', 'world', 'Hello, world'],
    ['only what was said is left out', 'a\n', '\n\nb', 'a\n\nb'],
    ['all of it is left out', 'a \n ', ' \n b', 'a \n b'],
    ['nothing but blanks is nothing', '  ', '  hi', '  hi'],
    ['signs of several bytes are whole', 'héllo 😀', '!', 'héllo 😀!'],
  ])('%s', async (_, before, after, whole) => {
    const one = await stage((response, count) => {
      if (count === 1) breaks(response, start, opened(), textDelta(before));
      else answers(response, start, opened(), textDelta(after), closed(), finished(1));
    });
    expect(read('messages', true, await sendCall(one)).text).toBe(whole);
    const messages = one.bodies()[1]?.messages as Json[] | undefined;
    const last = messages?.at(-1);
    if (before.trim() === '') expect(last).toMatchObject({ role: 'user' });
    else expect(last).toEqual({ role: 'assistant', content: before.trimEnd() });
  });

  test('nothing was said: it is a failure like any other, and nothing is gone on with', async () => {
    const one = await stage((response) => breaks(response, start));
    const answer = await sendCall(one);
    expect(answer.status).toBe(502);
    expect(one.bodies()).toHaveLength(1);
  });

  test('the text was complete, and only its end was missing', async () => {
    const one = await stage((response, count) => {
      if (count === 1) breaks(response, start, opened(), textDelta('Hello.'), closed());
      else answers(response, start, finished(1));
    });
    const answer = await sendCall(one);
    expect(read('messages', true, answer)).toMatchObject({ text: 'Hello.', complete: true });
    const events = parseSse(answer.text).map(({ event }) => event);
    expect(events.filter((event) => event === 'content_block_stop')).toHaveLength(1);
  });

  test('the rest has nothing to say', async () => {
    const one = await stage((response, count) => {
      if (count === 1) breaks(response, start, opened(), textDelta('Hello.'));
      else answers(response, start, finished(1));
    });
    const answer = await sendCall(one);
    expect(parseSse(answer.text).map(({ event }) => event)).toEqual([
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
  });

  test('the rest calls a tool', async () => {
    const tool = [
      named({
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
      }),
      named({
        type: 'content_block_delta',
        index: 0,
        delta: { type: 'input_json_delta', partial_json: '{"a":1}' },
      }),
      closed(),
      named({
        type: 'message_delta',
        delta: { stop_reason: 'tool_use', stop_sequence: null },
        usage: { output_tokens: 9 },
      }),
      named({ type: 'message_stop' }),
    ];
    const one = await stage((response, count) => {
      if (count === 1) breaks(response, start, opened(), textDelta('Let me look.'));
      else answers(response, start, ...tool);
    });
    const tools = [{ name: 'look', input_schema: { type: 'object' } }];
    const frames = parseSse((await sendCall(one, 'messages', { tools })).text).map(
      ({ data }) => JSON.parse(data) as Json,
    );
    const blocks = frames.filter(({ type }) => /content_block_(start|stop)/.test(String(type)));
    expect(blocks.map(({ type, index }) => [type, index])).toEqual([
      ['content_block_start', 0],
      ['content_block_stop', 0],
      ['content_block_start', 1],
      ['content_block_stop', 1],
    ]);
    expect(frames.at(-2)).toMatchObject({ delta: { stop_reason: 'tool_use' } });
  });

  test('the client had begun the answer itself', async () => {
    const one = await stage((response, count) => {
      if (count === 1) breaks(response, start, opened(), textDelta(' two'));
      else answers(response, start, opened(), textDelta(' three'), closed(), finished(1));
    });
    const messages = [
      { role: 'user', content: 'count' },
      { role: 'assistant', content: 'one' },
    ];
    expect(read('messages', true, await sendCall(one, 'messages', { messages })).text).toBe(' two three');
    expect(one.bodies()[1]?.messages).toEqual([
      { role: 'user', content: 'count' },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'one' },
          { type: 'text', text: ' two' },
        ],
      },
    ]);
  });
});

describe('what cannot be gone on from ends with the error', () => {
  const broken = async (
    frames: readonly string[],
    change: Json = {},
    model = 'old',
  ): Promise<{ readonly one: Stage; readonly answer: Answer }> => {
    const one = await stage((response) => breaks(response, ...frames));
    const answer = await sendCall(one, 'messages', change, model);
    expect(answer.status).toBe(200);
    expect(read('messages', true, answer).complete).toBe(false);
    expect(one.upstream.requests).toHaveLength(1);
    return { one, answer };
  };

  test.each<[string, readonly string[]]>([
    [
      'a call of a tool',
      [
        opened(),
        textDelta('Look: '),
        closed(),
        named({
          type: 'content_block_start',
          index: 1,
          content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
        }),
      ],
    ],
    [
      'reasoning',
      [
        named({
          type: 'content_block_start',
          index: 0,
          content_block: { type: 'thinking', thinking: '', signature: '' },
        }),
        named({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'well' } }),
      ],
    ],
    [
      'what only one format knows',
      [
        named({
          type: 'content_block_start',
          index: 0,
          content_block: { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
        }),
        closed(),
        opened(1),
        textDelta('found', 1),
      ],
    ],
    [
      'a text that was all said',
      [
        opened(),
        textDelta('done'),
        closed(),
        named({
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { output_tokens: 2 },
        }),
      ],
    ],
  ])('%s', async (_, frames) => {
    const { one } = await broken([start, ...frames]);
    expect(await ended(one)).toMatchObject({ ended: 'error', code: 'upstream_cut' });
  });

  test('an answer of a model that takes no beginning, which passes through', async () => {
    const { one, answer } = await broken([start, opened(), textDelta('a')], {}, 'new');
    expect(answer.headers).not.toHaveProperty('x-sluice-continuation');
    expect(await ended(one)).toMatchObject({ passThrough: true });
  });

  test.each<[string, Json]>([
    ['one that shall think', { thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 4000 }],
    [
      'one that shall have a shape',
      {
        output_config: {
          format: { type: 'json_schema', schema: { type: 'object', additionalProperties: false } },
        },
      },
    ],
  ])('%s', async (_, change) => {
    const { answer } = await broken([start, opened(), textDelta('a')], change);
    expect(answer.headers).not.toHaveProperty('x-sluice-continuation');
  });

  test('an error that no further request would mend', async () => {
    const one = await stage((response) =>
      breaks(
        response,
        start,
        opened(),
        textDelta('a'),
        named({ type: 'error', error: { type: 'invalid_request_error', message: 'no' } }),
      ),
    );
    expect(read('messages', true, await sendCall(one)).complete).toBe(false);
    expect(one.upstream.requests).toHaveLength(1);
  });

  test('a whole answer', async () => {
    const one = await stage((response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
      response.write('{"id":"msg_1",', () => setTimeout(() => response.destroy(), 20));
    });
    const answer = await call(one.gateway, 'messages', 'old', false);
    expect(answer.headers).not.toHaveProperty('x-sluice-continuation');
    expect(one.upstream.requests).toHaveLength(1);
  });

  test('everything, where the operator has not listed the plugin', async () => {
    const upstream = await startUpstream((_, response) => breaks(response, start, opened(), textDelta('a')));
    closers.push(() => upstream.close());
    const gateway = await startGateway({
      channels: [anthropic({ key: 'k', baseUrl: `${upstream.url}/v1`, models: ['claude-sonnet-4-5'] })],
    });
    closers.push(() => gateway.close());
    const answer = await call(gateway, 'messages', 'claude-sonnet-4-5', true);
    expect(read('messages', true, answer)).toMatchObject({ text: 'a', complete: false });
    expect(upstream.requests).toHaveLength(1);
  });
});

test('a provider of the chat format is told that the turn is a beginning', async () => {
  const voice = voices['chat-completions'];
  const upstream = await startUpstream((_, response, count) => {
    const frames = voice.frames(count === 1 ? ['Hel'] : ['lo']);
    if (count === 1) breaks(response, ...frames.slice(0, 2));
    else answers(response, ...frames);
  });
  closers.push(() => upstream.close());
  const gateway = await startGateway({
    plugins: [continuation({ pause: 10 })],
    channels: [mistral({ key: 'k', baseUrl: `${upstream.url}/v1`, models: ['mistral-small'] })],
  });
  closers.push(() => gateway.close());
  const answer = await call(gateway, 'chat-completions', 'mistral-small', true);
  expect(read('chat-completions', true, answer)).toMatchObject({ text: 'Hello', complete: true });
  const body = JSON.parse(upstream.requests[1]?.body.toString() ?? '') as Json;
  expect(body.messages).toEqual([
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'Hel', prefix: true },
  ]);
});

test('a client that leaves meanwhile ends what follows', async () => {
  const one = await stage((response, count) => {
    if (count === 1) breaks(response, start, opened(), textDelta('Hello'));
    else
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(start + opened() + textDelta(' w'));
  });
  const voice = voices.messages;
  const request = send(new URL(voice.path('old', true), one.gateway.url), {
    method: 'POST',
    agent: false,
    headers: { ...voice.headers, 'content-type': 'application/json', 'x-api-key': one.gateway.key },
  });
  request.on('error', () => {});
  request.on('response', (response) => response.on('error', () => {}).resume());
  request.end(JSON.stringify(voice.body('old', true)));
  await eventually(() => expect(one.upstream.requests).toHaveLength(2));
  request.destroy();
  await one.upstream.requests[1]?.closed;
  expect(await ended(one)).toMatchObject({ ended: 'left' });
  expect(await usageOf(one)).toMatchObject({ input: 20 });
});

test('a provider that breaks in the middle is known to fail, although its answers are completed', async () => {
  const upstream = await startUpstream((_, response, count) => {
    if (count === 1) breaks(response, start, opened(), textDelta('Hel'));
    else answers(response, start, opened(), textDelta('lo'), closed(), finished(1));
  });
  closers.push(() => upstream.close());
  const gateway = await startGateway({
    plugins: [continuation({ pause: 10 })],
    channels: [anthropic({ key: 'k', baseUrl: `${upstream.url}/v1`, models: ['claude-sonnet-4-5'] })],
    health: { failures: 1 },
  });
  closers.push(() => gateway.close());
  const answer = await call(gateway, 'messages', 'claude-sonnet-4-5', true);
  expect(read('messages', true, answer)).toMatchObject({ text: 'Hello', complete: true });
  expect(gateway.lines).toContainEqual(
    expect.objectContaining({ channel: 'anthropic', msg: 'circuit breaker of a channel opened' }),
  );
});
