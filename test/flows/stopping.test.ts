import { once } from 'node:events';
import { Agent, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { startProcess, type GatewayProcess } from './_process.ts';
import { fetchRaw, formatNames, read, voices, type Answer, type FormatName } from './_wire.ts';
import { patience } from '../support/patience.ts';

const words = ['before', ' the', ' end'];
let upstream: ScriptedUpstream;
let gateway: GatewayProcess | undefined;
/** Lets the provider go on. */
let goOn = Promise.withResolvers<void>();

beforeAll(async () => {
  upstream = await startUpstream(async (request, response: ServerResponse) => {
    const voice =
      voices[
        request.url.includes('/chat/')
          ? 'chat-completions'
          : request.url.includes('/messages')
            ? 'messages'
            : 'generate-content'
      ];
    const asStream = request.url.includes('stream') || /"stream":\s*true/.test(request.body.toString());
    const frames = voice.frames(words);
    if (asStream)
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .write(frames.slice(0, -voice.ending).join(''));
    await goOn.promise;
    response.end(
      asStream ? frames.slice(-voice.ending).join('') : JSON.stringify(voice.whole(words.join(''))),
    );
  });
});
afterAll(() => upstream.close());
afterEach(async () => {
  goOn.resolve();
  goOn = Promise.withResolvers<void>();
  upstream.requests.length = 0;
  await gateway?.end();
});

const start = async (drain: number): Promise<GatewayProcess> => {
  gateway = await startProcess(`
    timeouts: { drain: ${drain} },
    channels: [
      openai({ key: 'k', baseUrl: '${upstream.url}/v1', models: ['via-chat'] }),
      anthropic({ key: 'k', baseUrl: '${upstream.url}/v1', models: ['via-messages'] }),
      gemini({ key: 'k', baseUrl: '${upstream.url}/v1beta', models: ['via-content'] }),
    ]`);
  return gateway;
};

const agent = new Agent({ keepAlive: true });

/** An open call over a kept-alive connection, as SDKs make it. */
function begin(
  door: GatewayProcess,
  client: FormatName,
  model: string,
  stream: boolean,
): { readonly begun: Promise<void>; readonly answer: Promise<Answer> } {
  const voice = voices[client];
  const begun = Promise.withResolvers<void>();
  const request = send(new URL(voice.path(model, stream), door.url), {
    method: 'POST',
    agent,
    headers: { authorization: `Bearer ${door.key}`, 'content-type': 'application/json', ...voice.headers },
  });
  request.end(JSON.stringify(voice.body(model, stream)));
  const answer = (async (): Promise<Answer> => {
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    response.on('error', () => {});
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      begun.resolve();
    });
    await new Promise<void>((resolve) => response.once('close', () => resolve()));
    const bytes = Buffer.concat(chunks);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      bytes,
      text: bytes.toString(),
      ended: response.complete,
    };
  })();
  return { begun: begun.promise, answer };
}

const refuses = (url: string): Promise<string> =>
  new Promise((resolve) => {
    const { port, hostname } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.once('connect', () => {
      socket.destroy();
      resolve('connected');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
  });

describe.each(['SIGTERM', 'SIGINT'] as const)('%s', (signal) => {
  test('lets open streams finish, refuses new connections, and ends with 0', async () => {
    const door = await start(20_000);
    const open = formatNames.flatMap((client) => [
      begin(door, client, 'via-messages', true),
      begin(door, client, 'via-chat', true),
    ]);
    const whole = begin(door, 'chat-completions', 'via-chat', false);
    await Promise.all(open.map(({ begun }) => begun));
    const idle = await fetchRaw(door, '/healthz');
    expect(idle.status).toBe(200);
    await expect.poll(() => upstream.requests.length).toBeGreaterThanOrEqual(7);
    door.signal(signal);
    await expect.poll(() => refuses(door.url)).toBe('ECONNREFUSED');
    goOn.resolve();
    const endedAt = performance.now();
    for (const [index, { answer }] of open.entries()) {
      const client = formatNames[Math.floor(index / 2)] ?? 'messages';
      expect(read(client, true, await answer)).toMatchObject({ text: words.join(''), complete: true });
    }
    expect(read('chat-completions', false, await whole.answer)).toMatchObject({
      text: words.join(''),
      complete: true,
    });
    expect(await door.exited).toBe(0);
    console.log(
      `${signal}: ended ${(performance.now() - endedAt).toFixed(0)} ms after the last stream was let go on`,
    );
  });
});

test('after the deadline open streams end with an error in their format, and the process with 0', async () => {
  const door = await start(700);
  const open = formatNames.map((client) => ({ client, call: begin(door, client, 'via-messages', true) }));
  await Promise.all(open.filter(({ client }) => client !== 'generate-content').map(({ call }) => call.begun));
  const waiting = begin(door, 'messages', 'via-chat', false);
  await expect.poll(() => upstream.requests.length).toBeGreaterThanOrEqual(4);
  door.signal('SIGTERM');
  for (const { client, call } of open) {
    const got = await call.answer;
    expect(got.ended).toBe(true);
    const reply = read(client, true, got);
    expect(reply.text).toBe(words.join(''));
    expect(reply.complete).toBe(false);
    expect(JSON.stringify(reply.error)).toContain('shutting down');
  }
  const refused = await waiting.answer;
  expect(refused.status).toBe(503);
  expect(refused.headers['retry-after']).toBe('1');
  expect(await door.exited).toBe(0);
});

test('connections on which no call is open keep nobody from stopping, used or not', async () => {
  const door = await start(2 * patience.test);
  const port = Number(new URL(door.url).port);
  const open = async (said: string): Promise<void> => {
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(said);
  };
  await open('');
  await open('POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-half: ');
  await open('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
  expect((await fetchRaw(door, '/healthz')).status).toBe(200);
  door.signal('SIGTERM');
  const toldAt = performance.now();
  expect(await door.exited).toBe(0);
  const took = performance.now() - toldAt;
  console.log(
    `ended ${took.toFixed(0)} ms after SIGTERM, with connections that said nothing, half a header, and all`,
  );
});

test('a client that reads nothing cannot keep the gateway from stopping', async () => {
  const door = await start(300);
  const { answer } = begin(door, 'chat-completions', 'via-chat', true);
  void answer.catch(() => {});
  const socket = connect(Number(new URL(door.url).port), '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write('POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{');
  await new Promise((resolve) => setTimeout(resolve, 100));
  door.signal('SIGTERM');
  expect(await door.exited).toBe(0);
  socket.destroy();
});
