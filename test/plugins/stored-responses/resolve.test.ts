import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import storedResponses from '../../../plugins/stored-responses/index.ts';
import {
  call,
  callIn,
  responseIn,
  startNative,
  textOf,
  runTurn,
  type Json,
  type NativeProvider,
} from '../../flows/_turns.ts';
import { temporaryDatabase } from '../../core/state/support.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { SocketClient } from '../../support/websocket.ts';
import { connectionOf } from '../../support/sqlite.ts';

const getWeather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

describe('over one WebSocket', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startGateway({
      channels: [
        demo(),
        demo({ id: 'native', speaks: ['responses'], models: { native: 'demo' } }),
        demo({ id: 'failing', models: { failing: 'demo!status=429' } }),
      ],
    });
  });
  afterAll(() => gateway.close());

  const connect = (): Promise<SocketClient> =>
    SocketClient.open(`${gateway.url}/v1/responses`, { headers: { authorization: `Bearer ${gateway.key}` } });
  const isLast = ({ type }: Json): boolean =>
    /^(error|response\.(completed|incomplete|failed))$/.test(String(type));

  /** One turn on a socket: its last event. */
  const respond = async (client: SocketClient, body: Json): Promise<Json> => {
    const count = client.messages.filter(isLast).length;
    client.send({ type: 'response.create', ...body });
    return (await client.until(isLast, count + 1)).at(-1) ?? {};
  };

  test('a turn is forgotten when the one that follows it is refused', async () => {
    const client = await connect();
    const first = await respond(client, { model: 'demo', store: false, input: 'Hello' });
    const { id } = first['response'] as { id: string };
    const follow = { store: false, input: 'More', previous_response_id: id };
    expect(await respond(client, { model: 'failing', ...follow })).toMatchObject({
      type: 'error',
      status: 429,
    });
    expect(await respond(client, { model: 'demo', ...follow })).toMatchObject({
      type: 'error',
      error: { code: 'previous_response_not_found' },
    });
    client.vanish();
  });

  test.each(['demo', 'native'])(
    'turns that are not stored follow each other, and nobody else (%s)',
    async (model) => {
      const client = await connect();
      const first = responseIn(
        await respond(client, {
          model,
          store: false,
          input: 'My name is Ada: call get_weather',
          tools: [getWeather],
        }),
      );
      const output = { type: 'function_call_output', call_id: callIn(first).call_id, output: 'sunny' };
      const second = responseIn(
        await respond(client, { model, store: false, previous_response_id: first.id, input: [output] }),
      );
      expect(textOf(second)).toContain('get_weather returned: sunny');
      const third = { model, store: false, previous_response_id: second.id, input: '!request' };
      expect(textOf(responseIn(await respond(client, third)))).toContain('My name is Ada');
      const another = await connect();
      for (const event of [await respond(another, third)]) {
        expect(event).toMatchObject({
          type: 'error',
          status: 400,
          error: { code: 'previous_response_not_found' },
        });
      }
      const plain = await call(gateway, 'POST', '/v1/responses', third);
      expect(plain.body.error).toMatchObject({ code: 'previous_response_not_found' });
      client.vanish();
      another.vanish();
    },
  );

  test('a stored turn brings those along that were not stored', async () => {
    const client = await connect();
    const first = responseIn(await respond(client, { model: 'demo', store: false, input: 'My name is Ada' }));
    const second = responseIn(
      await respond(client, { model: 'demo', previous_response_id: first.id, input: 'Keep this' }),
    );
    const third = await runTurn(gateway, {
      model: 'demo',
      previous_response_id: second.id,
      input: '!request',
    });
    for (const part of ['My name is Ada', 'Keep this']) expect(textOf(third)).toContain(part);
    client.vanish();
  });

  test.each([true, false])('a turn is prepared without an answer (stored: %s)', async (store) => {
    const client = await connect();
    const warm = await respond(client, { model: 'demo', store, generate: false, input: 'My name is Ada' });
    expect(warm).toMatchObject({
      type: 'response.completed',
      response: { status: 'completed', output: [], usage: { total_tokens: 0 } },
    });
    const { id } = responseIn(warm);
    const next = await respond(client, { model: 'demo', store, previous_response_id: id, input: '!request' });
    const request = textOf(responseIn(next));
    expect(request).toContain('My name is Ada');
    expect(request).not.toContain('"role":"assistant"');
    const shown = await call(gateway, 'GET', `/v1/responses/${String(id)}`);
    expect(shown.status).toBe(store ? 200 : 404);
    client.vanish();
  });

  test('the oldest are forgotten when there are many', async () => {
    const client = await connect();
    const ids: unknown[] = [];
    for (let index = 0; index < 17; index += 1)
      ids.push(responseIn(await respond(client, { model: 'demo', store: false, input: 'x' })).id);
    const follow = (id: unknown): Promise<Json> =>
      respond(client, { model: 'demo', store: false, previous_response_id: id, input: 'x' });
    expect(await follow(ids[0])).toMatchObject({ error: { code: 'previous_response_not_found' } });
    expect(await follow(ids.at(-1))).toMatchObject({ type: 'response.completed' });
    client.vanish();
  });
});

describe('an operator', () => {
  let native: NativeProvider;
  let broken: NativeProvider;

  beforeAll(async () => {
    native = await startNative();
    broken = await startNative({}, (_, response) => {
      response.writeHead(500).end('{"error":{"message":"broken"}}');
      return true;
    });
  });
  afterAll(async () => {
    await native.close();
    await broken.close();
  });

  test('may be emulated on some channels alone, by their ids', async () => {
    const speaks = (id: string) => demo({ id, speaks: ['chat-completions'], models: { [id]: 'demo' } });
    const gateway = await startGateway({
      plugins: [storedResponses({ emulate: ['allowed'] })],
      channels: [speaks('allowed'), speaks('other')],
    });
    try {
      const respond = (model: string) => call(gateway, 'POST', '/v1/responses', { model, input: 'Hello' });
      expect((await respond('allowed')).status).toBe(200);
      expect((await respond('other')).status).toBe(503);
    } finally {
      await gateway.close();
    }
  });

  test('may want no emulation: models without a native channel are refused with the way out', async () => {
    const gateway = await startGateway({
      plugins: [storedResponses({ emulate: false })],
      channels: [
        demo({
          id: 'chat',
          speaks: ['chat-completions'],
          models: { chat: 'demo', 'native-2': 'demo' },
          priority: 9,
        }),
        { ...broken.channel, options: { ...broken.channel.options, id: 'broken', priority: 5 } },
        native.channel,
      ],
    });
    try {
      const refused = await fetch(`${gateway.url}/v1/responses`, {
        method: 'POST',
        headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'chat', input: 'x' }),
      });
      expect(refused.status).toBe(503);
      expect(refused.headers.get('x-should-retry')).toBe('false');
      const { error } = (await refused.json()) as { error: Json };
      expect(error).toMatchObject({ code: 'endpoint_not_supported' });
      expect(error.message).toContain('/v1/chat/completions');
      // The channel that only chats has the highest priority, and the first native one is broken.
      for (const stream of [false, true])
        expect(textOf(await runTurn(gateway, { model: 'native-2', input: 'x' }, stream))).toMatch(/^native/);
      const chat = await call(gateway, 'POST', '/v1/chat/completions', {
        model: 'chat',
        messages: [{ role: 'user', content: 'Hello' }],
      });
      expect(chat.status).toBe(200);
    } finally {
      await gateway.close();
    }
  });

  test('may allow fewer turns', async () => {
    const gateway = await startGateway({ plugins: [storedResponses({ maxTurns: 2 })], channels: [demo()] });
    try {
      let previous: Json = {};
      for (let index = 0; index < 3; index += 1) {
        const follows = previous.id === undefined ? {} : { previous_response_id: previous.id };
        previous = await runTurn(gateway, { model: 'demo', input: 'x', ...follows });
      }
      const refused = await call(gateway, 'POST', '/v1/responses', {
        model: 'demo',
        input: 'x',
        previous_response_id: previous.id,
      });
      expect(refused.body.error).toMatchObject({ param: 'previous_response_id' });
      expect((refused.body.error as Json).message).toContain('more than 2 turns');
    } finally {
      await gateway.close();
    }
  });

  test('whose provider is down has another go on with the whole conversation', async () => {
    let down = false;
    const first = await startNative({}, (_, response) => {
      if (down) response.writeHead(503).end('{"error":{"message":"down"}}');
      return down;
    });
    const gateway = await startGateway({
      channels: [
        { ...first.channel, options: { ...first.channel.options, id: 'first', priority: 5 } },
        demo({ speaks: ['messages'], models: { 'native-1': 'demo' } }),
      ],
    });
    try {
      const { id } = await runTurn(gateway, { model: 'native-1', input: 'My name is Ada' });
      down = true;
      const next = await runTurn(gateway, { model: 'native-1', previous_response_id: id, input: '!request' });
      expect(textOf(next)).toContain('My name is Ada');
    } finally {
      await gateway.close();
      await first.close();
    }
  });
});

test('a response in the background is cancelled from another process', async () => {
  const native = await startNative({}, () => true);
  const database = temporaryDatabase();
  const here = await startGateway({ database, timeouts: { drain: 100 }, channels: [native.channel] });
  const there = await startGateway({ database, channels: [demo()] });
  try {
    const queued = await runTurn(here, { model: 'native-1', input: 'x', background: true });
    await expect.poll(() => native.requests.length).toBe(1);
    const find = connectionOf(there.stores).prepare('SELECT runs_until AS at FROM responses WHERE id = ?');
    const promised = (): number => Number(find.get(String(queued.id))?.at);
    const first = promised();
    await expect.poll(promised).toBeGreaterThan(first);
    const cancelled = await call(
      { url: there.url, key: here.key },
      'POST',
      `/v1/responses/${String(queued.id)}/cancel`,
    );
    expect(cancelled).toMatchObject({ status: 200, body: { status: 'cancelled' } });
    await native.requests[0]?.closed;
    const { body } = await call(here, 'GET', `/v1/responses/${String(queued.id)}`);
    expect(body.status).toBe('cancelled');
  } finally {
    await here.close();
    await there.close();
    await native.close();
  }
});
