import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { map } from 'rxjs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { observe, type Stage } from 'sluice';
import { definePlugin, type Call } from 'sluice/internal';
import type { Handler } from '../../core/sdk/define.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { beginCall } from './_leavers.ts';
import { call, voices } from './_wire.ts';

const voice = voices['chat-completions'];
const outcomes = ['complete', 'left', 'failed'] as const;
type Outcome = (typeof outcomes)[number] | 'slow';

const pass: Handler = (request, next) => next(request);
const handlers: Record<Stage, Handler> = {
  observe: pass,
  identify: pass,
  admit: pass,
  shape: pass,
  translate: pass,
};
const stages = Object.keys(handlers) as Stage[];
const plugins = stages.map((stage) =>
  definePlugin({
    name: `broken-at-${stage}`,
    stage,
    ...(stage === 'observe' ? { before: ['logging', 'usage-log', 'metrics'] } : {}),
    setup: () => (request: Call, next) => handlers[stage](request, next),
  })(),
);

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let outcome: Outcome = 'complete';
const crashes: unknown[] = [];
const onCrash = (error: unknown): void => void crashes.push(error);

beforeAll(async () => {
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  upstream = await startUpstream((_request, response) => {
    if (outcome === 'failed') {
      response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"No."}}');
      return;
    }
    const frames = voice.frames(['one', 'two', 'three']);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (outcome === 'left') response.write(frames.slice(0, 3).join(''));
    else if (outcome === 'slow') void writeSlowly(response, frames);
    else response.end(frames.join(''));
  });
  gateway = await startGateway({
    channels: [voice.channel(upstream.url, { models: ['m'] })],
    prices: { m: { input: 1, output: 1 } },
    plugins,
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
  process.off('uncaughtException', onCrash);
  process.off('unhandledRejection', onCrash);
});
afterEach(() => {
  for (const stage of stages) handlers[stage] = pass;
  gateway.lines.length = 0;
});

/** Writes each frame in a write of its own, which the gateway reads by itself. */
async function writeSlowly(response: ServerResponse, frames: readonly string[]): Promise<void> {
  for (const frame of frames) {
    response.write(frame);
    await setTimeout(50);
  }
  response.end();
}

/** Makes one call that ends so. */
async function make(how: Outcome): Promise<void> {
  outcome = how;
  if (how !== 'left') {
    const answer = await call(gateway, 'chat-completions', 'm', true);
    expect(answer.status).toBe(how === 'complete' ? 200 : 400);
    return;
  }
  const request = beginCall(gateway, voice.body('m', true));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  await once(response, 'data');
  request.destroy();
}

const logged = (): Record<string, unknown>[] => gateway.lines.filter(({ plugin }) => plugin === 'logging');
const reported = (): Record<string, unknown>[] =>
  gateway.lines.filter(({ level, msg }) => level === 'error' && msg === 'work at the end of a call failed');

async function counted(): Promise<number> {
  const text = await (await fetch(`${gateway.url}/metrics`)).text();
  return Number(/^sluice_end_of_call_errors_total (\d+)$/m.exec(text)?.[1]);
}

/** The end that the usage log keeps of the last call. */
const expected: Readonly<Record<string, object>> = {
  complete: { ended: 'complete', status: 200 },
  left: { ended: 'left', status: 200 },
  failed: { ended: 'error', status: 400 },
};

describe.each(stages)('a plugin in the stage %s', (stage) => {
  test.each(outcomes)(
    'whose callback at the end of the call throws changes nothing of a call that is %s',
    async (how) => {
      const before = await counted();
      handlers[stage] = (request, next) => {
        request.onEnd(() => {
          throw new TypeError('my first callback is broken');
        });
        request.onEnd(() => {
          throw new TypeError('my second callback is broken');
        });
        return next(request);
      };
      await make(how);
      await expect.poll(logged).toMatchObject([expected[how]]);
      const [line] = logged();
      await expect
        .poll(() => reported().map(({ id, error }) => [id, (error as { message: string }).message]))
        .toEqual([
          [line?.['id'], 'my first callback is broken'],
          [line?.['id'], 'my second callback is broken'],
        ]);
      expect(await counted()).toBe(before + 2);
      expect(crashes).toEqual([]);
    },
  );

  test.each(outcomes.filter((how) => how !== 'failed'))(
    'whose observer throws at the end of the reply changes nothing of a call that is %s',
    async (how) => {
      const before = await counted();
      handlers[stage] = async (request, next) =>
        (await next(request)).pipe(
          observe({
            end() {
              throw new TypeError('my observer is broken');
            },
          }),
        );
      await make(how);
      await expect.poll(logged).toMatchObject([expected[how]]);
      await expect
        .poll(() => reported().map(({ error }) => (error as { message: string }).message))
        .toEqual(['my observer is broken']);
      expect(await counted()).toBe(before + 1);
      expect(crashes).toEqual([]);
    },
  );

  test('that fails behind the end of the call is reported, and the call was left', async () => {
    let onReached = (): void => {};
    const reached = new Promise<void>((resolve) => (onReached = resolve));
    handlers[stage] = async (request) => {
      onReached();
      await new Promise<void>((resolve) => request.onEnd(resolve));
      await setImmediate();
      throw new TypeError('my clean-up is broken');
    };
    const request = beginCall(gateway, voice.body('m', true));
    await reached;
    request.destroy();
    // In front of those that record calls, nobody has heard of this one.
    if (stage !== 'observe') await expect.poll(logged).toMatchObject([{ ended: 'left', status: 499 }]);
    // An attempt that was given up tells nobody how it failed.
    if (stage === 'translate') return;
    await expect
      .poll(() => reported().map(({ error }) => (error as { message: string }).message))
      .toEqual(['my clean-up is broken']);
  });
});

describe('a plugin in front of those that record calls', () => {
  test.each([
    ['at its first event', -1, 500],
    ['in its middle', 1, 200],
  ] as const)('that breaks the reply %s is recorded as the client saw it', async (_when, passing, status) => {
    let passed = 0;
    handlers.observe = async (request, next) =>
      (await next(request)).pipe(
        map((event) => {
          if (event.type === 'frames' || passing < 0) passed += 1;
          if (passed > Math.max(0, passing)) throw new TypeError('my operator is broken');
          return event;
        }),
      );
    outcome = 'slow';
    const answer = await call(gateway, 'chat-completions', 'm', true);
    expect(answer.status).toBe(status);
    await expect.poll(logged).toHaveLength(1);
    expect(logged()).toMatchObject([{ ended: 'error', status, code: 'internal_error' }]);
  });
});
