/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { patience } from '../support/patience.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import {
  call,
  formatNames,
  read,
  readError,
  voices,
  type Answer,
  type FormatName,
  type Voice,
} from './_wire.ts';

const words = ['Hello', ' wörld', ' 😀'];
const text = words.join('');
const json = { 'content-type': 'application/json' };
const stream = { 'content-type': 'text/event-stream' };

/** Handler of the provider's next request. `asStream`: true for a streamed request. */
type Behaviour = (
  response: ServerResponse,
  voice: Voice,
  asStream: boolean,
  request: SeenRequest,
) => void | Promise<void>;

let behaviour: Behaviour = () => {};
let upstream: ScriptedUpstream;
/** It waits for a provider as long as a busy machine may need. */
let gateway: TestGateway;
/** This one does not wait: only for providers of whom nothing comes in any case. */
let hasty: TestGateway;
/** Between the two: a reply must have begun before its silence can be too long. */
let brisk: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    const format = formatNames.find((name) =>
      request.url.includes(
        { 'chat-completions': '/chat/', messages: '/messages', 'generate-content': '/v1beta/' }[name],
      ),
    );
    const asStream = request.url.includes('stream') || /"stream":\s*true/.test(request.body.toString());
    return behaviour(response, voices[format ?? 'messages'], asStream, request);
  });
  const gatewayThatWaits = (idle: number): Promise<TestGateway> =>
    startGateway({
      // The provider fails in every test: none of them is about what follows from that.
      health: { enabled: false },
      channels: [
        ...formatNames.map((name) => voices[name].channel(upstream.url)),
        ...formatNames.map((name) =>
          voices[name].channel('http://127.0.0.1:1', { id: `refusing-${name}`, models: [`refused-${name}`] }),
        ),
      ],
      timeouts: { idle },
    });
  [gateway, hasty, brisk] = await Promise.all([
    gatewayThatWaits(patience.wait),
    gatewayThatWaits(300),
    gatewayThatWaits(1500),
  ]);
});
afterAll(async () => {
  for (const one of [gateway, hasty, brisk]) await one.close();
  await upstream.close();
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const wholeOf = (voice: Voice): string => JSON.stringify(voice.whole(text));

/** Client format × channel format. */
const pairs = formatNames.flatMap((client) =>
  formatNames.map(
    (channel) => [client, channel, client === channel ? 'pass-through' : 'translated'] as const,
  ),
);
const both = [
  ['stream', true],
  ['whole', false],
] as const;

/** Checks a response that failed before anything was sent. */
function expectRefusal(answer: Answer, client: FormatName, status: number): string {
  expect(answer.ended).toBe(true);
  expect(answer.status, answer.text).toBe(status);
  const { message } = readError(client, answer);
  expect(message).not.toMatch(/127\.0\.0\.1|localhost|sk-upstream|undici|ECONN|UND_ERR/i);
  return message;
}

describe.each(pairs)('%s client, %s channel (%s)', (client, channel) => {
  const { model } = voices[channel];

  describe.each(both)('%s', (_name, asStream) => {
    const sendCall = (): Promise<Answer> => call(gateway, client, model, asStream);

    test('an ordinary answer arrives whole', async () => {
      behaviour = (response, voice, streaming) => {
        response
          .writeHead(200, streaming ? stream : json)
          .end(streaming ? voice.frames(words).join('') : wholeOf(voice));
      };
      const answer = await sendCall();
      expect(answer.status, answer.text).toBe(200);
      expect(answer.ended).toBe(true);
      expect(read(client, asStream, answer)).toMatchObject({ text, complete: true, error: undefined });
    });

    const early: [string, number, Behaviour][] = [
      ['resets the connection', 502, (response) => void response.socket?.resetAndDestroy()],
      ['hangs up without a word', 502, (response) => void response.socket?.destroy()],
      [
        'answers 500',
        502,
        (response) =>
          void response.writeHead(500, json).end('{"error":{"message":"boom","type":"server_error"}}'),
      ],
      ['answers 500 with nothing', 502, (response) => void response.writeHead(500).end()],
      [
        'answers 503 with a web page',
        503,
        (response) => void response.writeHead(503, { 'content-type': 'text/html' }).end('<html>down</html>'),
      ],
      [
        'answers 401',
        502,
        (response) => void response.writeHead(401, json).end('{"error":{"message":"bad key sk-upstream"}}'),
      ],
      [
        'answers 400',
        400,
        (response) =>
          void response
            .writeHead(400, json)
            .end('{"error":{"message":"bad field","type":"invalid_request_error"}}'),
      ],
      [
        'answers 400 and hangs up inside the body',
        400,
        (response) =>
          void response
            .writeHead(400, { ...json, 'content-length': '5000' })
            .write('{"error":', () => response.socket?.destroy()),
      ],
      [
        'answers 404',
        503,
        (response) => void response.writeHead(404, json).end('{"error":{"message":"no such model"}}'),
      ],
      [
        'sends a web page',
        502,
        (response) =>
          void response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><p>Bad gateway'),
      ],
      ['sends an empty list', 502, (response) => void response.writeHead(200, json).end('[]')],
      ['sends nothing', 502, (response) => void response.writeHead(200, asStream ? stream : json).end()],
      ['sends 204', 502, (response) => void response.writeHead(204).end()],
      [
        'sends a redirect',
        502,
        (response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      ],
      [
        'sends an error under 200',
        503,
        (response, voice) =>
          void response.writeHead(200, json).end(JSON.stringify(voice.errorBody('overloaded'))),
      ],
      [
        'sends an error under 200 as a stream',
        503,
        (response, voice) => void response.writeHead(200, stream).end(voice.errorFrame('overloaded')),
      ],
      [
        'sends a comment, then an error event',
        429,
        (response, voice) => {
          response
            .writeHead(200, stream)
            .write(': waiting\n\n', () => response.end(voice.errorFrame('rate-limit')));
        },
      ],
    ];
    test.each(early)('a provider that %s is a %i in the client’s envelope', async (_what, status, script) => {
      behaviour = script;
      expectRefusal(await sendCall(), client, status);
    });

    const silent: [string, Behaviour][] = [
      ['says nothing', () => {}],
      [
        'sends its headers and then nothing',
        (response) => void response.writeHead(200, asStream ? stream : json).flushHeaders(),
      ],
    ];
    test.each(silent)(
      'a provider that %s for too long is a 504 in the client’s envelope',
      async (_what, script) => {
        behaviour = script;
        expectRefusal(await call(hasty, client, model, asStream), client, 504);
      },
    );

    test('JSON that is none, or a stranger’s, is an error, unless it passes through unread', async () => {
      for (const body of ['{"id": oops}', '{"hello":"world"}']) {
        behaviour = (response) => void response.writeHead(200, json).end(body);
        const answer = await sendCall();
        if (client === channel && !asStream) expect(answer).toMatchObject({ status: 200, text: body });
        else if (answer.status === 200) {
          expect(asStream, answer.text).toBe(true);
          expect(read(client, true, answer)).toMatchObject({
            complete: false,
            error: expect.anything() as unknown,
          });
        } else expectRefusal(answer, client, 502);
      }
    });

    test('a provider that cannot be reached is a 502', async () => {
      expectRefusal(await call(gateway, client, `refused-${channel}`, asStream), client, 502);
    });

    test('a provider’s rate limit is a 429 with its waiting time', async () => {
      behaviour = (response, voice) =>
        void response
          .writeHead(429, { ...json, 'retry-after': '7' })
          .end(JSON.stringify(voice.errorBody('rate-limit')));
      const answer = await sendCall();
      expectRefusal(answer, client, 429);
      expect(answer.headers['retry-after']).toBe('7');
    });

    test('slow headers and slow bytes are waited for', async () => {
      behaviour = async (response, voice, streaming) => {
        await pause(200);
        response.writeHead(200, streaming ? stream : json).flushHeaders();
        const bytes = Buffer.from(streaming ? voice.frames(words).join('') : wholeOf(voice));
        for (let at = 0; at < bytes.length; at += 200) {
          await pause(20);
          response.write(bytes.subarray(at, at + 200));
        }
        response.end();
      };
      expect(read(client, asStream, await sendCall())).toMatchObject({ text, complete: true });
    });

    test('early hints are passed over', async () => {
      behaviour = (response, voice, streaming) => {
        response.writeProcessing();
        response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' });
        response
          .writeHead(200, streaming ? stream : json)
          .end(streaming ? voice.frames(words).join('') : wholeOf(voice));
      };
      expect(read(client, asStream, await sendCall())).toMatchObject({ text, complete: true });
    });

    test('bytes one by one are the same answer', async () => {
      behaviour = async (response, voice, streaming) => {
        response.socket?.setNoDelay(true);
        response.writeHead(200, streaming ? stream : json);
        for (const byte of Buffer.from(
          streaming ? voice.frames(words).join('').replaceAll('\n', '\r\n') : wholeOf(voice),
        )) {
          response.write(Buffer.from([byte]));
          if (byte % 16 === 0) await new Promise(setImmediate);
        }
        response.end();
      };
      expect(read(client, asStream, await sendCall())).toMatchObject({ text, complete: true });
    });

    test('the content type may lie', async () => {
      behaviour = (response, voice, streaming) => {
        response
          .writeHead(200, streaming ? json : stream)
          .end(streaming ? voice.frames(words).join('') : wholeOf(voice));
      };
      expect(read(client, asStream, await sendCall())).toMatchObject({ text, complete: true });
      behaviour = (response, voice, streaming) => {
        response
          .writeHead(200, { 'content-type': 'text/plain' })
          .end(streaming ? voice.frames(words).join('') : wholeOf(voice));
      };
      expect(read(client, asStream, await sendCall())).toMatchObject({ text, complete: true });
    });

    test('an answer in the other mode than was asked for is turned into the one that was', async () => {
      behaviour = (response, voice, streaming) => {
        response
          .writeHead(200, streaming ? json : stream)
          .end(streaming ? wholeOf(voice) : voice.frames(words).join(''));
      };
      const answer = await sendCall();
      expect(answer.status, answer.text).toBe(200);
      expect(read(client, asStream, answer)).toMatchObject({ text, complete: true });
    });

    test('compression that nobody asked for is undone', async () => {
      behaviour = (response, voice, streaming) => {
        const bytes = gzipSync(streaming ? voice.frames(words).join('') : wholeOf(voice));
        response
          .writeHead(200, {
            ...(streaming ? stream : json),
            'content-encoding': 'gzip',
            'content-length': bytes.length,
          })
          .end(bytes);
      };
      const answer = await sendCall();
      expect(answer.headers['content-encoding']).toBeUndefined();
      expect(answer.ended).toBe(true);
      expect(read(client, asStream, answer)).toMatchObject({ text, complete: true });
    });

    test('compression that is cut or damaged is an error, never a clean end', async () => {
      for (const damage of ['cut', 'noise']) {
        behaviour = (response, voice, streaming) => {
          const bytes = gzipSync(streaming ? voice.frames(words).join('') : wholeOf(voice));
          const sent =
            damage === 'cut'
              ? bytes.subarray(0, bytes.length - 12)
              : Buffer.from('no gzip at all, but long enough');
          response.writeHead(200, { ...(streaming ? stream : json), 'content-encoding': 'gzip' }).end(sent);
        };
        const answer = await sendCall();
        if (answer.status === 200 && answer.ended) {
          expect(asStream, 'a whole answer was given out as complete').toBe(true);
          expect(read(client, asStream, answer)).toMatchObject({
            complete: false,
            error: expect.anything() as unknown,
          });
        } else if (answer.status !== 200) expectRefusal(answer, client, 502);
      }
    });

    test('an unknown compression is an error, not a crash', async () => {
      behaviour = (response) =>
        void response.writeHead(200, { ...json, 'content-encoding': 'constructor' }).end('{"id":"x"}');
      const answer = await sendCall();
      expect([200, 502]).toContain(answer.status);
    });
  });

  describe('stream', () => {
    const sendCall = (): Promise<Answer> => call(gateway, client, model, true);

    /** The stream began, then broke: the client has the beginning and an error in its own format, and no clean end. */
    function expectBroken(answer: Answer, expected: RegExp): void {
      expect(answer.status, answer.text).toBe(200);
      expect(answer.ended).toBe(true);
      const reply = read(client, true, answer);
      expect(reply.text).toBe('Hello wörld');
      expect(reply.complete).toBe(false);
      expect(JSON.stringify(reply.error)).toMatch(expected);
      expect(
        voices[client].isEnvelope(
          { request_id: '', ...reply.error },
          Number((reply.error?.error as { code?: number } | undefined)?.code),
        ),
        answer.text,
      ).toBe(true);
      expect(answer.text).not.toMatch(/127\.0\.0\.1|sk-upstream|undici|ECONN|UND_ERR/i);
    }
    const begin = (response: ServerResponse, voice: Voice): Promise<void> => {
      response.writeHead(200, stream);
      const frames = voice.frames(words);
      return new Promise((resolve) => {
        response.write(frames.slice(0, frames.length - voice.ending - 1).join(''), () =>
          setTimeout(resolve, 20),
        );
      });
    };

    test('an error event after some text ends the stream with that error', async () => {
      behaviour = async (response, voice) => {
        await begin(response, voice);
        response.end(voice.errorFrame('overloaded'));
      };
      expectBroken(await sendCall(), /Try later\./);
    });

    test('an error event in the same packet as the text ends the stream with that error', async () => {
      behaviour = (response, voice) => {
        const frames = voice.frames(words);
        response
          .writeHead(200, stream)
          .end(frames.slice(0, frames.length - voice.ending - 1).join('') + voice.errorFrame('overloaded'));
      };
      expectBroken(await sendCall(), /Try later\./);
    });

    test('a connection that is reset is an error', async () => {
      behaviour = async (response, voice) => {
        await begin(response, voice);
        response.socket?.resetAndDestroy();
      };
      expectBroken(await sendCall(), /closed the connection/);
    });

    test('a stream that is cut inside a frame is an error', async () => {
      behaviour = async (response, voice) => {
        await begin(response, voice);
        response.end(
          voice
            .frames(words)
            .at(-voice.ending - 1)
            ?.slice(0, 25),
        );
      };
      expectBroken(await sendCall(), /closed the connection/);
    });

    test('a stream that ends between frames without its terminator is an error', async () => {
      behaviour = async (response, voice) => {
        await begin(response, voice);
        response.end();
      };
      expectBroken(await sendCall(), /closed the connection/);
    });

    test('a stream cut inside a character is an error and sends no broken character', async () => {
      behaviour = async (response, voice) => {
        await begin(response, voice);
        const frame = Buffer.from(voice.frames(words).at(-voice.ending - 1) ?? '');
        response.end(frame.subarray(0, frame.indexOf('😀') + 2));
      };
      const answer = await sendCall();
      expectBroken(answer, /closed the connection/);
      expect(answer.text).not.toContain('\ufffd');
    });

    test('a frame of garbage never becomes a clean end', async () => {
      behaviour = async (response, voice) => {
        await begin(response, voice);
        response.end('data: {"choices":[{"delta": oops\n\n');
      };
      const answer = await sendCall();
      expect(answer.text).not.toContain('[DONE]');
      expect(answer.text).toMatch(/"error"/);
    });

    test('silence longer than the idle timeout is an error', async () => {
      behaviour = async (response, voice) => {
        await begin(response, voice);
      };
      expectBroken(await call(brisk, client, model, true), /no data within the idle timeout/);
    });

    test('a last frame without its blank line still counts', async () => {
      behaviour = (response, voice) =>
        void response.writeHead(200, stream).end(voice.frames(words).join('').replace(/\n+$/, ''));
      expect(read(client, true, await sendCall())).toMatchObject({ text, complete: true });
    });

    test('a stream behind a byte-order mark, comments and blank lines is read', async () => {
      behaviour = (response, voice) => {
        response.writeHead(200, stream);
        response.write('\n\n', () =>
          setTimeout(() => response.end(`: hi\n\n\n\n${voice.frames(words).join(': more\n\n')}`), 10),
        );
      };
      const answer = await sendCall();
      const reply = read(client, true, answer);
      expect(reply).toMatchObject({ text, complete: true });
    });
  });

  describe('whole', () => {
    const sendCall = (): Promise<Answer> => call(gateway, client, model, false);

    test('an answer that is cut is an error or a broken connection, never half an answer', async () => {
      const cuts: Behaviour[] = [
        (response, voice) =>
          void response
            .writeHead(200, { ...json, 'content-length': '5000' })
            .write(wholeOf(voice).slice(0, -20), () => setTimeout(() => response.socket?.destroy(), 20)),
        (response, voice) =>
          void response
            .writeHead(200, json)
            .write(wholeOf(voice).slice(0, -20), () => setTimeout(() => response.socket?.destroy(), 20)),
        (response, voice) =>
          void response.writeHead(200, { ...json, connection: 'close' }).end(wholeOf(voice).slice(0, -20)),
      ];
      for (const cut of cuts) {
        behaviour = cut;
        const answer = await sendCall();
        if (answer.status === 200 || answer.status === 0) expect(answer.ended).toBe(false);
        else expectRefusal(answer, client, 502);
      }
    });

    test('a stream that breaks is no whole answer', async () => {
      const breaks: ((voice: Voice) => string)[] = [() => '', (voice) => voice.errorFrame('overloaded')];
      for (const ending of breaks) {
        behaviour = (response, voice) => {
          const frames = voice.frames(words);
          response
            .writeHead(200, stream)
            .end(frames.slice(0, frames.length - voice.ending).join('') + ending(voice));
        };
        const answer = await sendCall();
        expect([502, 503]).toContain(answer.status);
        readError(client, answer);
      }
    });
  });
});

test('none of this is the gateway’s own failure', () => {
  const wrong = [gateway, hasty, brisk]
    .flatMap(({ lines }) => lines)
    .filter(({ level, msg }) => level === 'error' || level === 'fatal' || /failed inside/.test(String(msg)));
  expect(wrong).toEqual([]);
});
