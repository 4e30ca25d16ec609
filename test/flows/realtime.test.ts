import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import demo from '../../channels/demo/index.ts';
import groq from '../../channels/groq.ts';
import openai from '../../channels/openai.ts';
import modelAlias from '../../plugins/model-alias.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { responseDone, startRealtimeUpstream, type RealtimeUpstream } from '../support/realtime-upstream.ts';
import { refusedSocket, SocketClient } from '../support/websocket.ts';

const MiB = 1024 * 1024;
const secret = 'sk-upstream-secret-0123456789';

/** Greets, echoes text and binary, and answers `response.create` with a `response.done`. */
let provider: RealtimeUpstream;
let gateway: TestGateway;
let answers = 0;

beforeAll(async () => {
  provider = await startRealtimeUpstream((session, message) => {
    if (message === undefined) {
      session.send({ type: 'session.created', session: { model: 'upstream-model', id: 'sess_1' } });
      return;
    }
    const { data, binary } = message;
    const text = binary ? '' : data.subarray(0, 300).toString();
    if (text.includes('"response.create"')) {
      answers += 1;
      session.send({ type: 'response.created', response: { id: `resp_${answers}` } });
      session.send(responseDone(`resp_${answers}`, 10, 5));
      return;
    }
    if (text.includes('"close"')) {
      const { code, reason } = JSON.parse(text) as { code: number; reason: string };
      session.socket.close(code, reason);
      return;
    }
    if (text.includes('"vanish"')) {
      session.socket.terminate();
      return;
    }
    session.socket.send(data, { binary });
  });
  gateway = await startGateway({
    channels: [
      openai({ key: secret, baseUrl: provider.url, models: { talk: 'upstream-model', plain: 'plain' } }),
      openai({ id: 'nobody', key: secret, baseUrl: 'http://127.0.0.1:9', models: ['unreachable'] }),
      groq({ key: secret, baseUrl: provider.url, models: ['silent'] }),
      demo({ models: { demo: 'demo', 'demo-429': 'demo!status=429', 'demo-cut': 'demo!cut-after=2' } }),
    ],
    plugins: [modelAlias({ aliases: { alias: 'talk' } })],
    realtime: { frame: 16 * MiB },
  });
});

afterAll(async () => {
  await gateway.close();
  await provider.close();
});

const bearer = (key = gateway.key): { headers: Record<string, string> } => ({
  headers: { authorization: `Bearer ${key}` },
});
const address = (query: string): string => `${gateway.url}/v1/realtime${query}`;
const open = (query = '?model=talk'): Promise<SocketClient> => SocketClient.open(address(query), bearer());
const typed =
  (type: string) =>
  (message: Record<string, unknown>): boolean =>
    message.type === type;

describe('a session with the demo', () => {
  test('answers a text in the order of events that clients know, with usage', async () => {
    const client = await open('?model=demo');
    await client.until(typed('session.created'));
    client.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } });
    await client.until(typed('session.updated'));
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello there' }] };
    client.send({ type: 'conversation.item.create', item });
    client.send({ type: 'response.create' });
    const [done] = await client.until(typed('response.done'));
    expect(client.messages.map(({ type }) => type)).toEqual([
      'session.created',
      'session.updated',
      'conversation.item.added',
      'conversation.item.done',
      'response.created',
      'rate_limits.updated',
      'response.output_item.added',
      'conversation.item.added',
      'response.content_part.added',
      ...Array.from({ length: 5 }, () => 'response.output_text.delta'),
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'conversation.item.done',
      'response.done',
    ]);
    expect(done).toMatchObject({
      response: { status: 'completed', usage: { input_tokens: 2, output_tokens: 5, total_tokens: 7 } },
    });
    client.socket.close(1000, 'bye');
    expect(await client.closed).toEqual({ code: 1000, reason: 'bye' });
  });

  test('tells what it does not understand, and goes on', async () => {
    const client = await open('?model=demo');
    client.send('no json');
    client.send({ type: 'nonsense', event_id: 'mine' });
    client.send({ type: 'input_audio_buffer.commit' });
    expect(await client.until(typed('error'), 3)).toMatchObject([
      { error: { code: 'invalid_json' } },
      { error: { code: 'invalid_value', event_id: 'mine' } },
      { error: { code: 'input_audio_buffer_commit_empty' } },
    ]);
    client.vanish();
  });

  test('a provider that breaks in the middle: an error event, and 1011', async () => {
    const client = await open('?model=demo-cut');
    client.send({ type: 'response.create' });
    expect((await client.closed).code).toBe(1011);
    expect(client.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'upstream_cut' } });
  });
});

describe('what passes through', () => {
  test('text and binary of every size, whole and in fragments, in order', async () => {
    const client = await open();
    await client.until(typed('session.created'));
    const got: { data: Buffer; binary: boolean }[] = [];
    client.socket.removeAllListeners('message');
    client.socket.on('message', (data: Buffer, binary) => got.push({ data, binary }));
    const sent = [0, 1, 125, 126, 65_535, 65_536, 3 * MiB].map((size, index) => ({
      data: Buffer.alloc(size, 'abcdefgh'),
      binary: index % 2 === 0,
    }));
    for (const { data, binary } of sent) client.socket.send(data, { binary });
    client.socket.send('frag', { binary: false, fin: false });
    client.socket.send('men', { fin: false });
    client.socket.send('ted', { fin: true });
    await expect.poll(() => got.length).toBe(sent.length + 1);
    for (const [index, { data, binary }] of sent.entries()) {
      expect(got[index]?.binary).toBe(binary);
      expect(got[index]?.data.equals(data)).toBe(true);
    }
    expect(got.at(-1)?.data.toString()).toBe('fragmented');
    client.vanish();
  });

  test('the model under the name that each side knows, and no other', async () => {
    const client = await open('?model=alias');
    expect(await client.until(typed('session.created'))).toMatchObject([{ session: { model: 'alias' } }]);
    const session = provider.sessions.at(-1);
    expect(session?.url).toBe('/v1/realtime?model=upstream-model');
    client.send({ type: 'session.update', session: { model: 'alias', instructions: 'x' } });
    expect(await client.until(typed('session.update'))).toMatchObject([
      { session: { model: 'upstream-model' } },
    ]);
    client.send({ type: 'session.update', event_id: 'e1', session: { model: 'another' } });
    expect(await client.until(typed('error'))).toMatchObject([
      { error: { type: 'invalid_request_error', param: 'session.model', event_id: 'e1' } },
    ]);
    client.send({ type: 'ping', model: 'another' });
    await client.until(typed('ping'));
    expect(session?.messages.map(({ data }) => data.toString()).join()).not.toContain('"e1"');
    client.vanish();
  });

  test('the old dialect, when the client asks for it by header or subprotocol', async () => {
    const one = await SocketClient.open(address('?model=talk'), {
      headers: { ...bearer().headers, 'openai-beta': 'realtime=v1' },
    });
    expect(provider.sessions.at(-1)?.headers['openai-beta']).toBe('realtime=v1');
    const other = await SocketClient.open(address('?model=talk'), {}, [
      'realtime',
      `openai-insecure-api-key.${gateway.key}`,
      'openai-beta.realtime-v1',
    ]);
    expect(other.socket.protocol).toBe('realtime');
    expect(provider.sessions.at(-1)?.headers['openai-beta']).toBe('realtime=v1');
    const plain = await open();
    expect(provider.sessions.at(-1)?.headers['openai-beta']).toBeUndefined();
    for (const client of [one, other, plain]) client.vanish();
  });

  test('a deployment as the model, and a session that only transcribes', async () => {
    const client = await open('?deployment=talk&api-version=2025-04-01-preview');
    expect(provider.sessions.at(-1)?.url).toBe('/v1/realtime?model=upstream-model');
    const scribe = await open('?model=talk&intent=transcription');
    expect(provider.sessions.at(-1)?.url).toBe('/v1/realtime?intent=transcription');
    for (const one of [client, scribe]) one.vanish();
  });

  test('no key of the client, in no way; nor in the log', async () => {
    const client = await SocketClient.open(address('?model=talk'), {}, [
      'realtime',
      `openai-insecure-api-key.${gateway.key}`,
    ]);
    const seen = provider.sessions.at(-1);
    expect(seen?.headers.authorization).toBe(`Bearer ${secret}`);
    expect(JSON.stringify([seen?.headers, seen?.url])).not.toContain(gateway.key);
    client.socket.close(1000);
    await client.closed;
    await expect.poll(() => gateway.lines.some(({ operation }) => operation === 'realtime')).toBe(true);
    expect(JSON.stringify(gateway.lines)).not.toContain(gateway.key);
    expect(JSON.stringify(gateway.lines)).not.toContain(secret);
  });
});

describe('how a session ends', () => {
  test.each([
    [1000, 'done', 1000],
    [1001, 'away', 1001],
    [1008, 'policy', 1008],
    [1013, 'later', 1013],
    [4000, 'own words', 4000],
  ])('the close of the provider, %i, reaches the client', async (code, reason, expected) => {
    const client = await open();
    client.send({ type: 'close', code, reason });
    expect(await client.closed).toEqual({ code: expected, reason });
  });

  test('a close without a code, and a cut, are 1011', async () => {
    const one = await open();
    one.send({ type: 'close' });
    expect((await one.closed).code).toBe(1011);
    const other = await open();
    other.send({ type: 'vanish' });
    expect((await other.closed).code).toBe(1011);
    expect(other.messages.at(-1)).toMatchObject({ type: 'error', error: { code: 'upstream_cut' } });
  });

  test("the client's close reaches the provider; one that vanishes is told as 1011", async () => {
    const one = await open();
    one.socket.close(4321, 'enough');
    expect(await provider.sessions.at(-1)?.closed).toEqual({ code: 4321, reason: 'enough' });
    const other = await open();
    other.vanish();
    expect((await provider.sessions.at(-1)?.closed)?.code).toBe(1011);
  });

  test('what waits is delivered before the close', async () => {
    const client = await open();
    const text = 'y'.repeat(200_000);
    for (let count = 0; count < 20; count += 1) client.send({ type: 'echo', count, text });
    client.send({ type: 'close', code: 1000, reason: 'last' });
    expect(await client.closed).toEqual({ code: 1000, reason: 'last' });
    expect(client.messages.filter(typed('echo'))).toHaveLength(20);
  });

  test('a message that is too large: 1009; text that is no UTF-8: 1007', async () => {
    const large = await open();
    large.socket.send(Buffer.alloc(16 * MiB + 1), { binary: true });
    expect((await large.closed).code).toBe(1009);
    const broken = await open();
    broken.socket.send(Buffer.from([0xc3, 0x28]), { binary: false });
    expect((await broken.closed).code).toBe(1007);
  });
});

describe('what is refused before there is a session', () => {
  test.each([
    ['', 400, 'missing_required_parameter'],
    ['?model=', 400, 'missing_required_parameter'],
    ['?intent=transcription', 400, 'missing_required_parameter'],
    ['?model=talk&intent=sing', 400, 'invalid_value'],
    ['?call_id=rtc_1', 400, 'unsupported_parameter'],
    ['?model=nothing', 503, 'no_available_channel'],
    ['?model=unreachable', 502, 'upstream_error'],
    ['?model=demo-429', 429, 'rate_limit_exceeded'],
  ])('%s: %i', async (query, status, code) => {
    const refused = await refusedSocket(address(query), bearer());
    expect(refused).toMatchObject({ status, body: { error: { code } } });
    expect(refused.headers['x-request-id']).toMatch(/^req_/);
  });

  test('no key, and a wrong one: 401; a model that the key may not use: 403', async () => {
    expect((await refusedSocket(address('?model=talk'))).status).toBe(401);
    expect((await refusedSocket(address('?model=talk'), bearer('sk-wrong'))).status).toBe(401);
    const { value } = await gateway.apiKeys.create({ name: 'narrow', models: ['demo'] });
    expect(await refusedSocket(address('?model=talk'), bearer(value))).toMatchObject({
      status: 403,
      body: { error: { code: 'model_not_allowed' } },
    });
  });

  test('an accepted handshake tells the id of the session, and how the limits of the key stand', async () => {
    const { value } = await gateway.apiKeys.create({ name: 'limited', requestsPerMinute: 2 });
    const socket = new WebSocket(address('?model=talk').replace('http', 'ws'), bearer(value));
    const [response] = (await once(socket, 'upgrade')) as [IncomingMessage];
    expect(response.headers).toMatchObject({
      'x-request-id': expect.stringMatching(/^req_/),
      'x-ratelimit-remaining-requests': '1',
    });
    // Each session counts as one request.
    const second = await SocketClient.open(address('?model=talk'), bearer(value));
    expect((await refusedSocket(address('?model=talk'), bearer(value))).status).toBe(429);
    socket.terminate();
    second.vanish();
  });

  test('too many sessions at once for the key: 429, until one ends', async () => {
    const { value } = await gateway.apiKeys.create({ name: 'one at a time', concurrency: 1 });
    const client = await SocketClient.open(address('?model=talk'), bearer(value));
    expect((await refusedSocket(address('?model=talk'), bearer(value))).status).toBe(429);
    client.socket.close(1000);
    await client.closed;
    let second: SocketClient | undefined;
    await expect
      .poll(
        async () =>
          (second = await SocketClient.open(address('?model=talk'), bearer(value)).catch(() => undefined)),
      )
      .toBeDefined();
    second?.vanish();
  });

  test('a plain GET: 426; a channel without sessions: 503', async () => {
    const response = await fetch(address('?model=talk'), bearer());
    expect(response.status).toBe(426);
    expect(response.headers.get('upgrade')).toBe('websocket');
    expect(await refusedSocket(address('?model=silent'), bearer())).toMatchObject({
      status: 503,
      body: { error: { code: 'endpoint_not_supported' } },
    });
  });

  test.each([
    [401, 502],
    [403, 502],
    [404, 503],
    [429, 429],
    [500, 503],
    [503, 503],
    [504, 503],
  ])(
    'a provider that refuses with %i is told as %i, without its words about its key',
    async (status, expected) => {
      const refusing = await startRealtimeUpstream(() => {}, {
        refuse: (_request, response) => {
          response.writeHead(status, { 'content-type': 'application/json' });
          response.end(
            JSON.stringify({ error: { message: `no, says https://secret.example with ${secret}` } }),
          );
          return true;
        },
      });
      const own = await startGateway({
        channels: [openai({ key: secret, baseUrl: refusing.url, models: ['talk'] })],
      });
      try {
        const refused = await refusedSocket(`${own.url}/v1/realtime?model=talk`, bearer(own.key));
        expect(refused.status).toBe(expected);
        expect(JSON.stringify(refused.body)).not.toMatch(/secret/);
      } finally {
        await own.close();
        await refusing.close();
      }
    },
  );
});

test('sessions go through the proxy of the channel, with its password, and carry the headers that the operator sets', async () => {
  const seen: { path: string; authorization: string | undefined }[] = [];
  const proxy = createServer();
  proxy.on('connect', (request, socket: Socket) => {
    seen.push({ path: request.url ?? '', authorization: request.headers['proxy-authorization'] });
    const far = connect(Number(new URL(`http://${request.url}`).port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connected\r\n\r\n');
      far.pipe(socket).pipe(far);
    });
    far.on('error', () => socket.destroy());
    socket.on('error', () => far.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const { port } = proxy.address() as AddressInfo;
  const own = await startGateway({
    channels: [
      openai({
        key: secret,
        baseUrl: provider.url,
        models: ['talk'],
        proxy: `http://user:p%40ss@127.0.0.1:${port}`,
        headers: { set: { 'X-Team': 'voice' } },
      }),
      openai({
        id: 'dead',
        key: secret,
        baseUrl: provider.url,
        models: ['dead'],
        proxy: 'http://127.0.0.1:9',
      }),
    ],
  });
  try {
    const client = await SocketClient.open(`${own.url}/v1/realtime?model=talk`, bearer(own.key));
    await client.until(typed('session.created'));
    client.vanish();
    expect(seen).toEqual([
      {
        path: new URL(provider.url).host,
        authorization: `Basic ${Buffer.from('user:p@ss').toString('base64')}`,
      },
    ]);
    expect(provider.sessions.at(-1)?.headers['x-team']).toBe('voice');
    expect((await refusedSocket(`${own.url}/v1/realtime?model=dead`, bearer(own.key))).status).toBe(502);
  } finally {
    await own.close();
    proxy.close();
    proxy.closeAllConnections();
  }
});
