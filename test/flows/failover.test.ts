/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { request as send, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, formatNames, read, readError, voices, type FormatName, type Voice } from './_wire.ts';

type Behaviour = (response: ServerResponse, voice: Voice) => void;

const words = ['it', ' works'];
let first: ScriptedUpstream;
let second: ScriptedUpstream;
let onFirst: Behaviour;
let onSecond: Behaviour;
let gateway: TestGateway;

const json = { 'content-type': 'application/json' };
const stream = { 'content-type': 'text/event-stream' };
const answers: Behaviour = (response, voice) =>
  void response.writeHead(200, stream).end(voice.frames(words).join(''));
const voiceOf = (url: string): Voice =>
  voices[
    url.includes('/chat/') ? 'chat-completions' : url.includes('/messages') ? 'messages' : 'generate-content'
  ];

beforeAll(async () => {
  first = await startUpstream((request, response) => onFirst(response, voiceOf(request.url)));
  second = await startUpstream((request, response) => onSecond(response, voiceOf(request.url)));
  const channels = formatNames.flatMap((before) =>
    formatNames.map((after) => [
      voices[before].channel(first.url, {
        id: `first-${before}-${after}`,
        models: [`${before}-${after}`],
        priority: 1,
      }),
      // Given up so soon only where it says nothing at all: a machine that stands still for a moment looks the same.
      voices[before].channel(first.url, {
        id: `silent-${before}-${after}`,
        models: [`silent-${before}-${after}`],
        priority: 1,
        timeouts: { idle: 400 },
      }),
      voices[after].channel(second.url, {
        id: `second-${before}-${after}`,
        models: {
          [`${before}-${after}`]: 'another-name',
          [`silent-${before}-${after}`]: 'another-name',
        },
      }),
    ]),
  );
  // What fails in one test must not rest in the next.
  gateway = await startGateway({
    channels: channels.flat(),
    health: { enabled: false },
  });
});
afterAll(async () => {
  await gateway.close();
  await first.close();
  await second.close();
});
beforeEach(async () => {
  await gateway.forgetLines();
  first.requests.length = 0;
  second.requests.length = 0;
  onSecond = answers;
});

const logged = async (): Promise<Record<string, unknown> | undefined> => {
  await expect.poll(() => gateway.lines.some(({ plugin }) => plugin === 'logging')).toBe(true);
  return gateway.lines.findLast(({ plugin }) => plugin === 'logging');
};

/** The second channel answers, and the client sees nothing of the first, which failed. */
async function expectSecond(client: FormatName, model: string, failed: string): Promise<void> {
  const answer = await call(gateway, client, model, true);
  expect(answer.status, answer.text).toBe(200);
  expect(read(client, true, answer)).toMatchObject({ text: 'it works', complete: true, error: undefined });
  expect(answer.text).not.toContain('busy');
  expect(first.requests).toHaveLength(1);
  expect(second.requests).toHaveLength(1);
  expect(await logged()).toMatchObject({
    ended: 'complete',
    channel: failed.replace(/^[^-]+/, 'second'),
    failedAttempts: [expect.stringContaining(failed)],
  });
}

const pairs = formatNames.flatMap((before) => formatNames.map((after) => [before, after] as const));

describe.each(formatNames)('a %s client', (client) => {
  describe.each(pairs)('with a %s channel first and a %s channel second', (before, after) => {
    const model = `${before}-${after}`;

    const early: [string, Behaviour][] = [
      ['hangs up', (response) => void response.socket?.destroy()],
      [
        'answers 429',
        (response) =>
          void response
            .writeHead(429, { ...json, 'retry-after': '5' })
            .end('{"error":{"message":"slow down"}}'),
      ],
      ['answers 500', (response) => void response.writeHead(500).end()],
      [
        'refuses the channel’s key',
        (response) => void response.writeHead(401, json).end('{"error":{"message":"no"}}'),
      ],
      [
        'does not know the model',
        (response) => void response.writeHead(404, json).end('{"error":{"message":"no such model"}}'),
      ],
      ['sends a web page', (response) => void response.writeHead(200).end('<html>')],
      ['sends nothing', (response) => void response.writeHead(200, stream).end()],
      [
        'sends an error event at once',
        (response, voice) => void response.writeHead(200, stream).end(voice.errorFrame('overloaded')),
      ],
      [
        'sends comments and then an error event',
        (response, voice) => {
          response
            .writeHead(200, stream)
            .write(': busy\n\n', () =>
              setTimeout(() => response.end(`: busy\n\n${voice.errorFrame('overloaded')}`), 5),
            );
        },
      ],
      [
        'is cut inside its first frame',
        (response, voice) => void response.writeHead(200, stream).end(voice.frames(words)[0]?.slice(0, 30)),
      ],
    ];
    test.each(early)('gets the second’s answer when the first %s', async (_what, script) => {
      onFirst = script;
      await expectSecond(client, model, `first-${model}`);
    });

    test('gets the second’s answer when the first says nothing', async () => {
      onFirst = () => {};
      await expectSecond(client, `silent-${model}`, `silent-${model}`);
    });

    test('is never given a second beginning once the first has said something', async () => {
      onFirst = (response, voice) =>
        void response
          .writeHead(200, stream)
          .end(voice.frames(words, model).slice(0, 4).join('') + voice.errorFrame('overloaded'));
      const answer = await call(gateway, client, model, true);
      expect(answer.status).toBe(200);
      const reply = read(client, true, answer);
      expect(reply.complete).toBe(false);
      expect(reply.error).toBeDefined();
      expect(reply.models.every((name) => name === model)).toBe(true);
      expect(second.requests).toHaveLength(0);
    });

    // Streams of generateContent have nothing that only opens them.
    test.skipIf(before === 'generate-content')(
      'gets the second’s answer when the first only opened one',
      async () => {
        onFirst = (response, voice) => {
          response.writeHead(200, stream);
          const [opening = ''] = voice.frames(['', ...words], model);
          response.write(opening, () => setTimeout(() => response.destroy(), 10));
        };
        const answer = await call(gateway, client, model, true);
        expect(read(client, true, answer)).toMatchObject({ complete: true, text: words.join('') });
        expect(second.requests).toHaveLength(1);
      },
    );

    test('keeps its own mistakes', async () => {
      onFirst = (response) =>
        void response
          .writeHead(400, json)
          .end('{"error":{"message":"bad field","type":"invalid_request_error"}}');
      const answer = await call(gateway, client, model, true);
      expect(readError(client, answer)).toEqual({ status: 400, message: 'bad field' });
      expect(second.requests).toHaveLength(0);
    });

    test('is told of the last failure when both fail, and of a limit only when both were limited', async () => {
      const limits =
        (seconds: string): Behaviour =>
        (response) =>
          void response
            .writeHead(429, { ...json, 'retry-after': seconds })
            .end('{"error":{"message":"slow down"}}');
      onFirst = (response) => void response.writeHead(500).end();
      onSecond = limits('5');
      expect(readError(client, await call(gateway, client, model, false)).status).toBe(502);
      expect(await logged()).toMatchObject({
        failedAttempts: [expect.stringContaining('first-'), expect.stringContaining('second-')],
      });
      onFirst = limits('3');
      const answer = await call(gateway, client, model, false);
      expect(readError(client, answer).status).toBe(429);
      expect(answer.headers['retry-after']).toBe('3');
    });
  });
});

test('a client that left while the first channel was silent is not served by the second', async () => {
  onFirst = () => {};
  const request = send(new URL('/v1/chat/completions', gateway.url), {
    method: 'POST',
    agent: false,
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
  });
  request.on('error', () => {});
  request.end(JSON.stringify(voices['chat-completions'].body('chat-completions-messages', true)));
  await expect.poll(() => first.requests.length).toBe(1);
  request.destroy();
  await first.requests[0]?.closed;
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(second.requests).toHaveLength(0);
});

test('the first channel’s request goes out in its own format and under its own model name', async () => {
  onFirst = (response) => void response.writeHead(503).end();
  for (const client of formatNames) {
    for (const [before, after] of pairs) {
      first.requests.length = 0;
      second.requests.length = 0;
      await call(gateway, client, `${before}-${after}`, false);
      const modelIn = (format: FormatName, seen: ScriptedUpstream): unknown =>
        format === 'generate-content'
          ? /models\/([^:]+):/.exec(seen.requests[0]?.url ?? '')?.[1]
          : (JSON.parse(seen.requests[0]?.body.toString() ?? '{}') as { model: unknown }).model;
      expect(modelIn(before, first)).toBe(`${before}-${after}`);
      expect(modelIn(after, second)).toBe('another-name');
    }
  }
});
