import { request as send, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GatewayConfig } from '../../core/sdk/config.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { call, formatNames, read, readError, voices, type Answer, type FormatName } from './_wire.ts';

type Behaviour = (response: ServerResponse) => void;

const voice = voices['chat-completions'];
const json = { 'content-type': 'application/json' };
const answers: Behaviour = (response) =>
  void response
    .writeHead(200, { 'content-type': 'text/event-stream' })
    .end(voice.frames(['it', ' works']).join(''));
const whole: Behaviour = (response) =>
  void response.writeHead(200, json).end(JSON.stringify(voice.whole('it works')));
const fails =
  (status: number, headers: Record<string, string> = {}, message = 'sk-secret-of-ours is bad'): Behaviour =>
  (response) =>
    void response.writeHead(status, { ...json, ...headers }).end(JSON.stringify({ error: { message } }));

/** Which key was shown with each request, in order. */
let shown: string[] = [];
/** Responses for each key of the provider in order; the last one repeats. */
let meets: Record<string, Behaviour[]> = {};
let upstream: ScriptedUpstream;
let gateway: TestGateway | undefined;

beforeEach(async () => {
  shown = [];
  meets = {};
  upstream = await startUpstream((request, response) => {
    const key = request.headers.authorization?.replace('Bearer sk-', '') ?? '';
    shown.push(key);
    const list = meets[key] ?? [];
    const behaviour = list.length > 1 ? list.shift() : list[0];
    const stream = (JSON.parse(request.body.toString()) as { stream?: boolean }).stream === true;
    (behaviour ?? (stream ? answers : whole))(response);
  });
});
afterEach(async () => {
  await gateway?.close();
  gateway = undefined;
  await upstream.close();
});

/** A gateway with one channel of two keys, and one of a single key behind it. */
async function start(config: GatewayConfig = {}): Promise<TestGateway> {
  gateway = await startGateway({
    channels: [
      voice.channel(upstream.url, { id: 'x', priority: 1, key: 'sk-one', keys: ['sk-two'], models: ['m'] }),
      voice.channel(upstream.url, { id: 'y', key: 'sk-three', models: ['m'] }),
    ],
    ...config,
  });
  return gateway;
}

const sendCall = (format: FormatName = 'chat-completions', stream = false): Promise<Answer> => {
  if (gateway === undefined) throw new Error('no gateway');
  return call(gateway, format, 'm', stream);
};

describe('a key that the provider refuses', () => {
  test.each([401, 402, 403])('with %i is replaced by the other one, which no client sees', async (status) => {
    await start();
    meets = { one: [fails(status)], two: [fails(status)] };
    for (const format of formatNames) {
      const answer = await sendCall(format, true);
      expect(read(format, true, answer)).toMatchObject({ text: 'it works', complete: true });
    }
    // Both keys were asked once, and then rest; the other channel goes on.
    expect(shown.toSorted()).toEqual(['one', 'three', 'three', 'three', 'two']);
    expect(shown[2]).toBe('three');
  });

  test('is not asked again while the other one serves', async () => {
    await start();
    meets = { one: [fails(401)] };
    for (let round = 0; round < 6; round += 1) expect((await sendCall()).status).toBe(200);
    expect(shown.filter((key) => key === 'one')).toHaveLength(1);
    expect(shown).not.toContain('three');
  });

  test('where all are refused the client gets a 502 or 503 of its own format, and nothing of our keys', async () => {
    for (const status of [401, 402, 403]) {
      await start({ health: { enabled: false } });
      meets = { one: [fails(status)], two: [fails(status)], three: [fails(status)] };
      for (const format of formatNames) {
        const answer = await sendCall(format);
        expect(readError(format, answer).status).toBe(status === 402 ? 503 : 502);
        expect(answer.text).not.toMatch(/sk-|127\.0\.0\.1/);
      }
      await gateway?.close();
    }
  });
});

describe('a provider that limits', () => {
  test('is left alone for as long as it asks; the client is told when all do', async () => {
    await start();
    meets = {
      one: [fails(429, { 'retry-after': '300' })],
      two: [fails(429, { 'retry-after': '200' })],
      three: [fails(429, { 'retry-after-ms': '100000' })],
    };
    const first = await sendCall();
    expect([first.status, first.headers['retry-after']]).toEqual([429, '100']);
    expect(shown.toSorted()).toEqual(['one', 'three', 'two']);
    const second = await sendCall();
    expect(second.status).toBe(429);
    expect(Number(second.headers['retry-after'])).toBeGreaterThanOrEqual(30);
    expect(Number(second.headers['retry-after'])).toBeLessThanOrEqual(100);
    expect(shown).toHaveLength(3);
  });

  test('for a moment only is waited for', async () => {
    await start({
      channels: [voice.channel(upstream.url, { key: 'sk-one', models: ['m'] })],
      health: { coolDown: 300 },
    });
    meets = { one: [fails(429), whole] };
    expect((await sendCall()).status).toBe(429);
    expect((await sendCall()).status).toBe(200);
    expect(shown).toHaveLength(2);
  });

  test('a client that leaves while its call waits is not served, and nothing is asked', async () => {
    const { url, key } = await start({
      channels: [voice.channel(upstream.url, { key: 'sk-one', models: ['m'] })],
      health: { coolDown: 700 },
    });
    // On a machine so busy that the provider has rested before the client leaves it is tried again.
    for (let isInTime = false; !isInTime;) {
      shown = [];
      meets = { one: [fails(429), whole] };
      const begun = performance.now();
      expect((await sendCall()).status).toBe(429);
      const request = send(new URL('/v1/chat/completions', url), {
        method: 'POST',
        agent: false,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      });
      request.on('error', () => {});
      request.end(JSON.stringify(voice.body('m', false)));
      await new Promise((resolve) => setTimeout(resolve, 150));
      request.destroy();
      isInTime = performance.now() - begun < 600;
      await new Promise((resolve) => setTimeout(resolve, 900));
    }
    expect(shown).toEqual(['one']);
    expect((await sendCall()).status).toBe(200);
  });
});

describe('a request that is at fault', () => {
  test.each([400, 413, 422])('with %i goes to nobody else, and the provider stays in use', async (status) => {
    await start();
    meets = { one: [fails(status, {}, 'bad field')], two: [fails(status, {}, 'bad field')] };
    for (let round = 0; round < 12; round += 1)
      expect((await sendCall()).status).toBe(status === 413 ? 413 : 400);
    expect(shown).toHaveLength(12);
    expect(shown).not.toContain('three');
  });
});

describe('a provider in trouble', () => {
  test.each([408, 409, 425])('that says %i is asked once more', async (status) => {
    await start();
    meets = { one: [fails(status), whole], two: [fails(status), whole] };
    expect((await sendCall()).status).toBe(200);
    expect(shown).toHaveLength(2);
    expect(shown[0]).toBe(shown[1]);
  });

  test('that does not know the model is passed over for the other channel', async () => {
    await start();
    meets = { one: [fails(404, {}, 'no such model')], two: [fails(404, {}, 'no such model')] };
    expect((await sendCall()).status).toBe(200);
    expect(shown).toHaveLength(2);
    expect(shown[1]).toBe('three');
  });

  test('with all its keys, and everybody else with it, is told of in the end: 504 for silence', async () => {
    await start({ routing: { attempt: 150 } });
    const silence: Behaviour = () => {};
    meets = { one: [silence], two: [silence], three: [silence] };
    const answer = await sendCall('messages');
    expect(readError('messages', answer)).toEqual({
      status: 504,
      message: 'The upstream did not begin its response in time.',
    });
    await Promise.all(upstream.requests.map(({ closed }) => closed));
  });

  test('that is silent loses the call to the next in time for the client, and its socket at once', async () => {
    await start({ routing: { firstToken: 1_000, total: 60_000 } });
    const headers: Behaviour = (response) =>
      void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': hold on\n\n');
    meets = { one: [headers], two: [headers] };
    const answer = await sendCall('generate-content', true);
    expect(read('generate-content', true, answer)).toMatchObject({ text: 'it works', complete: true });
    await upstream.requests[0]?.closed;
  });

  test('and alone is still asked now and then while it rests, one call at a time, and heals by that', async () => {
    await start({
      channels: [voice.channel(upstream.url, { key: 'sk-one', models: ['m'] })],
      health: { failures: 2, rest: 60_000 },
    });
    meets = { one: [fails(500)] };
    for (let round = 0; round < 3; round += 1) expect((await sendCall()).status).toBeGreaterThanOrEqual(502);
    const shownBefore = shown.length;
    const answersAll = await Promise.all(Array.from({ length: 8 }, () => sendCall()));
    expect(answersAll.every(({ status }) => status >= 502)).toBe(true);
    expect(shown.length - shownBefore).toBeLessThanOrEqual(3);
    meets = {};
    await expect.poll(async () => (await sendCall()).status, { interval: 200 }).toBe(200);
    await expect
      .poll(async () => (await Promise.all([sendCall(), sendCall(), sendCall()])).map(({ status }) => status))
      .toEqual([200, 200, 200]);
  });
});

test('no client sees which key served it, or which failed', async () => {
  const { lines } = await start();
  meets = { one: [fails(401)], two: [fails(401)] };
  const answer = await sendCall('chat-completions', true);
  expect(answer.status).toBe(200);
  const ids = (gateway?.gateway.catalog.candidates('m') ?? []).flatMap(({ targets }) =>
    targets.map(({ key }) => key.id),
  );
  expect(ids).toHaveLength(3);
  const response = answer.text + JSON.stringify(answer.headers);
  for (const id of ids) expect(response).not.toContain(id);
  expect(JSON.stringify(lines)).not.toMatch(/sk-(one|two|three)/);
});
