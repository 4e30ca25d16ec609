import { concatMap, from } from 'rxjs';
import { afterEach, describe, expect, test } from 'vitest';
import { defineChannel, jsonLines, type GatewayEvent, type JsonObject } from 'sluice';
import { startUpstream, type ScriptedUpstream } from 'sluice/testing';
import demo from '../../../channels/demo/index.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

const delta = (text: string): GatewayEvent => ({ type: 'text-delta', block: 0, choice: 0, text });
const finish: GatewayEvent = { type: 'finish', choice: 0, reason: 'stop' };

/** A channel for a server that answers in lines of JSON. */
const lines = defineChannel({
  name: 'lines',
  needsKey: false,
  models: ['lines'],
  setup: ({ baseUrl = '' }, { http }) => ({
    traits: () => ({ reasoning: 'none', refuses: ['seed'] }),
    answer: (call, { model, key = '', body }) =>
      jsonLines(
        http.send(call, {
          url: `${baseUrl}/generate`,
          headers: { 'content-type': 'application/json', 'x-key': key },
          body: JSON.stringify({ model, ...body }),
        }),
        4096,
      ).pipe(concatMap(eventsOfLine)),
  }),
});

function eventsOfLine(line: JsonObject): readonly GatewayEvent[] {
  if (typeof line['thought'] === 'string')
    return [{ type: 'reasoning-delta', block: 0, choice: 0, text: line['thought'] }];
  if (typeof line['tool'] === 'string')
    return [
      { type: 'tool-start', block: 0, choice: 0, id: 'call_1', name: line['tool'] },
      { type: 'tool-delta', block: 0, choice: 0, input: '{"city":' },
      { type: 'tool-delta', block: 0, choice: 0, input: '"Rome"}' },
      { type: 'finish', choice: 0, reason: 'tool-calls' },
    ];
  if (typeof line['text'] === 'string') return [delta(line['text'])];
  return [
    { type: 'usage', usage: { input: 3, output: 5, cacheRead: 0, cacheWrite: 0, reasoning: 0 } },
    finish,
  ];
}

let gateway: TestGateway;
let provider: ScriptedUpstream;

afterEach(async () => {
  await gateway.close();
  await provider.close();
});

const answer = '{"thought":"hm"}\n{"text":"Hel"}\n\n{"text":"lo ✓"}\n{"done":true}';

/** Starts a provider with this script, and a gateway with its channel before `more`. */
async function begin(
  script: Parameters<typeof startUpstream>[0],
  options: Parameters<typeof lines>[0] = {},
  more: readonly ReturnType<typeof demo>[] = [],
): Promise<void> {
  provider = await startUpstream(script);
  gateway = await startGateway({
    channels: [lines({ baseUrl: provider.url, priority: 1, ...options }), ...more],
  });
}

function post(path: string, body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.key}`,
      'anthropic-version': '2023-06-01',
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

const messages = [{ role: 'user', content: 'Hi' }];
const chat = (more: object = {}, signal?: AbortSignal): Promise<Response> =>
  post('/v1/chat/completions', { model: 'lines', messages, ...more }, signal);

describe('a channel that answers in events', () => {
  test('serves whole replies to clients of every chat format', async () => {
    await begin((_request, response) => void response.end(answer));
    const completion = await (await chat()).json();
    expect(completion).toMatchObject({
      model: 'lines',
      choices: [{ message: { content: 'Hello ✓', reasoning_content: 'hm' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 3, completion_tokens: 5 },
    });
    expect(
      await (await post('/v1/messages', { model: 'lines', max_tokens: 50, messages })).json(),
    ).toMatchObject({
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: 'Hello ✓' },
      ],
      stop_reason: 'end_turn',
    });
    const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
    expect(await (await post('/v1beta/models/lines:generateContent', { contents })).json()).toMatchObject({
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 5 },
    });
    expect(await (await post('/v1/responses', { model: 'lines', input: 'Hi' })).json()).toMatchObject({
      status: 'completed',
    });
  });

  test('serves streams, however the lines are cut', async () => {
    await begin(async (_request, response) => {
      for (const byte of Buffer.from(answer)) {
        response.write(Buffer.of(byte));
        // oxlint-disable-next-line no-await-in-loop -- each byte comes by itself
        await new Promise((resolve) => setImmediate(resolve));
      }
      response.end();
    });
    const text = await (await chat({ stream: true, stream_options: { include_usage: true } })).text();
    const chunks = text
      .split('\n\n')
      .filter((frame) => frame.startsWith('data: {'))
      .map(
        (frame) => JSON.parse(frame.slice('data: '.length)) as { choices: { delta: { content?: string } }[] },
      );
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Hello ✓');
    expect(text).toContain('"finish_reason":"stop"');
    expect(text).toContain('"prompt_tokens":3');
    expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
  });

  test('sends calls of tools', async () => {
    await begin((_request, response) => void response.end('{"text":"I look."}\n{"tool":"weather"}\n'));
    const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }];
    expect(await (await chat({ tools })).json()).toMatchObject({
      choices: [
        {
          message: {
            content: 'I look.',
            tool_calls: [{ id: 'call_1', function: { name: 'weather', arguments: '{"city":"Rome"}' } }],
          },
          finish_reason: 'tool_calls',
        },
      ],
    });
    const [seen] = provider.requests;
    expect(JSON.parse(String(seen?.body))).toMatchObject({ model: 'lines', messages, tools });
  });

  test('drops what the model refuses, names it, and gets its keys in turn', async () => {
    await begin((_request, response) => void response.end(answer), { keys: ['one', 'two'] });
    const first = await chat({ seed: 7 });
    expect(first.headers.get('x-sluice-loss')).toBe('seed');
    await first.text();
    await (await chat()).text();
    expect(JSON.parse(String(provider.requests[0]?.body))).not.toHaveProperty('seed');
    expect(new Set(provider.requests.map(({ headers }) => headers['x-key']))).toEqual(
      new Set(['one', 'two']),
    );
    expect((await chat({ seed: 7, stream: false })).status).toBe(200);
  });

  test('passes a refusal of the provider on', async () => {
    await begin(
      (_request, response) =>
        void response
          .writeHead(429, { 'retry-after': '7', 'content-type': 'application/json' })
          .end('{"error":{"message":"Too many."}}'),
    );
    const refused = await chat();
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('7');
    expect(await refused.text()).toContain('Too many.');
  });

  test.each([
    ['ends before it has said anything', (): string => ''],
    ['sends something that is no JSON', (): string => '<html>'],
    ['sends a list', (): string => '[]'],
    ['sends a line that is too long', (): string => `{"text":"${'x'.repeat(5000)}"}\n`],
    ['says only that it thinks', (): string => '{"text":""}\n'],
  ])('is left for the next channel when its provider %s', async (_what, body) => {
    await begin((_request, response) => void response.end(body()), {}, [demo({ models: { lines: 'demo' } })]);
    const reply = await chat();
    expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining('You said: Hi')]);
  });

  test('ends a stream with an error when its provider stops in the middle', async () => {
    await begin((_request, response) => void response.end('{"text":"Hel"}\n'));
    const text = await (await chat({ stream: true })).text();
    expect(text).toContain('Hel');
    expect(text).toContain('"error"');
    expect(text).not.toContain('[DONE]');
  });

  test('lets go of its provider when the client leaves', async () => {
    await begin((_request, response) => void response.write('{"text":"Hel"}\n'));
    const leaving = new AbortController();
    const reply = await chat({ stream: true }, leaving.signal);
    await reply.body?.getReader().read();
    leaving.abort();
    await provider.requests[0]?.closed;
    await eventually(() => expect(gateway.lines.some(({ ended }) => ended === 'left')).toBe(true));
  });

  test('may answer by an async generator, which ends when the client leaves', async () => {
    let hasEnded = false;
    const endless = defineChannel({
      name: 'endless',
      needsKey: false,
      models: ['endless'],
      setup: () => ({
        async *answer() {
          try {
            for (;;) {
              yield delta('again ');
              // oxlint-disable-next-line no-await-in-loop -- one word after the other
              await new Promise((resolve) => setTimeout(resolve, 5));
            }
          } finally {
            hasEnded = true;
          }
        },
      }),
    });
    provider = await startUpstream(() => {});
    gateway = await startGateway({ channels: [endless()] });
    const leaving = new AbortController();
    const reply = await post(
      '/v1/chat/completions',
      { model: 'endless', messages, stream: true },
      leaving.signal,
    );
    await reply.body?.getReader().read();
    leaving.abort();
    await eventually(() => expect(hasEnded).toBe(true));
  });

  test('is the provider’s failure when it throws, and the log says why', async () => {
    const broken = defineChannel({
      name: 'broken',
      needsKey: false,
      models: ['broken', 'wrong'],
      setup: () => ({
        answer(_call, { model }) {
          if (model === 'broken') throw new TypeError('no such thing');
          return from<GatewayEvent[]>([{ type: 'tool-delta', block: 0, choice: 0, input: '{}' }, finish]);
        },
      }),
    });
    provider = await startUpstream(() => {});
    gateway = await startGateway({ channels: [broken()] });
    for (const model of ['broken', 'wrong']) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      const reply = await post('/v1/chat/completions', { model, messages });
      expect(reply.status).toBe(502);
    }
    expect(JSON.stringify(gateway.lines)).toContain('no such thing');
  });
});
