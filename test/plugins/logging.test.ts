import { setImmediate as nextTurn } from 'node:timers/promises';
import { of, Subject, throwError, type Observable } from 'rxjs';
import { describe, expect, test } from 'vitest';
import { caller } from '../../core/sdk/caller.ts';
import { GatewayError, toGatewayError } from '../../core/sdk/errors.ts';
import type { GatewayEvent } from '../../core/model/event.ts';
import { failedAttempts } from '../../core/routing/attempts.ts';
import type { ApiKey } from '../../core/sdk/api-key.ts';
import logging from '../../plugins/logging.ts';
import { clientRequestId } from '../../plugins/request-id.ts';
import { handlerOf, testCall, testTools, type CallOptions, type Lines } from './_call.ts';

const usage = { input: 12, output: 3, cacheRead: 2, cacheWrite: 0, reasoning: 1 };
/** As the line tells it: parts that are zero are left out. */
const logged = { input: 12, output: 3, cacheRead: 2, reasoning: 1 };
const reply: readonly GatewayEvent[] = [
  { type: 'request', model: 'x', stream: true },
  { type: 'attempt', channel: 'first', model: 'x-upstream', failure: 'upstream_timeout' },
  { type: 'attempt', channel: 'second', model: 'x-2', format: 'messages', passThrough: false },
  { type: 'loss', loss: { path: 'seed', kind: 'setting', from: 'plain', to: 'messages' } },
  { type: 'head', id: '1', model: 'x-2' },
  { type: 'text-delta', block: 0, choice: 0, text: 'a secret thought' },
  { type: 'usage', usage: { ...usage, output: 1 } },
  { type: 'usage', usage: { ...usage, format: 'messages', raw: { anything: 1 } } },
];

type Ending = (events: Observable<GatewayEvent>) => void;

const toTheEnd: Ending = (events) => void events.subscribe({ error: () => {} });

interface Given {
  readonly call?: CallOptions;
  readonly options?: Parameters<typeof logging>[0];
  readonly events?: () => Observable<GatewayEvent>;
  readonly ending?: Ending;
}

/** The lines that one call leaves. */
async function linesOf({
  call: asked = {},
  options,
  events = () => of(...reply),
  ending = toTheEnd,
}: Given): Promise<Lines> {
  const { tools, lines } = testTools();
  const handler = await handlerOf(logging, tools, options);
  const { call, exchange } = testCall({ model: 'x-high', stream: true, ...asked });
  call.set(caller, { id: 'key_1', name: 'test', hash: 'h' } as unknown as ApiKey);
  call.set(clientRequestId, 'mine');
  try {
    ending(await handler(call, async () => events()));
  } catch {
    // The front end answers with it.
  }
  expect(lines, 'nothing is written before the call has ended').toEqual([]);
  exchange.end();
  await nextTurn();
  return lines;
}

describe('one line', () => {
  test('says who called, what was asked, who answered, how it ended, what it used and how long it took', async () => {
    const [line, ...more] = await linesOf({});
    expect(more).toEqual([]);
    expect(line).toMatchObject({
      level: 'info',
      id: 'req_test',
      clientId: 'mine',
      keyId: 'key_1',
      ip: '192.0.2.7',
      format: 'plain',
      operation: 'chat',
      model: 'x-high',
      modelInForce: 'x',
      channel: 'second',
      upstreamModel: 'x-2',
      upstreamFormat: 'messages',
      passThrough: false,
      stream: true,
      ended: 'complete',
      status: 200,
      usage: logged,
      losses: ['seed'],
      failedAttempts: ['first: upstream_timeout'],
      msg: 'a call was answered',
    });
    expect(line).toHaveProperty('ms', expect.any(Number));
    expect(line).toHaveProperty('firstMs', expect.any(Number));
    expect(JSON.stringify(line)).not.toMatch(/thought|anything/);
  });

  test('tells what the reply lost while it was written', async () => {
    const { tools, lines } = testTools();
    const handler = await handlerOf(logging, tools);
    const { call, exchange } = testCall({ model: 'x' });
    toTheEnd(await handler(call, async () => of(...reply)));
    exchange.reportLoss({ path: 'logprobs', kind: 'response', from: 'messages', to: 'plain' });
    exchange.end();
    await nextTurn();
    expect(lines).toMatchObject([{ losses: ['seed', 'logprobs'] }]);
  });

  test('about success may be quieter, or left out', async () => {
    expect(await linesOf({ options: { level: 'debug' } })).toMatchObject([{ level: 'debug' }]);
    expect(await linesOf({ options: { successes: false } })).toEqual([]);
    const refused = () => throwError(() => new GatewayError('upstream_cut', 'Cut.', { origin: 'upstream' }));
    expect(await linesOf({ options: { successes: false }, events: refused })).toHaveLength(1);
  });
});

describe('a call that did not go well', () => {
  const failing = (error: unknown) => () => {
    throw error;
  };

  test('because the client made a mistake is information', async () => {
    const error = new GatewayError('invalid_value', 'temperature must be between 0 and 2.', {
      param: 'temperature',
    });
    expect(await linesOf({ events: failing(error) })).toMatchObject([
      {
        level: 'info',
        msg: 'a call was refused',
        ended: 'error',
        status: 400,
        code: 'invalid_value',
        param: 'temperature',
        reason: 'temperature must be between 0 and 2.',
      },
    ]);
  });

  test('and was refused before its body was read has a line without a model', async () => {
    const { tools, lines } = testTools();
    const handler = await handlerOf(logging, tools);
    const { call, exchange } = testCall();
    await expect(
      handler(call, () => Promise.reject(new GatewayError('missing_api_key', 'No key.'))),
    ).rejects.toThrow('No key.');
    exchange.end();
    expect(lines).toMatchObject([{ level: 'info', status: 401, code: 'missing_api_key' }]);
    expect(lines[0]).not.toHaveProperty('model');
    expect(lines[0]).not.toHaveProperty('keyId');
  });

  test('because of a provider is a warning that names what lies behind it', async () => {
    const cause = new TypeError('socket hang up');
    const error = new GatewayError('upstream_error', 'The upstream could not be reached.', {
      origin: 'upstream',
      cause,
    });
    const [line] = await linesOf({ events: failing(error) });
    expect(line).toMatchObject({
      level: 'warn',
      msg: 'a call failed',
      status: 502,
      cause: 'TypeError: socket hang up',
    });
    expect(line).not.toHaveProperty('error');
  });

  test('because of a bug is an error with the place where it happened', async () => {
    const bug = new TypeError('x is not a function');
    for (const thrown of [bug, toGatewayError(bug)]) {
      // oxlint-disable-next-line no-await-in-loop
      const [line] = await linesOf({ events: failing(thrown) });
      expect(line).toMatchObject({
        level: 'error',
        code: 'internal_error',
        status: 500,
        error: { name: 'TypeError' },
      });
      expect((line as { error: { stack: string } }).error.stack).toContain('logging.test.ts');
    }
  });

  test('after its stream had begun keeps status 200 and tells the code', async () => {
    const events = new Subject<GatewayEvent>();
    const [line] = await linesOf({
      events: () => events,
      ending(stream) {
        toTheEnd(stream);
        for (const event of reply) events.next(event);
        events.error(new GatewayError('upstream_cut', 'Cut.', { origin: 'upstream' }));
      },
    });
    expect(line).toMatchObject({
      ended: 'error',
      status: 200,
      code: 'upstream_cut',
      level: 'warn',
      usage: logged,
    });
  });

  test('tells every attempt, also when all of them failed', async () => {
    const { tools, lines } = testTools();
    const handler = await handlerOf(logging, tools);
    const { call, exchange } = testCall({ model: 'x' });
    const error = new GatewayError('upstream_timeout', 'Too slow.', { origin: 'upstream' });
    const next = async () => {
      call.set(failedAttempts, [
        { type: 'attempt', channel: 'first', model: 'x', failure: error.code },
        { type: 'attempt', channel: 'second', model: 'x', failure: error.code },
      ]);
      throw error;
    };
    await expect(handler(call, next)).rejects.toThrow('Too slow.');
    exchange.end();
    expect(lines).toMatchObject([
      { failedAttempts: ['first: upstream_timeout', 'second: upstream_timeout'] },
    ]);
  });
});

describe('a client that leaves', () => {
  test('in the middle of its stream', async () => {
    const events = new Subject<GatewayEvent>();
    const [line] = await linesOf({
      events: () => events,
      ending(stream) {
        const subscription = stream.subscribe();
        for (const event of reply) events.next(event);
        subscription.unsubscribe();
      },
    });
    expect(line).toMatchObject({
      level: 'info',
      ended: 'left',
      status: 200,
      usage: logged,
      msg: 'a call was left by its client',
    });
  });

  test('before there was an answer', async () => {
    expect(await linesOf({ ending: () => {} })).toMatchObject([{ ended: 'left', status: 499 }]);
    const left = new GatewayError('client_closed_request', 'The client left before the upstream answered.');
    const events = () => throwError(() => left);
    expect(await linesOf({ events })).toMatchObject([{ ended: 'left', level: 'info', status: 499 }]);
  });
});

test('one line is written, however often a call is ended', async () => {
  const { tools, lines } = testTools();
  const handler = await handlerOf(logging, tools);
  const { call, exchange } = testCall({ model: 'x' });
  toTheEnd(await handler(call, async () => of(...reply)));
  exchange.end();
  exchange.end();
  await nextTurn();
  expect(lines).toHaveLength(1);
});

test('a line that cannot be written is told of, and takes no other with it', async () => {
  const { tools, lines } = testTools();
  const info = tools.log.info.bind(tools.log);
  let count = 0;
  tools.log.info = (fields: object, sentence?: string) => {
    count += 1;
    if (count === 1) throw new Error('no words');
    info(fields, sentence);
  };
  const handler = await handlerOf(logging, tools);
  for (const model of ['first', 'second']) {
    const { call, exchange } = testCall({ model });
    toTheEnd(await handler(call, async () => of(...reply)));
    exchange.end();
  }
  await nextTurn();
  expect(lines).toMatchObject([
    { level: 'error', msg: 'a call could not be logged', error: { message: 'no words' } },
    { model: 'second', msg: 'a call was answered' },
  ]);
});
