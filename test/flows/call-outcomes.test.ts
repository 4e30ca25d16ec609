import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import openai from '../../channels/openai.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { responseDone, startRealtimeUpstream } from '../support/realtime-upstream.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { SocketClient } from '../support/websocket.ts';
import costLog from './_cost-log.ts';
import { beginCall } from './_leavers.ts';
import { call, fetchRaw, voices, type Answer } from './_wire.ts';

type Behaviour = (response: ServerResponse) => void;

const chat = voices['chat-completions'];
const messages = voices.messages;
const frames = chat.frames(['one', 'two']);
const answers: Behaviour = (response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(frames.join(''));
const begins: Behaviour = (response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(frames.slice(0, 2).join(''));
const breaks: Behaviour = (response) => {
  begins(response);
  response.write('', () => response.destroy());
};
const fails: Behaviour = (response) =>
  void response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"No."}}');
const silent: Behaviour = () => {};

let behaviours: Record<'first' | 'second', Behaviour>;
/** The third provider answers when it resolves. */
let ready: Promise<void>;
let upstreams: ScriptedUpstream[];
let gateway: TestGateway;

beforeEach(async () => {
  behaviours = { first: answers, second: answers };
  ready = Promise.resolve();
  upstreams = [
    await startUpstream((_request, response) => behaviours.first(response)),
    await startUpstream((_request, response) => behaviours.second(response)),
    await startUpstream(async ({ body }, response) => {
      await ready;
      const { stream } = JSON.parse(body.toString()) as { stream?: boolean };
      response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
      response.end(stream ? messages.frames(['blue']).join('') : JSON.stringify(messages.whole('blue')));
    }),
  ];
  const [first, second, third] = upstreams.map(({ url }) => url);
  gateway = await startGateway({
    plugins: [costLog()],
    channels: [
      chat.channel(first ?? '', { id: 'first', priority: 1, models: ['m'] }),
      chat.channel(second ?? '', { id: 'second', models: ['m'] }),
      messages.channel(third ?? '', { id: 'third', models: ['single'] }),
    ],
    prices: { m: { input: 10, output: 20 }, single: { input: 10, output: 20 } },
    routing: { hedge: false },
  });
});
afterEach(async () => {
  await gateway.close();
  await Promise.all(upstreams.map((upstream) => upstream.close()));
});

const outcomes = (of = gateway): Record<string, unknown>[] =>
  of.lines.filter(({ msg }) => msg === 'cost of a call');

/** The only outcome that the plugin has logged. */
async function outcome(of = gateway): Promise<Record<string, unknown>> {
  await expect.poll(() => outcomes(of)).toHaveLength(1);
  return outcomes(of)[0] ?? {};
}

const sendCall = (of = gateway): Promise<Answer> => call(of, 'chat-completions', 'm', true);

/** Five tokens of input and seven of output. */
const microDollars = 5 * 10 + 7 * 20;
const cost = { microDollars, price: { model: 'm', input: 10, output: 20 } };
const usage = { input: 5, output: 7 };

describe('a plugin that imports sluice alone is told the outcome of a call', () => {
  test('that was answered, with its cost, price, usage, attempt and times', async () => {
    expect((await sendCall()).status).toBe(200);
    expect(await outcome()).toMatchObject({
      id: expect.stringMatching(/^req_/),
      ended: 'complete',
      status: 200,
      model: 'm',
      usage,
      cost,
      attempts: [{ channel: 'first', model: 'm' }],
      times: { queuedMs: expect.any(Number), firstMs: expect.any(Number), totalMs: expect.any(Number) },
      dropped: [],
    });
  });

  test('that fell back, with the error of the first attempt', async () => {
    behaviours.first = fails;
    await sendCall();
    expect(await outcome()).toMatchObject({
      ended: 'complete',
      cost,
      attempts: [
        { channel: 'first', failure: 'upstream_error', cause: { status: 500, message: 'No.' } },
        { channel: 'second' },
      ],
    });
  });

  test('that failed in all channels, and costs nothing', async () => {
    behaviours = { first: fails, second: fails };
    expect((await sendCall()).status).toBe(502);
    const record = await outcome();
    expect(record).toMatchObject({
      ended: 'error',
      status: 502,
      attempts: [{ channel: 'first', failure: 'upstream_error' }, { channel: 'second' }],
    });
    expect(record).not.toHaveProperty('cost');
    expect(record).not.toHaveProperty('usage');
  });

  test('that was refused before it was sent', async () => {
    await call(gateway, 'chat-completions', 'unknown', true);
    expect(await outcome()).toMatchObject({
      ended: 'error',
      status: 503,
      error: { code: 'no_available_channel' },
      model: 'unknown',
      attempts: [],
      times: { totalMs: expect.any(Number) },
    });
  });

  test('whose response was cut off, with what was seen of it', async () => {
    behaviours.first = breaks;
    await sendCall();
    expect(await outcome()).toMatchObject({
      ended: 'interrupted',
      status: 200,
      usage: { estimated: true },
      cost: { price: cost.price },
      attempts: [{ channel: 'first' }],
    });
  });

  test('whose client left in the middle, with what was seen of it', async () => {
    behaviours.first = begins;
    const request = beginCall(gateway, chat.body('m', true));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.on('error', () => {});
    await once(response, 'data');
    request.destroy();
    expect(await outcome()).toMatchObject({ ended: 'left', status: 200, usage: { estimated: true } });
  });

  test('whose client left before there was an answer, with the input', async () => {
    const requested = Promise.withResolvers<void>();
    behaviours.first = () => requested.resolve();
    const request = beginCall(gateway, chat.body('m', true));
    request.on('error', () => {});
    await requested.promise;
    request.destroy();
    expect(await outcome()).toMatchObject({
      ended: 'left',
      status: 499,
      usage: { output: 0, estimated: true },
      attempts: [],
    });
  });

  test('that asked for parallel answers, with the sum of their usage and what was dropped', async () => {
    const body = { ...chat.body('single', false), n: 2, logit_bias: { 1: 1 } };
    const answer = await call(gateway, 'chat-completions', 'single', false, { body });
    expect(answer.status).toBe(200);
    expect(await outcome()).toMatchObject({
      ended: 'complete',
      usage: { input: 10, output: 14 },
      dropped: ['logit_bias'],
    });
  });

  test('that goes on in the background, once, when its work is done', async () => {
    const release = Promise.withResolvers<void>();
    ready = release.promise;
    const begun = await fetchRaw(gateway, '/v1/responses', {
      body: { model: 'single', input: 'hi', background: true },
    });
    expect(begun.status).toBe(200);
    expect(outcomes()).toEqual([]);
    release.resolve();
    expect(await outcome()).toMatchObject({ ended: 'complete', status: 200, usage, cost: { microDollars } });
  });

  test('that ran when the gateway closed', async () => {
    behaviours.first = silent;
    const request = beginCall(gateway, chat.body('m', true));
    request.on('error', () => {});
    await expect.poll(() => upstreams[0]?.requests.length).toBe(1);
    await gateway.close();
    expect(outcomes()).toHaveLength(1);
  });
});

test('a hedged call has an outcome with both attempts and the input of both', async () => {
  behaviours.first = silent;
  const hedging = await startGateway({
    plugins: [costLog()],
    channels: upstreams
      .slice(0, 2)
      .map(({ url }, index) => chat.channel(url, { id: `c${index}`, priority: 2 - index, models: ['m'] })),
    prices: { m: { input: 10, output: 20 } },
    routing: { hedge: { after: 20 } },
  });
  try {
    await sendCall(hedging);
    expect(await outcome(hedging)).toMatchObject({
      ended: 'complete',
      usage: { output: 7, estimated: true, units: { calls: 2 } },
      attempts: [{ channel: 'c0', failure: 'hedged' }, { channel: 'c1' }],
    });
  } finally {
    await hedging.close();
  }
});

test('a session over a WebSocket has one outcome, with the sum of its answers', async () => {
  const provider = await startRealtimeUpstream((session, message) => {
    if (message === undefined) return;
    const { say } = JSON.parse(message.data.toString()) as { say?: unknown[] };
    for (const one of say ?? []) session.send(one);
  });
  const talking = await startGateway({
    plugins: [costLog()],
    channels: [openai({ key: 'k', baseUrl: provider.url, models: ['priced'] })],
    prices: { priced: { input: 10, output: 20 } },
  });
  try {
    const client = await SocketClient.open(`${talking.url}/v1/realtime?model=priced`, {
      headers: { authorization: `Bearer ${talking.key}` },
    });
    client.send({ say: [responseDone('a', 100, 50), responseDone('b', 200, 10)] });
    await client.until(({ response }) => (response as { id?: string } | undefined)?.id === 'b');
    client.socket.close(1000);
    await client.closed;
    expect(await outcome(talking)).toMatchObject({
      ended: 'complete',
      usage: { input: 300, output: 60 },
      cost: { microDollars: 300 * 10 + 60 * 20 },
    });
  } finally {
    await talking.close();
    await provider.close();
  }
});
