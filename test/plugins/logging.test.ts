import { setImmediate as nextTurn } from 'node:timers/promises';
import { definePlugin, type GatewayEvent, type PluginEntry } from 'sluice';
import {
  reply as replyOf,
  fail,
  testPlugins,
  type CallOptions,
  type RunOptions,
  type Script,
} from 'sluice/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { GatewayError, toGatewayError } from '../../core/sdk/errors.ts';
import { accountOf } from '../../core/money/account/index.ts';
import logging from '../../plugins/logging.ts';
import requestId from '../../plugins/request-id.ts';

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
const longest = 2 ** 30;

interface Given extends RunOptions {
  readonly call?: CallOptions;
  readonly options?: Parameters<typeof logging>[0];
}

async function withLog(options: Parameters<typeof logging>[0] = {}, ...more: PluginEntry[]) {
  const tested = await testPlugins([logging(options), requestId, ...more]);
  onTestFinished(() => tested.close());
  return tested;
}

/** The lines that one call leaves. */
async function linesOf({ call, options, ...run }: Given) {
  const tested = await withLog(options);
  const callOptions = {
    model: 'x-high',
    stream: true,
    key: { id: 'key_1' },
    headers: { 'x-request-id': 'mine' },
  };
  await tested.run({ ...callOptions, ...call }, { reply, ...run });
  return tested.lines;
}

const failing = (error: Error): Script => replyOf(fail(error));

describe('one line', () => {
  test('says who called, what was asked, who answered, how it ended, what it used and how long it took', async () => {
    const [line, ...more] = await linesOf({});
    expect(more).toEqual([]);
    expect(line).toMatchObject({
      level: 'info',
      id: expect.stringMatching(/^req_/) as string,
      clientId: 'mine',
      keyId: 'key_1',
      ip: '192.0.2.7',
      format: 'chat-completions',
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

  test('is written when the call has ended, and not before', async () => {
    const tested = await withLog();
    const client = new AbortController();
    const begun = [...reply, { wait: longest }];
    const running = tested.run({ stream: true }, { reply: begun, signal: client.signal });
    await nextTurn();
    expect(tested.lines).toEqual([]);
    client.abort();
    await running;
    expect(tested.lines).toHaveLength(1);
  });

  test('tells what the reply lost while it was written', async () => {
    const position = { block: 0, choice: 0 };
    const logprobs = [{ token: 'a', logprob: -0.5, top: [] }];
    const [line] = await linesOf({
      call: { format: 'messages' },
      reply: [
        ...reply.filter(({ type }) => type !== 'text-delta'),
        { type: 'text-start', ...position },
        { type: 'text-delta', ...position, text: 'a', logprobs },
        { type: 'text-end', ...position },
      ],
    });
    expect(line).toMatchObject({ losses: ['seed', 'logprobs'] });
  });

  test('about success may be quieter, or left out', async () => {
    expect(await linesOf({ options: { level: 'debug' } })).toMatchObject([{ level: 'debug' }]);
    expect(await linesOf({ options: { successes: false } })).toEqual([]);
    const refused = [{ fail: new GatewayError('upstream_cut', 'Cut.', { origin: 'upstream' }) }];
    expect(await linesOf({ options: { successes: false }, reply: refused })).toHaveLength(1);
  });
});

describe('a call that did not go well', () => {
  test('because the client made a mistake is information', async () => {
    const error = new GatewayError('invalid_value', 'temperature must be between 0 and 2.', {
      param: 'temperature',
    });
    expect(await linesOf({ reply: failing(error) })).toMatchObject([
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
    const refusing = definePlugin({
      name: 'refusing',
      stage: 'identify',
      setup: () => () => Promise.reject(new GatewayError('missing_api_key', 'No key.')),
    });
    const { run, lines } = await withLog({}, refusing());
    expect((await run()).error?.message).toBe('No key.');
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
    const [line] = await linesOf({ reply: failing(error) });
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
      const [line] = await linesOf({ reply: failing(thrown) });
      expect(line).toMatchObject({
        level: 'error',
        code: 'internal_error',
        status: 500,
        error: { name: 'TypeError' },
      });
      expect((line as unknown as { error: { stack: string } }).error.stack).toContain('logging.test.ts');
    }
  });

  test('after its stream had begun keeps status 200 and tells the code', async () => {
    const cut = new GatewayError('upstream_cut', 'Cut.', { origin: 'upstream' });
    const [line] = await linesOf({ reply: [...reply, { fail: cut }] });
    expect(line).toMatchObject({
      ended: 'error',
      status: 200,
      code: 'upstream_cut',
      level: 'warn',
      usage: logged,
    });
  });

  test('tells every attempt, also when all of them failed', async () => {
    const error = new GatewayError('upstream_timeout', 'Too slow.', { origin: 'upstream' });
    const lines = await linesOf({
      reply({ call }) {
        for (const channel of ['first', 'second'])
          accountOf(call).attempts.failed({ type: 'attempt', channel, model: 'x', failure: error.code });
        return failing(error);
      },
    });
    expect(lines).toMatchObject([
      { failedAttempts: ['first: upstream_timeout', 'second: upstream_timeout'] },
    ]);
  });
});

describe('a client that leaves', () => {
  test('in the middle of its stream', async () => {
    const [line] = await linesOf({ reply: [...reply, { wait: longest }], leaveAfter: reply.length });
    expect(line).toMatchObject({
      level: 'info',
      ended: 'left',
      status: 200,
      usage: logged,
      msg: 'a client left its call',
    });
  });

  test('before there was an answer', async () => {
    const silent = [{ wait: longest }];
    expect(await linesOf({ reply: silent, leaveAfter: 0 })).toMatchObject([{ ended: 'left', status: 499 }]);
    const left = new GatewayError('client_closed_request', 'The client left before the upstream responded.');
    expect(await linesOf({ reply: failing(left) })).toMatchObject([
      { ended: 'left', level: 'info', status: 499 },
    ]);
  });
});

test('a line that cannot be written is told of, and takes no other with it', async () => {
  const { run, lines, tools } = await withLog();
  const info = tools.log.info.bind(tools.log);
  let count = 0;
  tools.log.info = (fields: object, sentence?: string) => {
    count += 1;
    if (count === 1) throw new Error('no words');
    info(fields, sentence);
  };
  for (const model of ['first', 'second']) await run({ model }, { reply });
  expect(lines).toMatchObject([
    { level: 'error', msg: 'work at the end of a call failed', error: { message: 'no words' } },
    { model: 'second', msg: 'a call was answered' },
  ]);
});
