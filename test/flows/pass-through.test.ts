/* oxlint-disable vitest/no-conditional-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { gunzipSync, gzipSync } from 'node:zlib';
import { map } from 'rxjs';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { definePlugin } from 'sluice';
import quota from '../../plugins/quota/index.ts';
import rateLimit from '../../plugins/rate-limit/index.ts';
import usageLog from '../../plugins/usage-log/index.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import {
  call,
  fetchRaw,
  formatNames,
  read,
  voices,
  type Answer,
  type FormatName,
  type Voice,
} from './_wire.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let reading: TestGateway;
let counting: TestGateway;
let behaviour: (response: ServerResponse, voice: Voice, asStream: boolean) => void;

/** Does nothing, but asked to see what is said. */
const reader = definePlugin({
  name: 'reader',
  stage: 'shape',
  reads: 'content',
  setup: () => async (context, next) => (await next(context)).pipe(map((event) => event)),
});

/** Wants to know what was used, as a quota would. */
const counter = definePlugin({
  name: 'counter',
  stage: 'admit',
  reads: 'usage',
  setup: () => (context, next) => next(context),
});

beforeAll(async () => {
  upstream = await startUpstream((request, response) => {
    const voice =
      voices[
        request.url.includes('/chat/')
          ? 'chat-completions'
          : request.url.includes('/messages')
            ? 'messages'
            : 'generate-content'
      ];
    behaviour(
      response,
      voice,
      request.url.includes('stream') || /"stream":\s*true/.test(request.body.toString()),
    );
  });
  const mapped = (name: FormatName) => ({
    models: { [voices[name].model]: voices[name].model, [`public-${name}`]: `provider/${name}-2026-01-01` },
  });
  const channels = formatNames.map((name) => voices[name].channel(upstream.url, mapped(name)));
  gateway = await startGateway({
    channels: [
      ...channels,
      voices['generate-content'].channel(upstream.url, { id: 'any', models: ['any-*'] }),
    ],
  });
  reading = await startGateway({ channels, plugins: [reader()] });
  counting = await startGateway({ channels, plugins: [counter()] });
});
afterAll(async () => {
  await gateway.close();
  await reading.close();
  await counting.close();
  await upstream.close();
});
beforeEach(async () => {
  await gateway.forgetLines();
  await counting.forgetLines();
  upstream.requests.length = 0;
});

const answering = (response: ServerResponse, voice: Voice, asStream: boolean, model?: string): void => {
  response
    .writeHead(200, { 'content-type': asStream ? 'text/event-stream' : 'application/json' })
    .end(
      asStream
        ? voice.frames(['ein', ' Wort'], model).join('')
        : JSON.stringify(voice.whole('ein Wort', model)),
    );
};

const logged = async (from: TestGateway = gateway): Promise<Record<string, unknown>> => {
  await expect.poll(() => from.lines.some(({ plugin }) => plugin === 'logging')).toBe(true);
  return from.lines.findLast(({ plugin }) => plugin === 'logging') ?? {};
};

/** A body that no serializer would write like this. */
function oddBody(format: FormatName, stream: boolean, extra = ''): string {
  const odd = `"x_new_field" : {"n":1.0,"big":12345678901234567890,"e":1E+5,"esc":"\\u00fc\\/", "2":1,"1":2}`;
  const options = format === 'chat-completions' && stream ? '"stream_options": {"include_usage": true},' : '';
  const inner = JSON.stringify(voices[format].body(voices[format].model, stream)).slice(1, -1);
  return ` {\t${odd} ,${options}${extra}\n ${inner}\r\n}\n`;
}

describe.each(formatNames)('%s through a channel of its own format', (format) => {
  const voice = voices[format];

  test.each([true, false])('the request reaches the provider byte for byte (stream: %s)', async (stream) => {
    behaviour = answering;
    const body = oddBody(format, stream);
    const answer = await fetchRaw(gateway, voice.path(voice.model, stream), { body, headers: voice.headers });
    expect(answer.status, answer.text).toBe(200);
    expect(upstream.requests[0]?.body.toString()).toBe(body);
    expect(await logged()).toMatchObject({ passThrough: true });
  });

  test('only the model’s name changes when the channel calls it otherwise', async () => {
    behaviour = answering;
    for (const stream of [true, false]) {
      upstream.requests.length = 0;
      const body = oddBody(format, stream).replace(`"${voice.model}"`, `"public-${format}"`);
      const answer = await fetchRaw(gateway, voice.path(`public-${format}`, stream), {
        body,
        headers: voice.headers,
      });
      expect(answer.status, answer.text).toBe(200);
      expect(upstream.requests[0]?.body.toString()).toBe(
        body.replace(`"public-${format}"`, `"provider/${format}-2026-01-01"`),
      );
      if (format === 'generate-content')
        expect(decodeURIComponent(upstream.requests[0]?.url ?? '')).toContain(
          `models/provider/${format}-2026-01-01:`,
        );
    }
  });

  test('the answer reaches the client byte for byte, whole', async () => {
    const odd = `\n{ "x" : 1.0, "y":12345678901234567890, "model":"m", "text":"\\u00fc grüße 😀"${' '.repeat(100)}}\n\n`;
    for (const chunked of [true, false]) {
      behaviour = (response) =>
        void response.writeHead(200, chunked ? {} : { 'content-length': Buffer.byteLength(odd) }).end(odd);
      const answer = await call(gateway, format, voice.model, false);
      expect(answer.text).toBe(odd);
      expect(answer.headers['content-length']).toBe(chunked ? undefined : String(Buffer.byteLength(odd)));
    }
  });

  test('a packed answer comes whole, also where it is as long as its first piece will be', async () => {
    const piece = 16 * 1024;
    const noise = randomBytes(2 * piece).toString('hex');
    let unpacked = '';
    let packed = Buffer.alloc(0);
    for (let length = piece; packed.length !== piece; length += Math.ceil((piece - packed.length) * 1.3)) {
      unpacked = JSON.stringify(voice.whole(noise.slice(0, length)));
      packed = gzipSync(unpacked);
    }
    behaviour = (response) =>
      void response.writeHead(200, { 'content-encoding': 'gzip', 'content-length': piece }).end(packed);
    const answer = await call(gateway, format, voice.model, false);
    expect(answer.text).toBe(unpacked);
    expect(answer.headers['content-length']).toBeUndefined();
  });

  test('the answer reaches the client byte for byte, streamed, also what is no JSON', async () => {
    const frames = voice.frames(['a', 'b']);
    const odd = [
      ': note\n\n',
      'id: 7\nretry: 10\ndata: not json at all\n\n',
      'event: new_event\r\ndata: {"n":1.0,"big":12345678901234567890}\r\n\r\n',
      'data:\n\n',
    ];
    const stream = [...frames.slice(0, -voice.ending), ...odd, ...frames.slice(-voice.ending)].join('');
    behaviour = (response) =>
      void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(stream);
    const options =
      format === 'chat-completions'
        ? { body: { ...voice.body(voice.model, true), stream_options: { include_usage: true } } }
        : {};
    const answer = await call(gateway, format, voice.model, true, options);
    expect(answer.text).toBe(stream);
  });

  test('no frame is parsed but the first and those that carry usage', async () => {
    const many = Array.from({ length: 500 }, (_, index) => `word ${index}`);
    behaviour = (response) =>
      void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(voice.frames(many).join(''));
    const parse = vi.spyOn(JSON, 'parse');
    try {
      await call(gateway, format, voice.model, true);
      const parsed = parse.mock.calls
        .map(([text]) => text)
        .filter((text) => text.includes('word ') && !text.includes('usage'));
      expect(parsed.filter((text) => !text.includes('"word 0"'))).toEqual([]);
      // generateContent says its usage in every chunk.
      if (format !== 'generate-content') expect(parse.mock.calls.length).toBeLessThan(20);
    } finally {
      parse.mockRestore();
    }
  });

  test.each([true, false])('the log knows the usage (stream: %s)', async (stream) => {
    behaviour = answering;
    await call(gateway, format, voice.model, stream);
    expect(await logged()).toMatchObject({
      usage: { input: 5, output: 7 },
      passThrough: true,
      status: 200,
      ended: 'complete',
    });
  });

  test('a plugin that reads content turns it off, and the answer means the same', async () => {
    behaviour = answering;
    for (const stream of [true, false]) {
      const answer = await call(reading, format, voice.model, stream);
      expect(read(format, stream, answer)).toMatchObject({ text: 'ein Wort', complete: true });
      expect(await logged(reading)).toMatchObject({ passThrough: false, usage: { input: 5, output: 7 } });
    }
  });

  test('a compressed request goes on plain and is otherwise the same', async () => {
    behaviour = answering;
    const body = oddBody(format, false);
    const packed = gzipSync(body);
    expect(gunzipSync(packed).toString()).toBe(body);
    await fetchRaw(gateway, voice.path(voice.model, false), {
      body: packed,
      headers: { ...voice.headers, 'content-encoding': 'gzip' },
    });
    expect(upstream.requests[0]?.body.toString()).toBe(body);
    expect(upstream.requests[0]?.headers['content-length']).toBe(String(Buffer.byteLength(body)));
  });
});

describe('usage that only the gateway asks for', () => {
  const voice = voices['chat-completions'];

  test('is asked for without touching a byte of the rest, and is not shown to the client', async () => {
    behaviour = answering;
    const body = oddBody('chat-completions', true).replace('"stream_options": {"include_usage": true},', '');
    const answer = await fetchRaw(counting, '/v1/chat/completions', { body, headers: voice.headers });
    const sent = upstream.requests[0]?.body.toString() ?? '';
    expect(JSON.parse(sent)).toMatchObject({ stream_options: { include_usage: true } });
    for (const kept of ['"n":1.0', '12345678901234567890', '1E+5', '\\u00fc\\/', '"2":1,"1":2'])
      expect(sent).toContain(kept);
    expect(answer.text).not.toContain('"usage"');
    expect(read('chat-completions', true, answer)).toMatchObject({ text: 'ein Wort', complete: true });
    expect(await logged(counting)).toMatchObject({ usage: { input: 5, output: 7 } });
  });

  test('is asked for also where the client said something else about streams, or said no', async () => {
    for (const options of [{ include_obfuscation: false }, { include_usage: false }, null]) {
      behaviour = answering;
      upstream.requests.length = 0;
      await counting.forgetLines();
      const answer = await call(counting, 'chat-completions', voice.model, true, {
        body: { ...voice.body(voice.model, true), stream_options: options },
      });
      expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toMatchObject({
        stream_options: { ...options, include_usage: true },
      });
      expect(answer.text).not.toContain('"usage"');
      expect(await logged(counting)).toMatchObject({ usage: { output: 7 } });
    }
  });

  test('is shown to a client that asked for it', async () => {
    behaviour = answering;
    const answer = await call(counting, 'chat-completions', voice.model, true, {
      body: { ...voice.body(voice.model, true), stream_options: { include_usage: true } },
    });
    expect(read('chat-completions', true, answer).output).toBe(7);
  });

  test('is not asked for where nobody wants to know', async () => {
    behaviour = answering;
    const uncounted = await startGateway({
      channels: [voice.channel(upstream.url)],
      plugins: [quota.off(), rateLimit.off(), usageLog.off()],
    });
    try {
      const answer = await call(uncounted, 'chat-completions', voice.model, true);
      expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).not.toHaveProperty('stream_options');
      expect(answer.text).toBe(voice.frames(['ein', ' Wort']).join(''));
    } finally {
      await uncounted.close();
    }
  });

  test('is not asked of a provider for a whole answer', async () => {
    behaviour = answering;
    await call(counting, 'chat-completions', voice.model, false);
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).not.toHaveProperty('stream_options');
  });
});

describe('the model’s name in the answer is the one the client asked for', () => {
  const pairs = formatNames.flatMap((client) => formatNames.map((channel) => [client, channel] as const));
  describe.each(pairs)('%s client, %s channel', (client, channel) => {
    test.each([true, false])('stream: %s', async (stream) => {
      behaviour = (response, voice, asStream) =>
        answering(response, voice, asStream, `provider/${channel}-2026-01-01`);
      const answer: Answer = await call(gateway, client, `public-${channel}`, stream);
      expect(answer.status, answer.text).toBe(200);
      expect(answer.ended).toBe(true);
      expect(answer.text).not.toContain('provider/');
      const { models, text, complete } = read(client, stream, answer);
      expect(new Set(models)).toEqual(new Set([`public-${channel}`]));
      expect({ text, complete }).toEqual({ text: 'ein Wort', complete: true });
    });
  });

  test.each(formatNames)('also in a long answer of %s, and its length is right', async (format) => {
    const long = 'lang '.repeat(100_000);
    behaviour = (response, voice) => {
      const body = JSON.stringify(voice.whole(long, `provider/${format}-2026-01-01`));
      response.writeHead(200, { 'content-length': Buffer.byteLength(body) }).end(body);
    };
    const answer = await call(gateway, format, `public-${format}`, false);
    expect(answer.ended).toBe(true);
    expect(read(format, false, answer)).toMatchObject({ text: long, models: [`public-${format}`] });
    expect(await logged()).toMatchObject({ usage: { output: 7 } });
  });
});

test('a model’s name cannot lead to another address of the provider', async () => {
  behaviour = answering;
  for (const name of [
    'any-/../../../v1/files',
    'any-?key=mine#',
    'any-%2e%2e/x',
    'any-:countTokens',
    'any-\\..\\x',
  ]) {
    for (const client of formatNames) {
      upstream.requests.length = 0;
      const answer = await call(
        gateway,
        client,
        client === 'generate-content' ? encodeURIComponent(name) : name,
        false,
      );
      expect(answer.status, answer.text).toBe(200);
      expect(upstream.requests[0]?.url).toBe(`/v1beta/models/${encodeURIComponent(name)}:generateContent`);
    }
  }
});

describe('a provider that sends blank lines without end', () => {
  let floods = true;
  const flooding = new Set<ServerResponse>();
  const flood = (head: string) => (response: ServerResponse, voice: Voice, asStream: boolean) => {
    if (!floods) {
      answering(response, voice, asStream);
      return;
    }
    flooding.add(response);
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write(head);
    const lines = '\n'.repeat(16 * 1024);
    const more = (): void => {
      while (!response.destroyed && response.write(lines));
    };
    response.on('drain', more).on('close', () => flooding.delete(response));
    more();
  };

  test.each([
    ['passes', () => gateway],
    ['is translated', () => reading],
  ])('is given up where its answer %s', async (_how, route) => {
    behaviour = flood('\n');
    for (const stream of [true, false]) {
      for (const format of formatNames) {
        floods = true;
        const given = await call(route(), format, voices[format].model, stream);
        expect(given).toMatchObject({ status: 502, text: expect.stringContaining('blank lines') as string });
        floods = false;
        expect(await call(route(), format, voices[format].model, stream)).toMatchObject({ status: 200 });
      }
    }
    await expect.poll(() => flooding.size).toBe(0);
  });

  test.each(formatNames)('keeps no other call waiting while its stream of %s passes', async (format) => {
    behaviour = flood(': hello\n\n');
    floods = true;
    const voice = voices[format];
    const leave = new AbortController();
    const flooded = await fetch(new URL(voice.path(voice.model, true), gateway.url), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${gateway.key}`,
        ...voice.headers,
      },
      body: JSON.stringify(voice.body(voice.model, true)),
      signal: leave.signal,
    });
    const client = (flooded.body as ReadableStream<Uint8Array>).getReader();
    let taken = 0;
    const most = 8 * 1024 * 1024;
    const taking = (async () => {
      while (taken < most) taken += (await client.read()).value?.length ?? most;
    })();
    floods = false;
    for (let round = 0; round < 10; round += 1)
      expect(await call(gateway, format, voice.model, true)).toMatchObject({ status: 200 });
    await taking;
    leave.abort();
    await expect.poll(() => flooding.size).toBe(0);
  });
});
