/* oxlint-disable vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, fetchRaw, formatNames, read, readError, voices, type Answer, type Voice } from './_wire.ts';

const words = ['ein', ' "Wort"\n', ' 😀'];
const text = words.join('');
const content = voices['generate-content'];

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let behaviour: (response: ServerResponse, voice: Voice) => void | Promise<void>;

beforeAll(async () => {
  upstream = await startUpstream((request, response) =>
    behaviour(
      response,
      voices[
        request.url.includes('/chat/')
          ? 'chat-completions'
          : request.url.includes('/messages')
            ? 'messages'
            : 'generate-content'
      ],
    ),
  );
  gateway = await startGateway({
    channels: formatNames.map((name) => voices[name].channel(upstream.url)),
    // The provider breaks off in many of the tests: none is about what follows from that.
    health: { enabled: false },
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

interface Framing {
  readonly name: string;
  readonly query: string;
  readonly headers?: Record<string, string>;
  readonly type: string;
  values(text: string): unknown[];
}
const framings: Framing[] = [
  {
    name: 'server-sent events',
    query: '?alt=sse',
    type: 'text/event-stream',
    values: (body) => parseSse(body).map(({ data }) => JSON.parse(data) as unknown),
  },
  {
    name: 'server-sent events by the Accept header',
    query: '',
    headers: { accept: 'text/event-stream' },
    type: 'text/event-stream',
    values: (body) => parseSse(body).map(({ data }) => JSON.parse(data) as unknown),
  },
  {
    name: 'lines',
    query: '',
    type: 'application/x-ndjson',
    values: (body) =>
      body
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as unknown),
  },
  {
    name: 'an array',
    query: '?alt=json',
    type: 'application/json',
    values: (body) => JSON.parse(body) as unknown[],
  },
];

describe.each(formatNames)('a generateContent stream from a %s channel', (channel) => {
  const { model } = voices[channel];

  describe.each(framings)('as $name', ({ query, headers, type, values }) => {
    const sendCall = (name = model): Promise<Answer> =>
      fetchRaw(gateway, `/v1beta/models/${name}:streamGenerateContent${query}`, {
        body: content.body(model, true),
        headers: headers ?? {},
      });
    const readAnswer = (answer: Answer) =>
      content.readFrames(values(answer.text).map((value) => ({ data: JSON.stringify(value) })));

    test('arrives whole', async () => {
      behaviour = (response, voice) =>
        void response
          .writeHead(200, { 'content-type': 'text/event-stream' })
          .end(voice.frames(words).join(''));
      const answer = await sendCall();
      expect(answer.status, answer.text).toBe(200);
      expect(answer.headers['content-type']).toBe(type);
      expect(readAnswer(answer)).toMatchObject({ text, complete: true, error: undefined });
    });

    test('carries the client’s model name', async () => {
      behaviour = (response, voice) => void response.writeHead(200).end(voice.frames(words).join(''));
      expect(new Set(readAnswer(await sendCall()).models)).toEqual(new Set([model]));
    });

    test('that fails at once is a plain error', async () => {
      behaviour = (response, voice) => void response.writeHead(200).end(voice.errorFrame('overloaded'));
      const answer = await sendCall();
      expect(readError('generate-content', answer).status).toBe(503);
    });

    test('that breaks ends with the error in its own framing', async () => {
      behaviour = async (response, voice) => {
        response.writeHead(200).write(voice.frames(words).slice(0, -voice.ending).join(''));
        await new Promise((resolve) => setTimeout(resolve, 20));
        response.socket?.destroy();
      };
      const answer = await sendCall();
      expect(answer.status).toBe(200);
      expect(answer.ended).toBe(true);
      const reply = readAnswer(answer);
      expect(reply).toMatchObject({ text, complete: false });
      expect(content.isEnvelope(reply.error ?? {}, 502)).toBe(true);
      expect((values(answer.text).at(-1) as { error: unknown }).error).toBeDefined();
    });

    test('that was refused is a plain error', async () => {
      const answer = await sendCall('no-such-model');
      expect(readError('generate-content', answer).status).toBe(503);
    });
  });
});

describe('a generateContent provider that frames its stream in another way', () => {
  const chunks = (): string[] => parseSse(content.frames(words).join('')).map(({ data }) => data);
  const shapes: [string, () => string, string][] = [
    ['an array', () => `[${chunks().join(',\n')}]`, 'application/json'],
    [
      'a pretty array',
      () =>
        JSON.stringify(
          chunks().map((chunk) => JSON.parse(chunk) as unknown),
          null,
          2,
        ),
      'application/json',
    ],
    [
      'lines',
      () =>
        chunks()
          .map((chunk) => `${chunk}\n`)
          .join(''),
      'application/x-ndjson',
    ],
    ['one object', () => JSON.stringify(content.whole(text)), 'application/json'],
  ];
  describe.each(shapes)('%s', (_name, make, type) => {
    test.each(formatNames)('is read for a %s client', async (client) => {
      behaviour = async (response) => {
        response.writeHead(200, { 'content-type': type });
        const bytes = Buffer.from(make());
        for (let at = 0; at < bytes.length; at += 37) {
          response.write(bytes.subarray(at, at + 37));
          await new Promise(setImmediate);
        }
        response.end();
      };
      const answer = await call(gateway, client, content.model, true);
      expect(answer.status, answer.text).toBe(200);
      expect(read(client, true, answer)).toMatchObject({ text, complete: true });
    });

    test.each(formatNames)('that is cut is an error for a %s client', async (client) => {
      behaviour = (response) =>
        void response.writeHead(200, { 'content-type': type }).end(make().slice(0, -120));
      const answer = await call(gateway, client, content.model, true);
      if (answer.status === 200)
        expect(read(client, true, answer)).toMatchObject({
          complete: false,
          error: expect.anything() as unknown,
        });
      else expect(readError(client, answer).status).toBe(502);
    });
  });
});

test.each(['media', 'proto', 'xml', ''])('alt=%s is a 400, or nothing special when empty', async (alt) => {
  behaviour = (response, voice) => void response.writeHead(200).end(voice.frames(words).join(''));
  const answer = await fetchRaw(gateway, `/v1beta/models/${content.model}:streamGenerateContent?alt=${alt}`, {
    body: content.body(content.model, true),
  });
  if (alt === '') expect([200, 400]).toContain(answer.status);
  else expect(readError('generate-content', answer).status).toBe(400);
});

test('the same paths are served under /v1', async () => {
  behaviour = (response, voice) => void response.writeHead(200).end(voice.frames(words).join(''));
  const answer = await fetchRaw(gateway, `/v1/models/${content.model}:streamGenerateContent?alt=sse`, {
    body: content.body(content.model, true),
  });
  expect(read('generate-content', true, answer)).toMatchObject({ text, complete: true });
});
