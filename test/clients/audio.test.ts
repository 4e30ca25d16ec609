import { createHash } from 'node:crypto';
import { request as send } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { Busboy } from '@fastify/busboy';
import OpenAI, { toFile } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import geminiChannel from '../../channels/gemini.ts';
import groqChannel from '../../channels/groq.ts';
import openaiChannel from '../../channels/openai.ts';
import { asWave } from '../../core/formats/_shared/speech.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream, type SeenRequest } from '../support/upstream.ts';
import { eventually } from '../support/eventually.ts';
import { uploadNames } from '../support/uploads.ts';

let gateway: TestGateway;
let upstream: ScriptedUpstream;
let answer: (request: SeenRequest, response: import('node:http').ServerResponse) => void;

beforeAll(async () => {
  upstream = await startUpstream((request, response) => answer(request, response));
  const at = (models: readonly string[]) => ({ key: 'k', baseUrl: `${upstream.url}/v1`, models });
  gateway = await startGateway({
    channels: [
      demo(),
      openaiChannel(at(['whisper-1', 'gpt-4o-transcribe', 'tts-1', 'gpt-4o-mini-tts'])),
      groqChannel(at(['whisper-large-v3', 'playai-tts'])),
      openaiChannel({ ...at(['shared']), id: 'first', priority: 1 }),
      groqChannel({ ...at(['shared']), id: 'second' }),
      geminiChannel({
        key: 'k',
        baseUrl: `${upstream.url}/v1beta`,
        models: ['gemini-2.5-flash-preview-tts'],
      }),
    ],
    prices: { 'tts-1': { perCharacter: 0.000_015 }, 'whisper-1': { perSecond: 0.0001 } },
    limits: { audio: 1024 * 1024, inMemory: 64 * 1024 },
    health: { failures: 1000 },
  });
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.requests.length = 0;
});

const openai = (): OpenAI => new OpenAI({ apiKey: gateway.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

const recording = asWave(Buffer.alloc(200_000, 7), 24_000);
const file = () => toFile(recording, 'täst 1.wav', { type: 'audio/wav' });
const hash = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

interface Sent {
  readonly fields: Readonly<Record<string, string>>;
  readonly file: { readonly name: string; readonly type: string; readonly bytes: Buffer };
}

/** The form that a provider got. */
function sent({ headers, body }: SeenRequest): Promise<Sent> {
  return new Promise((resolve, reject) => {
    const parser = new Busboy({ headers: { 'content-type': headers['content-type'] ?? '' } });
    const fields: Record<string, string> = {};
    let got: Sent['file'] = { name: '', type: '', bytes: Buffer.alloc(0) };
    parser.on('field', (name, value) => void (fields[name] = value));
    parser.on('file', (_, stream, name, _encoding, type) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => (got = { name: name ?? '', type, bytes: Buffer.concat(chunks) }));
    });
    parser.on('finish', () => resolve({ fields, file: got }));
    parser.on('error', reject);
    parser.end(body);
  });
}

const verbose = {
  task: 'transcribe',
  language: 'english',
  duration: 4.5,
  text: 'Hello world',
  segments: [
    {
      id: 0,
      seek: 0,
      start: 0,
      end: 2,
      text: ' Hello',
      tokens: [1],
      temperature: 0,
      avg_logprob: -0.1,
      compression_ratio: 1,
      no_speech_prob: 0,
    },
    {
      id: 1,
      seek: 0,
      start: 2,
      end: 4.5,
      text: ' world',
      tokens: [2],
      temperature: 0,
      avg_logprob: -0.1,
      compression_ratio: 1,
      no_speech_prob: 0,
    },
  ],
};
const srt = '1\n00:00:00,000 --> 00:00:02,000\nHello\n\n2\n00:00:02,000 --> 00:00:04,500\nworld\n';

/** A provider that answers every format by itself. */
function allFormats(request: SeenRequest, response: import('node:http').ServerResponse): void {
  void sent(request).then(({ fields }) => {
    const format = fields.response_format ?? 'json';
    if (format === 'json' || format === 'verbose_json') {
      const body =
        format === 'json' ? { text: 'Hello world', usage: { type: 'duration', seconds: 5 } } : verbose;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    } else {
      response
        .writeHead(200, { 'content-type': 'text/plain; charset=utf-8' })
        .end(format === 'srt' ? srt : format === 'vtt' ? 'WEBVTT\n' : 'Hello world\n');
    }
  });
}

describe('transcriptions, by the official client', () => {
  test.each(['demo', 'whisper-1', 'gpt-4o-transcribe', 'whisper-large-v3'])('json · %s', async (model) => {
    answer = allFormats;
    const { text } = await openai().audio.transcriptions.create({
      model,
      file: await file(),
      language: 'en',
    });
    expect(text).toContain(model === 'demo' ? `${recording.length} bytes` : 'Hello world');
    if (model === 'demo') return;
    const [seen] = upstream.requests;
    expect(seen?.url).toBe('/v1/audio/transcriptions');
    const got = await sent(seen as SeenRequest);
    expect(got.fields).toMatchObject({ model, language: 'en' });
    expect(got.file).toMatchObject({ name: 'täst 1.wav', type: 'audio/wav' });
    expect(hash(got.file.bytes)).toBe(hash(recording));
    expect(seen?.headers.authorization).toBe('Bearer k');
  });

  test.each(['demo', 'whisper-1', 'whisper-large-v3'])('verbose_json · %s', async (model) => {
    answer = allFormats;
    const result = await openai().audio.transcriptions.create({
      model,
      file: await file(),
      response_format: 'verbose_json',
      timestamp_granularities: ['segment'],
    });
    expect(result.segments?.length).toBeGreaterThan(0);
    expect(result.duration).toBeGreaterThan(0);
  });

  test.each(['demo', 'whisper-1', 'whisper-large-v3'])('text, srt and vtt · %s', async (model) => {
    answer = allFormats;
    const as = async (format: 'text' | 'srt' | 'vtt'): Promise<string> =>
      (await openai().audio.transcriptions.create({
        model,
        file: await file(),
        response_format: format,
      })) as unknown as string;
    expect(await as('text')).toContain(model === 'demo' ? 'bytes' : 'Hello world');
    const subtitles = await as('srt');
    if (model === 'demo') expect(subtitles).toMatch(/^1\n00:00:00,000 --> /);
    else expect(subtitles).toBe(srt);
    expect(await as('vtt')).toMatch(/^WEBVTT\n/);
  });

  test('a format that the model has not, nor can be made from what it has: 400', async () => {
    answer = allFormats;
    await expect(
      openai().audio.transcriptions.create({
        model: 'gpt-4o-transcribe',
        file: await file(),
        response_format: 'srt',
      }),
    ).rejects.toMatchObject({ status: 400, param: 'response_format' });
    expect(upstream.requests).toHaveLength(0);
  });

  test.each(['demo', 'gpt-4o-transcribe', 'whisper-1'])('stream · %s', async (model) => {
    answer = (request, response) => {
      // The older model knows no streams and answers at once.
      if (model === 'whisper-1') {
        allFormats(request, response);
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"type":"transcript.text.delta","delta":"Hello "}\n\n');
      response.write(
        'event: transcript.text.delta\ndata: {"type":"transcript.text.delta","delta":"world"}\n\n',
      );
      response.end(
        'data: {"type":"transcript.text.done","text":"Hello world","usage":{"type":"tokens","input_tokens":9,"output_tokens":2,"total_tokens":11}}\n\n',
      );
    };
    const events: { type: string }[] = [];
    const stream = await openai().audio.transcriptions.create({ model, file: await file(), stream: true });
    for await (const event of stream) events.push(event);
    expect(events.at(-1)).toMatchObject({ type: 'transcript.text.done' });
    expect(events.filter(({ type }) => type === 'transcript.text.delta').length).toBeGreaterThan(0);
  });

  test('a stream that is cut is an error to the client', async () => {
    answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: {"type":"transcript.text.delta","delta":"Hello "}\n\n');
      setTimeout(() => response.destroy(), 20);
    };
    const stream = await openai().audio.transcriptions.create({
      model: 'gpt-4o-transcribe',
      file: await file(),
      stream: true,
    });
    await expect(
      (async () => {
        for await (const _ of stream) expect(_).toBeDefined();
      })(),
    ).rejects.toThrow(/closed the connection/);
  });

  test('another channel gets the same recording when the first fails', async () => {
    answer = (request, response) => {
      if (upstream.requests.indexOf(request) === 0) response.writeHead(500).end('{}');
      else allFormats(request, response);
    };
    const { text } = await openai().audio.transcriptions.create({ model: 'shared', file: await file() });
    expect(text).toBe('Hello world');
    const got = await Promise.all(upstream.requests.map(sent));
    expect(got.map((one) => hash(one.file.bytes))).toEqual([hash(recording), hash(recording)]);
  });

  test('is charged by the second', async () => {
    answer = allFormats;
    const { value, record } = await gateway.apiKeys.create({ name: 'listener' });
    const client = new OpenAI({ apiKey: value, baseURL: `${gateway.url}/v1` });
    await client.audio.transcriptions.create({ model: 'whisper-1', file: await file() });
    const log = openUsageLog(gateway.stores);
    await eventually(async () => {
      const { records } = await log.page({ keyId: record.id }, 5);
      expect(records).toMatchObject([
        { operation: 'transcribe', microDollars: 500, units: { seconds: 5 }, input: 0, output: 0 },
      ]);
    });
  });
});

test.each(['demo', 'whisper-1', 'whisper-large-v3'])(
  'translations, by the official client · %s',
  async (model) => {
    answer = allFormats;
    const result = await openai().audio.translations.create({ model, file: await file(), prompt: 'names' });
    expect(result.text.length).toBeGreaterThan(0);
    if (model !== 'demo') expect(upstream.requests[0]?.url).toBe('/v1/audio/translations');
  },
);

describe('speech, by the official client', () => {
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => (index * 7) % 256));
  const speaks: typeof answer = (_, response) =>
    void response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(bytes);

  test.each(['demo', 'tts-1', 'gpt-4o-mini-tts', 'playai-tts'])('bytes · %s', async (model) => {
    answer = speaks;
    const response = await openai().audio.speech.create({ model, input: 'Hello', voice: 'nova' });
    const got = Buffer.from(await response.arrayBuffer());
    if (model === 'demo') {
      expect(response.headers.get('content-type')).toBe('audio/wav');
      expect(got.toString('latin1', 0, 4)).toBe('RIFF');
      return;
    }
    expect(response.headers.get('content-type')).toBe('audio/mpeg');
    expect(hash(got)).toBe(hash(bytes));
    expect(JSON.parse(upstream.requests[0]?.body.toString() ?? '')).toEqual({
      model,
      input: 'Hello',
      voice: 'nova',
    });
  });

  test('over generateContent: samples as asked, or WAV with a reported loss', async () => {
    const samples = Buffer.from([1, 2, 3, 4]);
    answer = (_, response) => {
      const inlineData = { mimeType: 'audio/L16;codec=pcm;rate=24000', data: samples.toString('base64') };
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          candidates: [{ content: { parts: [{ inlineData }] }, finishReason: 'STOP' }],
          usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 30, totalTokenCount: 33 },
        }),
      );
    };
    const create = (format: 'pcm' | 'mp3') =>
      openai().audio.speech.create({
        model: 'gemini-2.5-flash-preview-tts',
        input: 'Hello',
        voice: 'Kore',
        response_format: format,
      });
    const pcm = await create('pcm');
    expect(Buffer.from(await pcm.arrayBuffer())).toEqual(samples);
    expect(pcm.headers.get('x-sluice-loss')).toBeNull();
    const other = await create('mp3');
    expect(other.headers.get('content-type')).toBe('audio/wav');
    expect(other.headers.get('x-sluice-loss')).toBe('response_format');
  });

  test.each(['demo', 'gpt-4o-mini-tts', 'tts-1'])('events · %s', async (model) => {
    answer = (request, response) => {
      if (!request.body.includes('stream_format')) {
        speaks(request, response);
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: {"type":"speech.audio.delta","audio":"${bytes.toString('base64')}"}\n\n`);
      response.end(
        'data: {"type":"speech.audio.done","usage":{"input_tokens":2,"output_tokens":9,"total_tokens":11}}\n\n',
      );
    };
    const response = await openai().audio.speech.create({
      model,
      input: 'Hello',
      voice: 'nova',
      stream_format: 'sse',
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const frames = (await response.text())
      .trim()
      .split('\n\n')
      .map((frame) => JSON.parse(frame.slice('data: '.length)) as { type: string; audio?: string });
    expect(frames.at(-1)?.type).toBe('speech.audio.done');
    if (model === 'demo') return;
    const pieces = frames.flatMap(({ audio }) => (audio === undefined ? [] : [Buffer.from(audio, 'base64')]));
    expect(hash(Buffer.concat(pieces))).toBe(hash(bytes));
  });

  test('the first bytes come before the last are made', async () => {
    let finish = (): void => {};
    answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg' });
      response.write(bytes.subarray(0, 1000));
      finish = () => void response.end(bytes.subarray(1000));
    };
    const response = await openai().audio.speech.create({ model: 'tts-1', input: 'Hello', voice: 'nova' });
    const reader = response.body?.getReader();
    const first = await reader?.read();
    expect(first?.value).toHaveLength(1000);
    finish();
    let rest = 0;
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read())
      rest += read.value.length;
    expect(rest).toBe(bytes.length - 1000);
  });

  test('a client that hangs up stops the provider', async () => {
    answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'audio/mpeg' });
      response.write(bytes);
    };
    const leaving = new AbortController();
    const response = await openai().audio.speech.create(
      { model: 'tts-1', input: 'Hello', voice: 'nova' },
      { signal: leaving.signal },
    );
    await response.body?.getReader().read();
    leaving.abort();
    await expect(upstream.requests[0]?.closed).resolves.toBeUndefined();
  });

  test('an error that comes with a status of success is one', async () => {
    answer = (_, response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"error":{"message":"no such voice","type":"invalid_request_error","code":"x"}}');
    await expect(
      openai().audio.speech.create({ model: 'tts-1', input: 'Hello', voice: 'nova' }),
    ).rejects.toMatchObject({ message: expect.stringContaining('no such voice') as string });
  });

  test('is charged by the character, though the bytes tell nothing', async () => {
    answer = speaks;
    const { value, record } = await gateway.apiKeys.create({ name: 'speaker' });
    const client = new OpenAI({ apiKey: value, baseURL: `${gateway.url}/v1` });
    await (
      await client.audio.speech.create({ model: 'tts-1', input: 'Hello!', voice: 'nova' })
    ).arrayBuffer();
    const log = openUsageLog(gateway.stores);
    await eventually(async () => {
      const { records } = await log.page({ keyId: record.id }, 5);
      expect(records).toMatchObject([{ operation: 'speak', microDollars: 90, units: { characters: 6 } }]);
    });
  });

  test('what is wrong is named', async () => {
    const create = (more: object) =>
      openai().audio.speech.create({ model: 'tts-1', input: 'x', voice: 'nova', ...more });
    await expect(create({ input: 'x'.repeat(5000) })).rejects.toMatchObject({ status: 400, param: 'input' });
    await expect(create({ speed: 9 })).rejects.toMatchObject({ status: 400, param: 'speed' });
  });
});

describe('uploads that are refused', () => {
  test('too large: 413 before it was read to its end', async () => {
    let written = 0;
    const status = await new Promise<number>((resolve, reject) => {
      const { port } = new URL(gateway.url);
      const outgoing = send(
        {
          port,
          host: '127.0.0.1',
          method: 'POST',
          path: '/v1/audio/transcriptions',
          headers: {
            authorization: `Bearer ${gateway.key}`,
            'content-type': 'multipart/form-data; boundary=x',
          },
        },
        (response) => {
          resolve(response.statusCode ?? 0);
          response.resume();
        },
      );
      outgoing.on('error', reject);
      outgoing.write('--x\r\ncontent-disposition: form-data; name="file"; filename="a.mp3"\r\n\r\nID3');
      const more = async (): Promise<void> => {
        for (let count = 0; count < 400 && !outgoing.destroyed && outgoing.writable; count += 1) {
          written += 64 * 1024;
          if (!outgoing.write(Buffer.alloc(64 * 1024))) await wait(5);
        }
      };
      void more();
    });
    expect(status).toBe(413);
    expect(written).toBeLessThan(20 * 1024 * 1024);
    await expect.poll(uploadNames).toEqual([]);
  });

  test.each([
    ['JSON where a form must be', 'application/json', '{}', 415],
    ['no boundary', 'multipart/form-data', 'x', 400],
    [
      'cut',
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="file"; filename="a.mp3"\r\n\r\nID3',
      400,
    ],
    [
      'no file',
      'multipart/form-data; boundary=x',
      '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--x--\r\n',
      400,
    ],
  ])('%s', async (_, type, body, status) => {
    const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}`, 'content-type': type },
      body,
    });
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error' } });
    await expect.poll(uploadNames).toEqual([]);
  });

  test('a stranger’s upload is not read at all', async () => {
    const response = await fetch(`${gateway.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-wrong', 'content-type': 'multipart/form-data; boundary=x' },
      body: Buffer.alloc(500_000),
    });
    expect(response.status).toBe(401);
  });

  test('text with the name of a recording', async () => {
    await expect(
      openai().audio.transcriptions.create({
        model: 'whisper-1',
        file: await toFile(Buffer.from('<html>not found</html>'), 'a.mp3', { type: 'audio/mpeg' }),
      }),
    ).rejects.toMatchObject({ status: 400, param: 'file' });
    expect(upstream.requests).toHaveLength(0);
  });
});
