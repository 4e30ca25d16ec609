import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import anthropic from '../../channels/anthropic.ts';
import gemini from '../../channels/gemini.ts';
import openai from '../../channels/openai.ts';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import { parseObject } from '../../core/json/parse.ts';
import { isObject } from '../../core/model/json.ts';
import { fixturesOf } from '../support/fixtures.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { everything, selectRotating } from '../support/tries.ts';
import { fetchRaw, type Answer } from './_wire.ts';

/** Responses of a provider as written pieces, by model. */
const answers = new Map<string, { readonly type: string; readonly pieces: readonly Buffer[] }>();

let upstream: Server;
let gateway: TestGateway;
const sockets = new Set<Socket>();

/**
 * A provider that writes each piece as a chunk of its own: however the system gathers what is sent, every chunk reaches the gateway by
 * itself.
 */
beforeAll(async () => {
  upstream = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    let received = '';
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1');
      const model = /via-[a-z-]+--[\w-]+/.exec(received)?.[0] ?? '';
      const answer = answers.get(model);
      const end = received.indexOf('\r\n\r\n');
      if (answer === undefined || end < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 'NaN');
      if (Number.isNaN(length) ? !received.endsWith('0\r\n\r\n') : received.length < end + 4 + length) return;
      received = '';
      const head = `HTTP/1.1 200 OK\r\ncontent-type: ${answer.type}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n`;
      const parts = answer.pieces.flatMap((piece) => [
        Buffer.from(`${piece.length.toString(16)}\r\n`),
        piece,
        Buffer.from('\r\n'),
      ]);
      socket.end(Buffer.concat([Buffer.from(head), ...parts, Buffer.from('0\r\n\r\n')]));
    });
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  const channelOptions = (format: string, version = 'v1') => ({
    id: format,
    key: 'sk-upstream',
    baseUrl: `${url}/${version}`,
    models: [`via-${format}--*`],
  });
  gateway = await startGateway({
    channels: [
      openai({ ...channelOptions('chat-completions'), traits: { '*': { formats: ['chat-completions'] } } }),
      openai({ ...channelOptions('responses'), traits: { '*': { formats: ['responses'] } } }),
      openai({ ...channelOptions('text-completions'), traits: { '*': { formats: ['text-completions'] } } }),
      openai({ ...channelOptions('images') }),
      openai({ ...channelOptions('audio') }),
      anthropic(channelOptions('messages')),
      gemini(channelOptions('generate-content', 'v1beta')),
    ],
  });
});
afterAll(async () => {
  await gateway.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => upstream.close(resolve));
});

/** Byte by byte what begins a stream and what ends it; what stands between goes seven at a time, with `npm run fuzz` byte by byte as well. */
function byteByByte(bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = [];
  for (let at = 0, size = 1; at < bytes.length; at += size) {
    size = everything || at < 1_000 || at > bytes.length - 300 ? 1 : 7;
    pieces.push(bytes.subarray(at, at + size));
  }
  return pieces;
}

/** Ways in which a provider's response is split. */
const cuts: Readonly<Record<string, (text: string) => Buffer[]>> = {
  'one event a write': (text) => text.split(/(?<=\r?\n\r?\n)/).map((event) => Buffer.from(event)),
  'one byte a write': (text) => byteByByte(Buffer.from(text)),
  'CRLF line ends': (text) => [Buffer.from(text.replaceAll('\n', '\r\n'))],
  'all at once': (text) => [Buffer.from(text)],
  ...(everything
    ? {
        'CRLF line ends, one event a write': (text) =>
          text
            .replaceAll('\n', '\r\n')
            .split(/(?<=\r\n\r\n)/)
            .map((event) => Buffer.from(event)),
      }
    : {}),
};

/** For what has no events. */
const { 'one event a write': _events, ...cutsOfWhole } = cuts;

/** Requests of a client of each format. */
const asks: Readonly<
  Record<
    string,
    {
      path(model: string, stream: boolean): string;
      body(model: string, stream: boolean): object;
      headers?: Record<string, string>;
    }
  >
> = {
  'chat-completions': {
    path: () => '/v1/chat/completions',
    body: (model, stream) => ({
      model,
      stream,
      ...(stream ? { stream_options: { include_usage: true } } : {}),
      messages: [{ role: 'user', content: 'Hi' }],
    }),
  },
  messages: {
    path: () => '/v1/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: (model, stream) => ({
      model,
      stream,
      max_tokens: 100,
      messages: [{ role: 'user', content: 'Hi' }],
    }),
  },
  responses: {
    path: () => '/v1/responses',
    body: (model, stream) => ({ model, stream, store: false, input: 'Hi' }),
  },
  'generate-content': {
    path: (model, stream) =>
      `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }),
  },
  'text-completions': {
    path: () => '/v1/completions',
    body: (model, stream) => ({
      model,
      stream,
      ...(stream ? { stream_options: { include_usage: true } } : {}),
      prompt: 'Hi',
    }),
  },
  images: {
    path: () => '/v1/images/generations',
    body: (model) => ({ model, stream: true, prompt: 'A cat' }),
  },
  audio: {
    path: () => '/v1/audio/speech',
    body: (model, stream) => ({
      model,
      ...(stream ? { stream_format: 'sse' } : {}),
      input: 'Hi',
      voice: 'alloy',
    }),
  },
};

let count = 0;

/** Returns the response that a client receives when a provider of any format writes these pieces. */
async function replayed(
  client: string,
  provider: string,
  pieces: readonly Buffer[],
  stream = true,
  type = stream ? 'text/event-stream' : 'application/json',
): Promise<Answer> {
  const sendByFormat = asks[client];
  if (sendByFormat === undefined) throw new Error(`Nobody asks in ${client}.`);
  count += 1;
  const model = `via-${provider}--${count}`;
  answers.set(model, { type, pieces });
  try {
    return await fetchRaw(gateway, sendByFormat.path(model, stream), {
      body: JSON.stringify(sendByFormat.body(model, stream)),
      headers: { ...sendByFormat.headers },
    });
  } finally {
    answers.delete(model);
  }
}

/** An answer without what differs from call to call: ids that the gateway made, times, the model's name. */
function steady(text: string): string {
  const known = new Map<string, string>();
  return text
    .replaceAll(/"(created|created_at|completed_at|expires_at)":\d+/g, '"$1":0')
    .replaceAll(/via-[a-z-]+--\d+/g, 'm')
    .replaceAll(
      /\b(msg|resp|rs|fc|ctc|call|toolu|chatcmpl|cmpl|req|ig|audio)[_-][\w-]+/g,
      (id, kind: string) => {
        if (!known.has(id)) known.set(id, `${kind}_${known.size}`);
        return known.get(id) ?? '';
      },
    );
}

/** Why a client would call this answer broken; undefined for a sound one. */
function errorIn(text: string): string | undefined {
  return parseSse(text).find(({ event, data }) => {
    const body = parseObject(data);
    return event === 'error' || body?.type === 'error' || isObject(body?.error);
  })?.data;
}

const chats = ['chat-completions', 'messages', 'responses', 'generate-content'];

describe.each([...chats, 'text-completions', 'images', 'audio'])('a stream of %s', (format) => {
  const fixtures = [...fixturesOf(format, 'streams', '.sse'), ...fixturesOf(format, 'tolerated', '.sse')];

  test.each(fixtures)('$name reaches a client of its own format as it is, in every cut', async ({ text }) => {
    for (const [cut, pieces] of Object.entries(cuts)) {
      const sent = pieces(text);
      const { status, ended, text: got } = await replayed(format, format, sent);
      expect({ cut, status, ended, got }).toEqual({
        cut,
        status: 200,
        ended: true,
        got: Buffer.concat(sent).toString(),
      });
    }
  });

  const others = chats.includes(format) ? chats.filter((other) => other !== format) : [];
  test.each(
    fixtures.flatMap((fixture, nth) => selectRotating(others, nth).map((client) => ({ ...fixture, client }))),
  )('$name says the same to a client of $client in every cut', async ({ text, client }) => {
    let first: string | undefined;
    for (const [cut, pieces] of Object.entries(cuts)) {
      const { status, ended, text: got } = await replayed(client, format, pieces(text));
      expect({ cut, status, ended, error: errorIn(got) }).toEqual({ cut, status: 200, ended: true });
      first ??= steady(got);
      expect({ cut, got: steady(got) }).toEqual({ cut, got: first });
    }
  });
});

describe.each([...chats, 'text-completions'])('a whole reply of %s', (format) => {
  const fixtures = fixturesOf(format, 'replies', '.json');
  const spaced = { name: 'with an error that is none', text: '' };
  const [plain] = fixtures;
  if (plain !== undefined) spaced.text = `\n\n{ "error" : null,${plain.text.trimStart().slice(1)}`;

  test.each([...fixtures, spaced])(
    '$name reaches a client of its own format as it is, in every cut',
    async ({ text }) => {
      const compact = `\n${JSON.stringify(JSON.parse(text))}\n`;
      for (const [cut, pieces] of Object.entries(cutsOfWhole)) {
        for (const written of [text, compact]) {
          const sent = pieces(written);
          const { status, ended, text: got } = await replayed(format, format, sent, false);
          expect({ cut, status, ended, got }).toEqual({
            cut,
            status: 200,
            ended: true,
            got: Buffer.concat(sent).toString(),
          });
        }
      }
    },
  );
});

describe('speech', () => {
  test.each(['ID3\u0004 sound', '{ sound of a kind', 'd', 'date: sound', '\n', '<sound>'])(
    'that begins %j is the provider’s own bytes, in every cut',
    async (sound) => {
      for (const pieces of Object.values(cutsOfWhole)) {
        const sent = pieces(sound);
        const { status, text } = await replayed('audio', 'audio', sent, false, 'audio/mpeg');
        expect({ status, text }).toEqual({ status: 200, text: Buffer.concat(sent).toString() });
      }
    },
  );

  test.each(['{"error":{"message":"no such voice"}}', ' {\n "detail": "no such voice"}', '{ }', '<html>no'])(
    'that is %s in its place is an error, in every cut',
    async (message) => {
      for (const pieces of Object.values(cutsOfWhole)) {
        const { status } = await replayed('audio', 'audio', pieces(message), false, 'audio/mpeg');
        expect(status).toBe(502);
      }
    },
  );
});
