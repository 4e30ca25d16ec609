import OpenAI from 'openai';
import { ResponsesWS } from 'openai/resources/responses/ws';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { refusedSocket, SocketClient } from '../support/websocket.ts';
import { startProcess } from './_process.ts';
import { voices } from './_wire.ts';

type Json = Record<string, unknown>;

let gateway: TestGateway;
let url: string;
/** Begins a stream and never ends it. */
let endless: ScriptedUpstream;

beforeAll(async () => {
  endless = await startUpstream((_request, response) => {
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .write(voices.messages.frames(['so far']).slice(0, -voices.messages.ending).join(''));
  });
  gateway = await startGateway({
    channels: [
      demo({ id: 'chat', speaks: ['chat-completions'], models: ['via-chat', 'via-chat!*'] }),
      demo({ id: 'native', speaks: ['responses'], models: ['via-responses', 'via-responses!*'] }),
      demo({ id: 'slow', speaks: ['messages'], models: ['slow'], pace: 5 }),
      voices.messages.channel(endless.url),
    ],
  });
  url = `${gateway.url}/v1/responses`;
});
afterAll(async () => {
  await gateway.close();
  await endless.close();
});

const bearer = (key = gateway.key) => ({ headers: { authorization: `Bearer ${key}` } });
const open = (): Promise<SocketClient> => SocketClient.open(url, bearer());
const create = (fields: Json): Json => ({ type: 'response.create', ...fields });
const isLast = ({ type }: Json): boolean =>
  type === 'response.completed' || type === 'response.incomplete' || type === 'error';
const textOf = (messages: readonly Json[]): string =>
  messages
    .filter(({ type }) => type === 'response.output_text.delta')
    .map(({ delta }) => delta)
    .join('');

/** The events of one call, from its request to its last event. */
async function respond(client: SocketClient, fields: Json): Promise<Json[]> {
  const from = client.messages.length;
  const before = client.messages.filter(isLast).length;
  client.send(create(fields));
  await client.until(isLast, before + 1);
  return client.messages.slice(from);
}

/** Ids and times differ from call to call; all else must not. */
const plain = (events: readonly Json[]): unknown =>
  JSON.parse(
    JSON.stringify(events)
      .replaceAll(/\b(resp|msg|rs|fc|call)_[A-Za-z0-9_]+/g, '$1')
      .replaceAll(/"(created_at|completed_at)":\d+/g, '"$1":0')
      .replaceAll(/"obfuscation":"[^"]*"/g, '"obfuscation":""'),
  );

describe('a call over a socket', () => {
  test.each(['via-chat', 'via-responses'])(
    'gets the events that a stream would have had (%s)',
    async (model) => {
      const body = { model, input: 'Say something nice, please.', store: false };
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...bearer().headers, 'content-type': 'application/json' },
        body: JSON.stringify({ ...body, stream: true }),
      });
      const frames = parseSse(await response.text());
      expect(frames.pop()?.data).toBe('[DONE]');
      const streamed = frames.map(({ data }) => JSON.parse(data) as Json);
      const client = await open();
      const events = await respond(client, body);
      expect(plain(events)).toEqual(plain(streamed));
      expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
      expect(events[0]?.type).toBe('response.created');
      expect(events.at(-1)?.type).toBe('response.completed');
      expect(textOf(events)).toContain('Say something nice, please.');
      const again = await respond(client, { ...body, stream_id: 'second' });
      expect(again.every(({ stream_id: lane }) => lane === 'second')).toBe(true);
      expect(plain(again.map(({ stream_id: _lane, ...event }) => event))).toEqual(plain(streamed));
      client.vanish();
    },
  );

  test('goes on from the one before by its id', async () => {
    const client = await open();
    const tools = [{ type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }];
    const first = await respond(client, { model: 'via-chat', tools, input: 'Please call get_weather' });
    const { response } = first.at(-1) as { response: { id: string; output: Json[] } };
    const call = response.output.find(({ type }) => type === 'function_call');
    const second = await respond(client, {
      model: 'via-chat',
      tools,
      previous_response_id: response.id,
      input: [{ type: 'function_call_output', call_id: call?.call_id, output: 'sunny' }],
    });
    expect(textOf(second)).toBe('get_weather returned: sunny');
    client.vanish();
  });

  test('goes on from a warm-up that was not stored, and only on the same connection', async () => {
    const client = await open();
    const fields = { model: 'via-chat', store: false };
    const warm = await respond(client, { ...fields, generate: false, instructions: 'Be brief.', input: [] });
    expect(warm.at(-1)).toMatchObject({ type: 'response.completed', response: { output: [] } });
    const { id } = (warm.at(-1) as { response: { id: string } }).response;
    const first = await respond(client, { ...fields, previous_response_id: id, input: 'Hello' });
    expect(textOf(first)).toBe('You said: Hello');
    const stranger = await open();
    expect(await respond(stranger, { ...fields, previous_response_id: id, input: 'Hello' })).toMatchObject([
      { type: 'error', status: 400, error: { code: 'previous_response_not_found' } },
    ]);
    client.vanish();
    stranger.vanish();
  });

  test('does not wait for one of another stream', async () => {
    const client = await open();
    client.send(create({ model: 'via-messages', input: 'forever', stream_id: 'long' }));
    await client.until(({ type }) => type === 'response.output_text.delta');
    const short = await respond(client, { model: 'via-chat', input: 'quick', stream_id: 'short' });
    expect(textOf(short.filter(({ stream_id: lane }) => lane === 'short'))).toContain('quick');
    client.send({ type: 'response.cancel', stream_id: 'long' });
    await endless.requests.at(-1)?.closed;
    const [end] = await client.until(({ type }) => type === 'error');
    expect(end).toMatchObject({ stream_id: 'long', error: { code: 'client_closed_request' } });
    client.vanish();
  });

  test('of a browser is answered, which can show its key in a subprotocol only', async () => {
    const protocols = ['realtime', `openai-insecure-api-key.${gateway.key}`];
    const socket = new WebSocket(url.replace('http', 'ws'), protocols);
    const events: Json[] = [];
    socket.addEventListener('message', ({ data }) => events.push(JSON.parse(String(data)) as Json));
    await new Promise((resolve) => socket.addEventListener('open', resolve));
    expect(socket.protocol).toBe('realtime');
    socket.send(JSON.stringify(create({ model: 'via-chat', input: 'Hello' })));
    await expect.poll(() => events.some(isLast), { interval: 5 }).toBe(true);
    expect(textOf(events)).toBe('You said: Hello');
    socket.close();
  });

  test('of the official client is answered', async () => {
    const official = new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1` });
    const socket = new ResponsesWS(official);
    const events: Json[] = [];
    const failures: Error[] = [];
    socket.on('event', (event) => events.push(event as unknown as Json));
    socket.on('error', (error) => failures.push(error));
    socket.send({ type: 'response.create', model: 'via-chat', input: 'Hello' });
    await expect.poll(() => events.some(isLast), { interval: 5 }).toBe(true);
    expect(textOf(events)).toBe('You said: Hello');
    socket.send({ type: 'response.create', model: 'via-chat!status=429', input: 'Hello' });
    await expect.poll(() => failures.length, { interval: 5 }).toBe(1);
    expect(failures[0]?.message).toBe('The demo answers 429, as you asked.');
    socket.send({ type: 'response.create', model: 'via-chat!error-after=1', input: 'One two three' });
    await expect.poll(() => failures.length, { interval: 5 }).toBe(2);
    socket.close();
  });
});

describe('what is refused', () => {
  test('a connection without a valid key: 401 in the format, before it opens', async () => {
    for (const options of [{}, bearer('sk-wrong')]) {
      const refusal = await refusedSocket(url, options);
      expect(refusal.status).toBe(401);
      expect(refusal.headers['x-request-id']).toMatch(/^req_/);
      expect(refusal.body).toMatchObject({ error: { type: 'invalid_request_error' } });
    }
  });

  test('nobody who shows the key in another of its places', async () => {
    const { key } = gateway;
    const ways: [string, object, string[]][] = [
      [url, { headers: { 'x-api-key': key } }, []],
      [`${url}?key=${key}`, {}, []],
      [url, {}, ['realtime', `openai-insecure-api-key.${key}`]],
    ];
    for (const [address, options, protocols] of ways) {
      const client = await SocketClient.open(address, options, protocols);
      expect(client.socket.protocol).toBe(protocols[0] ?? '');
      expect(textOf(await respond(client, { model: 'via-chat', input: 'Hello' }))).toBe('You said: Hello');
      client.vanish();
    }
    expect(JSON.stringify(gateway.lines)).not.toContain(key);
  });

  test('the calls of a key that was revoked while its connection was open', async () => {
    const { record, value } = await gateway.apiKeys.create({ name: 'short-lived' });
    const client = await SocketClient.open(url, bearer(value));
    expect((await respond(client, { model: 'via-chat', input: 'Hello' })).at(-1)?.type).toBe(
      'response.completed',
    );
    await gateway.apiKeys.revoke(record.id);
    expect(await respond(client, { model: 'via-chat', input: 'Hello' })).toMatchObject([
      { type: 'error', status: 401, error: { code: 'invalid_api_key' } },
    ]);
    client.vanish();
  });

  test('what is wrong in a request, with its path; the connection stays', async () => {
    const client = await open();
    const wrong: readonly (readonly [Json, number, Json])[] = [
      [{ input: 'hi' }, 400, { code: 'missing_required_parameter', param: 'model' }],
      [
        { model: 'via-chat', input: 'hi', temperature: 'hot' },
        400,
        { code: 'invalid_type', param: 'temperature' },
      ],
      [{ model: 'nobody', input: 'hi' }, 503, { code: 'no_available_channel' }],
      [{ model: 'via-chat!status=503', input: 'hi' }, 503, { type: 'service_unavailable_error' }],
    ];
    for (const [fields, status, error] of wrong)
      expect(await respond(client, fields)).toMatchObject([{ type: 'error', status, error }]);
    expect(textOf(await respond(client, { model: 'via-chat', input: 'Hello' }))).toBe('You said: Hello');
    client.vanish();
  });

  test('a reply that breaks says so in both shapes, and the connection stays', async () => {
    const client = await open();
    const events = await respond(client, { model: 'via-chat!error-after=2', input: 'One two three four' });
    expect(events[0]?.type).toBe('response.created');
    const error = events.find(({ type }) => type === 'error') as { message: string; error: Json };
    expect(error).toMatchObject({ status: expect.any(Number), sequence_number: expect.any(Number) });
    expect(error.error.message).toBe(error.message);
    expect(textOf(await respond(client, { model: 'via-chat', input: 'Hello' }))).toBe('You said: Hello');
    client.vanish();
  });

  test('GET without the wish for a socket: 426', async () => {
    const response = await fetch(url, bearer());
    expect(response.status).toBe(426);
    expect(response.headers.get('upgrade')).toBe('websocket');
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error' } });
    expect((await refusedSocket(`${gateway.url}/v1/messages`, bearer())).status).toBe(405);
    expect((await refusedSocket(`${gateway.url}/nowhere`, bearer())).status).toBe(404);
  });
});

test('each call has a line of its own in the log', async () => {
  const client = await open();
  const from = gateway.lines.length;
  await respond(client, { model: 'via-chat', input: 'Hello' });
  await respond(client, { model: 'via-responses', input: 'Hello' });
  await expect.poll(() => gateway.lines.length, { interval: 2 }).toBeGreaterThanOrEqual(from + 2);
  const lines = gateway.lines.slice(from).filter(({ plugin }) => plugin === 'logging');
  expect(lines).toMatchObject([
    {
      format: 'responses',
      operation: 'chat',
      model: 'via-chat',
      stream: true,
      ended: 'complete',
      channel: 'chat',
    },
    {
      format: 'responses',
      operation: 'chat',
      model: 'via-responses',
      stream: true,
      ended: 'complete',
      channel: 'native',
    },
  ]);
  expect(lines[0]?.id).not.toBe(lines[1]?.id);
  client.vanish();
});

test('a client that vanishes lets go of every provider at once', async () => {
  const client = await open();
  const from = endless.requests.length;
  for (const lane of ['a', 'b', 'c'])
    client.send(create({ model: 'via-messages', input: 'forever', stream_id: lane }));
  await client.until(({ type }) => type === 'response.output_text.delta', 3);
  client.vanish();
  await Promise.all(endless.requests.slice(from).map(({ closed }) => closed));
  expect(endless.requests).toHaveLength(from + 3);
});

test('a stopping gateway lets the call of a socket finish, and closes the others', async () => {
  const goOn = Promise.withResolvers<void>();
  const voice = voices.messages;
  const frames = voice.frames(['before', ' the', ' end']);
  const provider = await startUpstream(async (_request, response) => {
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .write(frames.slice(0, -voice.ending).join(''));
    await goOn.promise;
    response.end(frames.slice(-voice.ending).join(''));
  });
  const child = await startProcess(
    `timeouts: { drain: 20_000, drainDelay: 0 }, channels: [anthropic({ key: 'k', baseUrl: '${provider.url}/v1', models: ['via-messages'] })]`,
  );
  try {
    const address = `${child.url}/v1/responses`;
    const busy = await SocketClient.open(address, bearer(child.key));
    const idle = await SocketClient.open(address, bearer(child.key));
    busy.send(create({ model: 'via-messages', input: 'hi' }));
    await busy.until(({ type }) => type === 'response.output_text.delta');
    child.signal('SIGTERM');
    expect((await idle.closed).code).toBe(1001);
    busy.send(create({ model: 'via-messages', input: 'one more', stream_id: 'late' }));
    expect(await busy.until(({ type }) => type === 'error')).toMatchObject([
      { status: 503, stream_id: 'late', error: { code: 'server_is_overloaded' } },
    ]);
    goOn.resolve();
    expect((await busy.closed).code).toBe(1001);
    expect(busy.messages.at(-1)?.type).toBe('response.completed');
    expect(textOf(busy.messages)).toBe('before the end');
    expect(await child.exited).toBe(0);
  } finally {
    await child.end();
    await provider.close();
  }
});

test('a reader that stops costs the gateway little memory, and gets every event when it goes on', async () => {
  const MiB = 1024 * 1024;
  // Behind it come events with the whole text: a client takes none of more than 100 MiB.
  const size = 60 * MiB;
  const voice = voices.messages;
  const word = 'x'.repeat(1000);
  const frames = voice.frames([word]);
  const middle = frames.at(-voice.ending - 1) ?? '';
  let words = 0;
  const provider = await startUpstream(async (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(frames.slice(0, -voice.ending - 1).join(''));
    words = 0;
    for (let sent = 0; sent < size && !response.destroyed; sent += middle.length * 60) {
      words += 60;
      if (response.write(middle.repeat(60))) continue;
      await new Promise<void>((resolve) => {
        const go = (): void => {
          response.off('drain', go).off('close', go);
          resolve();
        };
        response.on('drain', go).on('close', go);
      });
    }
    response.end(frames.slice(-voice.ending).join(''));
  });
  const child = await startProcess(
    `channels: [anthropic({ key: 'k', baseUrl: '${provider.url}/v1', models: ['via-messages'] })]`,
  );
  try {
    const warm = await SocketClient.open(`${child.url}/v1/responses`, bearer(child.key));
    for (let count = 0; count < 20; count += 1) await respond(warm, { model: 'nobody', input: 'hi' });
    const before = child.memory();
    const client = await SocketClient.open(`${child.url}/v1/responses`, bearer(child.key));
    client.send(create({ model: 'via-messages', input: 'hi', store: false }));
    client.socket.removeAllListeners('message');
    let got = 0;
    let complete = false;
    client.socket.on('message', (data: Buffer) => {
      if (data.includes('"response.output_text.delta"')) got += 1;
      else complete ||= data.includes('"type":"response.completed"');
    });
    await expect.poll(() => words, { interval: 5 }).toBeGreaterThan(0);
    client.socket.pause();
    let peak = 0;
    for (let count = 0; count < 20; count += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      peak = Math.max(peak, child.memory());
    }
    const heldUp = words;
    console.log(
      `stalled for 2 s after ${((heldUp * middle.length) / MiB).toFixed(1)} MiB, RSS +${((peak - before) / MiB).toFixed(1)} MiB`,
    );
    expect(heldUp * middle.length).toBeLessThan(30 * MiB);
    expect(peak - before).toBeLessThan(80 * MiB);
    client.socket.resume();
    await expect.poll(() => complete, { interval: 20 }).toBe(true);
    expect(got).toBe(words);
    client.vanish();
    warm.vanish();
  } finally {
    await child.end();
    await provider.close();
  }
});
