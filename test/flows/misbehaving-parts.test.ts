/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/no-standalone-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { concat, map, Observable, of, throwError } from 'rxjs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  defineChannel,
  eachInOrder,
  GatewayError,
  observe,
  type Call,
  type GatewayEvent,
  type Stage,
  type Upstream,
} from 'sluice';
import { definePlugin } from 'sluice/internal';
import type { Handler } from '../../core/sdk/define.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, formatNames, read, readError, voices, type Answer, type FormatName } from './_wire.ts';

type Stream = Observable<GatewayEvent>;

let upstream: ScriptedUpstream;
let handler: Handler = (context, next) => next(context);
const stages: readonly Stage[] = ['observe', 'identify', 'admit', 'shape', 'translate'];
/** Which of the five is the one that misbehaves. */
let culprit: Stage = 'shape';

const plugins = stages.map((stage) =>
  definePlugin({
    name: `at-${stage}`,
    stage,
    setup: () => (context, next) => (stage === culprit ? handler(context, next) : next(context)),
  })(),
);

let open: (context: Call) => Promise<Upstream> = () => Promise.reject(new Error('not set'));
const odd = defineChannel({
  name: 'odd',
  needsKey: false,
  models: ['odd-model', 'odd-then-good'],
  setup: () => ({ speaks: { chat: ['chat-completions'] }, open: (context) => open(context) }),
});

const gateways: Record<'checked' | 'unchecked', TestGateway> = {} as never;
const crashes: unknown[] = [];
const onCrash = (error: unknown): void => void crashes.push(error);

beforeAll(async () => {
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  upstream = await startUpstream((request, response) => {
    const voice =
      voices[
        request.url.includes('/chat/')
          ? 'chat-completions'
          : request.url.includes('/messages')
            ? 'messages'
            : 'generate-content'
      ];
    const asStream = request.url.includes('stream') || /"stream":\s*true/.test(request.body.toString());
    response
      .writeHead(200)
      .end(asStream ? voice.frames(['a', 'b', 'c']).join('') : JSON.stringify(voice.whole('abc')));
  });
  const channels = [
    odd({ priority: 5 }),
    ...formatNames.map((name) => voices[name].channel(upstream.url)),
    voices['chat-completions'].channel(upstream.url, { id: 'good', models: ['odd-then-good'] }),
  ];
  // The channel fails in every test: none is about what follows from that.
  const health = { enabled: false };
  gateways.checked = await startGateway({ plugins, channels, health, checks: true });
  gateways.unchecked = await startGateway({ plugins, channels, health, checks: false });
});
afterAll(async () => {
  await gateways.checked.close();
  await gateways.unchecked.close();
  await upstream.close();
  process.off('uncaughtException', onCrash);
  process.off('unhandledRejection', onCrash);
});
afterEach(async () => {
  handler = (context, next) => next(context);
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(crashes.splice(0)).toEqual([]);
  gateways.checked.lines.length = 0;
  gateways.unchecked.lines.length = 0;
});

/** The client is told that it is not its fault and nothing else; the operator finds what was thrown, with its stack. */
async function expectOwnFailure(
  gateway: TestGateway,
  answer: Answer,
  client: FormatName,
  thrown: RegExp,
): Promise<void> {
  expect(answer.status, answer.text).toBe(500);
  expect(readError(client, answer).message).not.toMatch(thrown);
  await expectLogged(gateway, thrown);
}

async function expectLogged(gateway: TestGateway, thrown: RegExp): Promise<void> {
  const errors = (): string[] =>
    gateway.lines.filter(({ level }) => level === 'error').map((line) => JSON.stringify(line));
  await expect
    .poll(() => errors().some((line) => thrown.test(line) && line.includes('misbehaving-parts.test.ts')), {
      message: 'the log names the throw and its place',
    })
    .toBe(true);
}

const both = ['checked', 'unchecked'] as const;

describe.each(both)('a plugin (%s) that', (mode) => {
  describe.each(stages)('in the stage %s', (stage) => {
    test.each([
      [
        'throws at once',
        () => {
          throw new TypeError('my plugin is broken');
        },
      ],
      ['rejects', () => Promise.reject(new TypeError('my plugin is broken'))],
      [
        'throws after next',
        async (context, next) => {
          await next(context);
          throw new TypeError('my plugin is broken');
        },
      ],
    ] as [string, Handler][])('%s is a 500 that says nothing of it', async (_what, broken) => {
      culprit = stage;
      handler = broken;
      for (const client of formatNames) {
        await expectOwnFailure(
          gateways[mode],
          await call(gateways[mode], client, voices['chat-completions'].model, true),
          client,
          /my plugin is broken/,
        );
      }
    });

    test('throws something that is no error is a 500', async () => {
      culprit = stage;
      handler = () => Promise.reject('just words' as unknown as Error);
      const answer = await call(gateways[mode], 'messages', 'via-messages', true);
      expect(answer.status).toBe(500);
      readError('messages', answer);
    });

    test('refuses is believed', async () => {
      culprit = stage;
      handler = () =>
        Promise.reject(new GatewayError('rate_limit_exceeded', 'Not so fast.', { retryAfter: 9 }));
      const answer = await call(gateways[mode], 'chat-completions', 'via-chat', true);
      expect(readError('chat-completions', answer)).toEqual({ status: 429, message: 'Not so fast.' });
      expect(answer.headers['retry-after']).toBe('9');
    });

    test.each([
      ['nothing', undefined],
      ['null', null],
      ['a promise of words', 'words'],
      ['a list', []],
    ])('gives %s instead of a stream is a 500', async (_what, value) => {
      culprit = stage;
      handler = () => Promise.resolve(value as unknown as Stream);
      const answer = await call(gateways[mode], 'chat-completions', 'via-chat', true);
      expect(answer.status).toBe(500);
      readError('chat-completions', answer);
      if (mode === 'checked')
        await expect.poll(() => JSON.stringify(gateways[mode].lines)).toContain(`at-${stage}`);
    });
  });

  test.each(formatNames)(
    'throws while the first event passes is told before anything is sent (%s client)',
    async (client) => {
      culprit = 'shape';
      handler = async (context, next) =>
        (await next(context)).pipe(
          map(() => {
            throw new TypeError('my operator is broken');
          }),
        );
      for (const stream of [true, false]) {
        await expectOwnFailure(
          gateways[mode],
          await call(gateways[mode], client, 'via-messages', stream),
          client,
          /my operator is broken/,
        );
      }
    },
  );

  test.each(formatNames)(
    'throws while a later event passes ends the stream with an error (%s client)',
    async (client) => {
      culprit = 'shape';
      handler = async (context, next) =>
        (await next(context)).pipe(
          map((event) => {
            if (event.type === 'finish' || event.type === 'usage')
              throw new TypeError('my operator is broken');
            return event;
          }),
        );
      // Translated, so that the events are seen one by one.
      const channel = client === 'messages' ? 'chat-completions' : 'messages';
      const answer = await call(gateways[mode], client, voices[channel].model, true);
      expect(answer.status === 200 || answer.status === 500).toBe(true);
      if (answer.status === 200) {
        const reply = read(client, true, answer);
        expect(reply.complete).toBe(false);
        expect(reply.error).toBeDefined();
        expect(answer.text).not.toContain('my operator');
      }
      await expectLogged(gateways[mode], /my operator is broken/);
      const whole = await call(gateways[mode], client, voices[channel].model, false);
      expect(whole.status).toBe(500);
    },
  );

  test('fails in slow work long after next ends the stream with an error', async () => {
    culprit = 'shape';
    handler = async (context, next) =>
      (await next(context)).pipe(
        eachInOrder(context, async (event) => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          if (event.type === 'text-end') throw new TypeError('my work is broken');
          return [event];
        }),
      );
    const answer = await call(gateways[mode], 'chat-completions', 'via-messages', true);
    expect(read('chat-completions', true, answer)).toMatchObject({
      text: 'abc',
      complete: false,
      error: expect.anything() as unknown,
    });
    await expectLogged(gateways[mode], /my work is broken/);
  });

  test('throws while it only watches harms nobody', async () => {
    culprit = 'observe';
    handler = async (context, next) =>
      (await next(context)).pipe(
        observe({
          event: () => {
            throw new TypeError('my observer is broken');
          },
          end: () => {
            throw new TypeError('my observer is broken');
          },
          failed: () => {},
        }),
      );
    const answer = await call(gateways[mode], 'chat-completions', 'via-messages', true);
    expect(read('chat-completions', true, answer)).toMatchObject({ text: 'abc', complete: true });
  });

  test('errors again after its stream has ended is only heard in the log', async () => {
    culprit = 'shape';
    handler = async (context, next) => {
      const source = await next(context);
      return new Observable((subscriber) => {
        source.subscribe({ next: (event) => subscriber.next(event), complete: () => subscriber.complete() });
        setTimeout(() => {
          subscriber.next({ type: 'text-delta', block: 0, choice: 0, text: 'too late' });
          subscriber.error(new TypeError('too late'));
          subscriber.complete();
        }, 10);
      });
    };
    const answer = await call(gateways[mode], 'chat-completions', 'via-messages', true);
    expect(read('chat-completions', true, answer)).toMatchObject({ text: 'abc', complete: true });
  });

  test('throws when the call ends harms neither this call nor the process, also when the client left', async () => {
    culprit = 'shape';
    handler = (context, next) => {
      context.onEnd(() => {
        throw new TypeError('my cleaning is broken');
      });
      return next(context);
    };
    const gateway = gateways[mode];
    for (const stream of [true, false]) {
      const answer = await call(gateway, 'chat-completions', 'via-messages', stream);
      expect(read('chat-completions', stream, answer)).toMatchObject({ text: 'abc', complete: true });
      await expectLogged(gateway, /my cleaning is broken/);
      gateway.lines.length = 0;
    }
    const controller = new AbortController();
    const { promise: opened, resolve: hasOpened } = Promise.withResolvers<void>();
    open = () => {
      hasOpened();
      return Promise.resolve({ status: 200, headers: {}, bytes: new Observable<Buffer>(() => {}) });
    };
    const left = fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      signal: controller.signal,
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(voices['chat-completions'].body('odd-model', true)),
    }).catch(() => {});
    await opened;
    controller.abort();
    await left;
    await expectLogged(gateway, /my cleaning is broken/);
  });

  test('throws when the call ends does not keep the jobs behind it from running', async () => {
    culprit = 'shape';
    let ran = 0;
    handler = (context, next) => {
      context.onEnd(() => {
        throw new TypeError('my cleaning is broken');
      });
      context.onEnd(() => {
        ran += 1;
      });
      return next(context);
    };
    await call(gateways[mode], 'chat-completions', 'via-messages', true);
    await expectLogged(gateways[mode], /my cleaning is broken/);
    expect(ran).toBe(1);
  });

  test('answers by itself needs no channel', async () => {
    culprit = 'admit';
    handler = () =>
      Promise.resolve(
        of<GatewayEvent[]>(
          { type: 'head', id: 'x', model: 'none' },
          { type: 'text-start', block: 0, choice: 0 },
          { type: 'text-delta', block: 0, choice: 0, text: 'from me' },
          { type: 'text-end', block: 0, choice: 0 },
          { type: 'finish', choice: 0, reason: 'stop' },
        ),
      );
    for (const client of formatNames) {
      for (const stream of [true, false]) {
        expect(
          read(client, stream, await call(gateways[mode], client, 'no-such-model', stream)),
        ).toMatchObject({
          text: 'from me',
          complete: true,
          models:
            client === 'generate-content'
              ? (expect.anything() as unknown)
              : ['no-such-model'].flatMap(
                  (name) => Array(stream && client === 'chat-completions' ? 3 : 1).fill(name) as string[],
                ),
        });
      }
    }
  });
});

describe('a plugin that breaks the rules is named', () => {
  test.each([
    [
      'next is called twice',
      async (context, next) => {
        await next(context);
        return next(context);
      },
      /called next\(\) twice/,
    ],
    ['next is called without a call', (_context, next) => next(undefined as never), /without a call/],
    [
      'next is not awaited',
      (context, next) => {
        void next(context).catch(() => {});
        return Promise.resolve(of());
      },
      /returned before next/,
    ],
  ] as [string, Handler, RegExp][])('when %s', async (_what, broken, expected) => {
    culprit = 'shape';
    handler = broken;
    const answer = await call(gateways.checked, 'chat-completions', 'via-chat', true);
    expect(answer.status).toBe(500);
    await expect.poll(() => JSON.stringify(gateways.checked.lines)).toMatch(expected);
  });
});

describe.each(both)('a channel (%s) that', (mode) => {
  const cases: [string, () => Promise<Upstream>][] = [
    [
      'throws at once',
      () => {
        throw new TypeError('my channel is broken');
      },
    ],
    ['rejects', () => Promise.reject(new TypeError('my channel is broken'))],
    ['gives nothing', () => Promise.resolve(undefined as unknown as Upstream)],
    ['gives no bytes', () => Promise.resolve({ status: 200, headers: {} } as unknown as Upstream)],
    [
      'gives bytes that fail at once',
      () =>
        Promise.resolve({
          status: 200,
          headers: {},
          bytes: throwError(() => new TypeError('my channel is broken')),
        }),
    ],
    ['gives bytes that end at once', () => Promise.resolve({ status: 200, headers: {}, bytes: of() })],
    [
      'gives bytes that throw',
      () =>
        Promise.resolve({
          status: 200,
          headers: {},
          bytes: new Observable<Buffer>(() => {
            throw new TypeError('my channel is broken');
          }),
        }),
    ],
  ];
  test.each(cases)(
    '%s is an error in the client’s envelope, and another channel answers instead',
    async (_what, broken) => {
      open = broken;
      for (const client of formatNames) {
        for (const stream of [true, false]) {
          const answer = await call(gateways[mode], client, 'odd-model', stream);
          expect([500, 502]).toContain(answer.status);
          expect(readError(client, answer).message).not.toContain('my channel is broken');
          const other = await call(gateways[mode], client, 'odd-then-good', stream);
          expect(other.status, other.text).toBe(200);
          expect(read(client, stream, other)).toMatchObject({ text: 'abc', complete: true });
        }
      }
    },
  );

  test('throws is found in the log with its stack', async () => {
    open = () => {
      throw new TypeError('my channel is broken');
    };
    await call(gateways[mode], 'chat-completions', 'odd-model', true);
    await expectLogged(gateways[mode], /my channel is broken/);
  });

  test('fails in the middle of its bytes ends the stream with an error', async () => {
    const frames = voices['chat-completions']
      .frames(['a', 'b', 'c'])
      .slice(0, 4)
      .map((frame) => Buffer.from(frame));
    open = () =>
      Promise.resolve({
        status: 200,
        headers: {},
        bytes: concat(
          of(...frames),
          throwError(() => new TypeError('my channel is broken')),
        ),
      });
    for (const client of formatNames) {
      const answer = await call(gateways[mode], client, 'odd-model', true);
      expect(answer.status).toBe(200);
      expect(read(client, true, answer)).toMatchObject({
        text: 'abc',
        complete: false,
        error: expect.anything() as unknown,
      });
      expect(answer.text).not.toContain('my channel is broken');
    }
  });

  test('never stops does not survive its client', async () => {
    let freed = 0;
    open = (context) =>
      Promise.resolve({
        status: 200,
        headers: {},
        bytes: new Observable<Buffer>((subscriber) => {
          const timer = setInterval(() => {
            if (!context.gate.closed)
              subscriber.next(Buffer.from(voices['chat-completions'].frames(['x'])[1] ?? ''));
          }, 1);
          return () => {
            freed += 1;
            clearInterval(timer);
          };
        }),
      });
    const controller = new AbortController();
    const response = await fetch(`${gateways[mode].url}/v1/chat/completions`, {
      method: 'POST',
      signal: controller.signal,
      headers: { authorization: `Bearer ${gateways[mode].key}`, 'content-type': 'application/json' },
      body: JSON.stringify(voices['chat-completions'].body('odd-model', true)),
    });
    expect(response.status).toBe(200);
    controller.abort();
    await response.text().catch(() => {});
    await expect.poll(() => freed).toBe(1);
  });
});
