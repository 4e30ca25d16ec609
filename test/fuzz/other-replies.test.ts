/* oxlint-disable vitest/expect-expect, vitest/no-conditional-expect, vitest/no-standalone-expect, vitest/valid-expect -- one test serves many cases: what is expected depends on the case, and the message says which it was. */
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { parseSse } from '../../core/formats/_shared/sse.ts';
import type { JsonObject } from '../../core/model/json.ts';
import type { SeenRequest } from '../support/upstream.ts';
import {
  hangUp,
  picture,
  post,
  readRefusal,
  recording,
  soundReply,
  startPlayground,
  written,
  type Answering,
  type Got,
  type Part,
  type Playground,
} from './_other-operations.ts';
import { near, noise } from './_mutate.ts';
import { selectRotating, tries } from '../support/tries.ts';

const seed = 20_261_120;

/** Options for sending a response. */
interface Sending {
  readonly status: number;
  readonly type: string | undefined;
  readonly framing: 'length' | 'chunked' | 'close';
  readonly gzip: boolean;
  /** The connection breaks behind this share of the bytes. */
  readonly cut: number | undefined;
}

let ground: Playground;
let reply: { readonly body: Buffer; readonly sending: Sending };
const crashes: unknown[] = [];
const onCrash = (error: unknown): void => void crashes.push(error);
const outcomes = new Map<string, number>();

function script(_request: SeenRequest, response: ServerResponse): void {
  const { body, sending } = reply;
  const { status, type, framing, gzip, cut } = sending;
  const bytes = gzip ? gzipSync(body) : body;
  if (framing === 'close') {
    response.useChunkedEncodingByDefault = false;
    response.shouldKeepAlive = false;
  }
  response.writeHead(status, {
    ...(type === undefined ? {} : { 'content-type': type }),
    ...(gzip ? { 'content-encoding': 'gzip' } : {}),
    ...(framing === 'length' ? { 'content-length': String(bytes.length) } : {}),
  });
  if (cut === undefined) response.end(bytes);
  else
    response.write(bytes.subarray(0, Math.min(bytes.length - 1, Math.floor(bytes.length * cut))), () =>
      response.destroy(),
    );
}

beforeAll(async () => {
  process.on('uncaughtException', onCrash);
  process.on('unhandledRejection', onCrash);
  ground = await startPlayground({}, script);
});
afterAll(async () => {
  await ground.close();
  hangUp();
  process.off('uncaughtException', onCrash);
  process.off('unhandledRejection', onCrash);
  const counts = [...outcomes].toSorted().map(([outcome, count]) => `${count} × ${outcome}`);
  console.log(`fuzzed replies of other operations, seed ${seed}: ${counts.join(', ')}`);
});
afterEach(() => {
  expect(crashes.splice(0)).toEqual([]);
});

type Json = Record<string, unknown>;
const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isCount = (value: unknown): boolean =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;

/** One endpoint and the provider behind it. */
interface Row {
  readonly name: string;
  readonly format: string;
  readonly path: string;
  readonly body: JsonObject | readonly Part[];
  /** The provider’s own sound reply. */
  readonly sound: Answering;
  /** The provider’s words reach its client as they are, the wrong ones too. */
  readonly verbatim: boolean;
  readonly kind: 'json' | 'stream' | 'bytes';
  /** Throws when what a client got is no reply of its format; only for what the gateway writes itself. */
  check(got: Got): void;
}

function checkVectors({ text }: Got, count: number): void {
  const { object, data, usage, model } = JSON.parse(text) as Json;
  expect([object, typeof model]).toEqual(['list', 'string']);
  const entries = data as Json[];
  expect(entries.map(({ index }) => index)).toEqual(Array.from({ length: count }, (_, index) => index));
  for (const { embedding } of entries) {
    const numbers =
      typeof embedding === 'string'
        ? Array.from({ length: Buffer.from(embedding, 'base64').length / 4 }, (_, at) =>
            Buffer.from(embedding, 'base64').readFloatLE(at * 4),
          )
        : (embedding as unknown[]);
    expect(numbers.length).toBeGreaterThan(0);
    expect(numbers.every((one) => typeof one === 'number' && Number.isFinite(one))).toBe(true);
  }
  expect(isRecord(usage) && isCount(usage.prompt_tokens) && isCount(usage.total_tokens)).toBe(true);
}

function checkContentVectors({ text }: Got, count: number): void {
  const { embeddings, embedding } = JSON.parse(text) as Json;
  const all = (embeddings ?? [embedding]) as { readonly values: unknown[] }[];
  expect(all).toHaveLength(count);
  for (const { values } of all) {
    expect(values.length).toBeGreaterThan(0);
    expect(values.every((one) => typeof one === 'number' && Number.isFinite(one))).toBe(true);
  }
}

function checkScores({ text }: Got): void {
  const { results, id, usage } = JSON.parse(text) as Json;
  expect(id).toBeTypeOf('string');
  const ranked = results as { readonly index: number; readonly relevance_score: number }[];
  expect(ranked.length).toBeLessThanOrEqual(2);
  expect(new Set(ranked.map(({ index }) => index)).size).toBe(ranked.length);
  expect(ranked.every(({ index }) => index === 0 || index === 1)).toBe(true);
  expect(ranked.every(({ relevance_score: score }) => Number.isFinite(score))).toBe(true);
  expect(ranked.map(({ relevance_score: score }) => score)).toEqual(
    ranked.map(({ relevance_score: score }) => score).toSorted((one, other) => other - one),
  );
  expect(isRecord(usage) && isCount(usage.total_tokens)).toBe(true);
}

function checkTranscript({ text }: Got): void {
  const { text: transcript, segments = [], words = [], duration } = JSON.parse(text) as Json;
  expect(transcript).toBeTypeOf('string');
  for (const { start, end, text: piece } of segments as Json[])
    expect([typeof start, typeof end, typeof piece]).toEqual(['number', 'number', 'string']);
  expect((words as unknown[]).every(isRecord)).toBe(true);
  expect(duration === undefined || isCount(duration)).toBe(true);
}

function checkSubtitles({ text }: Got): void {
  if (text === '') return;
  const cues = text.replace(/\n$/, '').split('\n\n');
  cues.forEach((cue, index) => {
    const [number, times] = cue.split('\n');
    expect([number, times], text).toEqual([
      String(index + 1),
      expect.stringMatching(/^\d{2,}:\d\d:\d\d,\d{3} --> \d{2,}:\d\d:\d\d,\d{3}$/) as string,
    ]);
  });
}

function checkWave({ bytes, headers }: Got): void {
  expect(headers['content-type']).toMatch(/^(audio\/[\w.+-]+|application\/octet-stream)/);
  expect(bytes.length).toBeGreaterThan(0);
  if (bytes.toString('latin1', 0, 4) !== 'RIFF') return;
  expect(bytes.readUInt32LE(4)).toBe(bytes.length - 8);
  expect(bytes.length).toBeGreaterThan(44);
  expect(bytes.readUInt32LE(24)).toBeGreaterThan(0);
}

function checkImages({ text }: Got): void {
  const { data, created } = JSON.parse(text) as Json;
  expect(isCount(created)).toBe(true);
  const images = data as Json[];
  expect(images.length).toBeGreaterThan(0);
  for (const { b64_json: base64, url } of images) expect(typeof (base64 ?? url)).toBe('string');
}

function checkVerdicts({ text }: Got): void {
  const { id, results, model } = JSON.parse(text) as Json;
  expect([typeof id, typeof model]).toEqual(['string', 'string']);
  expect((results as unknown[]).every(isRecord)).toBe(true);
}

/** Every frame is a JSON object, and the last one says that all is over, or that something failed. */
function checkFrames({ text }: Got, terminal: RegExp): void {
  const frames = parseSse(text)
    .filter(({ data }) => data !== '[DONE]')
    .map(({ data }) => JSON.parse(data) as Json);
  expect(frames.every(isRecord), text).toBe(true);
  const last = frames.at(-1);
  expect(last?.error !== undefined || terminal.test(String(last?.type)), text.slice(-300)).toBe(true);
}

const anything = (): void => {};
const inputs = { input: ['one', 'two'] };
const documents = { query: 'which', documents: ['one', 'two'] };
const file: Part = { name: 'file', value: recording, filename: 'a.wav', type: 'audio/wav' };
const form = (model: string, ...fields: readonly (readonly [string, string])[]): readonly Part[] => [
  { name: 'model', value: model },
  ...fields.map(([name, value]) => ({ name, value })),
  file,
];
const two = (got: Got): void => checkVectors(got, 2);
const batch = {
  requests: ['one', 'two'].map((text) => ({ model: 'models/x', content: { parts: [{ text }] } })),
};
const pictureUrl = `data:image/png;base64,${picture.toString('base64')}`;

const embeddings = (model: string, url: string, body: JsonObject, more: JsonObject = {}): Row => ({
  name: `embeddings · ${model}${more.encoding_format === 'base64' ? ' · base64' : ''}`,
  format: 'embeddings',
  path: '/v1/embeddings',
  body: { model, ...inputs, ...more },
  sound: soundReply(url, body),
  verbatim: false,
  kind: 'json',
  check: two,
});
const embedText = { requests: ['one', 'two'] };
const rerank = (model: string, url: string): Row => ({
  name: `rerank · ${model}`,
  format: 'rerank',
  path: '/v1/rerank',
  body: { model, ...documents },
  sound: soundReply(url, documents),
  verbatim: false,
  kind: 'json',
  check: checkScores,
});
const audio = (
  name: string,
  path: string,
  body: Row['body'],
  sound: Answering,
  more: Pick<Row, 'verbatim' | 'kind' | 'check'>,
): Row => ({ name: `audio · ${name}`, format: 'audio', path, body, sound, ...more });
const transcriptRow = { verbatim: false, kind: 'json', check: checkTranscript } as const;
const transcriptions = '/v1/audio/transcriptions';
const speech = '/v1/audio/speech';
const done = (got: Got): void => checkFrames(got, /^(transcript\.text|speech\.audio)\.done$/);
const completed = (got: Got): void => checkFrames(got, /^image_(generation|edit)\.completed$/);

const rows: readonly Row[] = [
  {
    ...embeddings('text-embedding-3-small', '/embeddings', inputs),
    name: 'embeddings · as they come',
    verbatim: true,
    check: anything,
  },
  embeddings(
    'text-embedding-3-small',
    '/embeddings',
    { ...inputs, encoding_format: 'base64' },
    { encoding_format: 'base64' },
  ),
  embeddings('embed-v4.0', '/v2/embed', { texts: ['one', 'two'] }),
  embeddings('jina-embeddings-v4', '/embeddings', inputs),
  embeddings('voyage-4', '/embeddings', inputs, { encoding_format: 'base64' }),
  embeddings('gemini-embedding-001', ':batchEmbedContents', embedText),
  embeddings('gemini-embedding-001', ':batchEmbedContents', embedText, { encoding_format: 'base64' }),
  {
    name: 'generate-content embed · text-embedding-3-small',
    format: 'generate-content',
    path: '/v1beta/models/text-embedding-3-small:batchEmbedContents',
    body: batch,
    sound: soundReply('/embeddings', { ...inputs, encoding_format: 'base64' }),
    verbatim: false,
    kind: 'json',
    check: (got) => checkContentVectors(got, 2),
  },
  {
    name: 'generate-content embed · gemini-embedding-001',
    format: 'generate-content',
    path: '/v1beta/models/gemini-embedding-001:embedContent',
    body: { content: { parts: [{ text: 'one' }] } },
    sound: soundReply(':batchEmbedContents', { requests: ['one'] }),
    verbatim: false,
    kind: 'json',
    check: (got) => checkContentVectors(got, 1),
  },
  rerank('rerank-v4.0', '/v2/rerank'),
  rerank('jina-reranker-v3', '/v1/rerank'),
  rerank('rerank-2.5', '/voyage/v1/rerank'),
  {
    name: 'moderations · of no model',
    format: 'moderations',
    path: '/v1/moderations',
    body: { input: ['one', 'two'] },
    sound: soundReply('/moderations', inputs),
    verbatim: false,
    kind: 'json',
    check: checkVerdicts,
  },
  audio(
    'transcribe · as it comes',
    transcriptions,
    form('whisper-1', ['response_format', 'verbose_json']),
    soundReply('/audio/transcriptions', { response_format: 'verbose_json' }),
    { verbatim: true, kind: 'json', check: anything },
  ),
  audio(
    'transcribe · decoded',
    transcriptions,
    form('whisper-1', ['response_format', 'verbose_json'], ['instructions', 'names']),
    soundReply('/audio/transcriptions', { response_format: 'verbose_json' }),
    transcriptRow,
  ),
  audio(
    'translate-audio · decoded',
    '/v1/audio/translations',
    form('whisper-1', ['instructions', 'names']),
    soundReply('/audio/translations', {}),
    transcriptRow,
  ),
  audio(
    'transcribe · srt of segments',
    transcriptions,
    form('whisper-large-v3', ['response_format', 'srt']),
    soundReply('/audio/transcriptions', { response_format: 'verbose_json' }),
    { verbatim: false, kind: 'json', check: checkSubtitles },
  ),
  audio(
    'transcribe · stream as it comes',
    transcriptions,
    form('gpt-4o-transcribe', ['stream', 'true']),
    soundReply('/audio/transcriptions', { stream: 'true' }),
    { verbatim: true, kind: 'stream', check: done },
  ),
  audio(
    'transcribe · stream decoded',
    transcriptions,
    form('gpt-4o-transcribe', ['stream', 'true'], ['instructions', 'names']),
    soundReply('/audio/transcriptions', { stream: 'true' }),
    { verbatim: false, kind: 'stream', check: done },
  ),
  audio(
    'speak · bytes',
    speech,
    { model: 'tts-1', input: 'Hello', voice: 'nova' },
    soundReply('/audio/speech', {}),
    { verbatim: true, kind: 'bytes', check: anything },
  ),
  audio(
    'speak · events of bytes',
    speech,
    { model: 'tts-1', input: 'Hello', voice: 'nova', stream_format: 'sse' },
    soundReply('/audio/speech', {}),
    { verbatim: false, kind: 'stream', check: done },
  ),
  audio(
    'speak · events as they come',
    speech,
    { model: 'gpt-4o-mini-tts', input: 'Hello', voice: 'nova', stream_format: 'sse' },
    soundReply('/audio/speech', { stream_format: 'sse' }),
    { verbatim: true, kind: 'stream', check: done },
  ),
  audio(
    'speak · of contents',
    speech,
    { model: 'gemini-2.5-flash-preview-tts', input: 'Hello', voice: 'Kore' },
    soundReply('tts:generateContent', {}),
    { verbatim: false, kind: 'json', check: checkWave },
  ),
  audio(
    'speak · events of contents',
    speech,
    { model: 'gemini-2.5-flash-preview-tts', input: 'Hello', voice: 'Kore', stream_format: 'sse' },
    soundReply('tts:generateContent', {}),
    { verbatim: false, kind: 'stream', check: done },
  ),
  {
    name: 'images · as they come',
    format: 'images',
    path: '/v1/images/generations',
    body: { model: 'gpt-image-1', prompt: 'the moon' },
    sound: soundReply('/images/generations', {}),
    verbatim: true,
    kind: 'json',
    check: anything,
  },
  {
    name: 'images · of contents',
    format: 'images',
    path: '/v1/images/edits',
    body: { model: 'gemini-2.5-flash-image', prompt: 'redder', images: [{ image_url: pictureUrl }] },
    sound: soundReply('image:generateContent', {}),
    verbatim: false,
    kind: 'json',
    check: checkImages,
  },
  {
    name: 'images · stream as it comes',
    format: 'images',
    path: '/v1/images/generations',
    body: { model: 'gpt-image-1', prompt: 'the moon', stream: true },
    sound: soundReply('/images/generations', { stream: true }),
    verbatim: true,
    kind: 'stream',
    check: completed,
  },
];

function send({ path, body }: Row): Promise<Got> {
  if (!Array.isArray(body)) return post(ground, path, JSON.stringify(body));
  return post(ground, path, written(body as readonly Part[]), {
    'content-type': 'multipart/form-data; boundary=x',
  });
}

const plainly: Sending = {
  status: 200,
  type: 'application/json',
  framing: 'length',
  gzip: false,
  cut: undefined,
};

/** Gives the client’s answer to a provider’s reply, which is a sound one of its format or an error in its envelope, and nothing in between. */
async function expectSane(row: Row, body: Buffer, sending: Sending): Promise<Got> {
  reply = { body, sending };
  ground.gateway.lines.length = 0;
  const got = await send(row);
  const what = `${JSON.stringify(sending)} ${body.toString().slice(0, 600)}\n→ ${got.status} ${got.text.slice(0, 600)}`;
  const count = (outcome: string): void => void outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  // A failure of a provider is told as one; the gateway itself has not failed.
  expect(got.text, what).not.toContain('internal_error');
  const failed = ground.gateway.lines.filter(
    ({ level, code }) => level === 'error' && code === 'internal_error',
  );
  expect(failed, what).toEqual([]);
  if (got.status !== 200) {
    count(String(got.status));
    expect(got.status, what).toBeGreaterThanOrEqual(400);
    expect(got.status, what).not.toBe(500);
    expect(got.ended, what).toBe(true);
    expect(readRefusal(row.format, got).message, what).not.toBe('');
    return got;
  }
  if (!got.ended) {
    count('200 and broken off');
    expect(row.kind !== 'stream' && row.verbatim, what).toBe(true);
    return got;
  }
  count('200');
  const isCut = sending.cut !== undefined && sending.framing !== 'close';
  if (row.kind === 'stream') {
    expect(got.headers['content-type'], what).toBe('text/event-stream');
    try {
      row.check(got);
    } catch (error) {
      throw new Error(what, { cause: error });
    }
    return got;
  }
  expect(isCut, `a cut reply ended well: ${what}`).toBe(false);
  if (row.verbatim) {
    if (row.kind === 'json') expect(isRecord(JSON.parse(got.text)), what).toBe(true);
    return got;
  }
  try {
    row.check(got);
  } catch (error) {
    throw new Error(what, { cause: error });
  }
  return got;
}

const statusOf = fc.constantFrom(
  200,
  200,
  200,
  200,
  201,
  204,
  206,
  302,
  400,
  401,
  404,
  422,
  429,
  500,
  503,
  599,
);
const types = fc.constantFrom(
  'application/json',
  'application/json; charset=utf-8',
  'text/event-stream',
  'text/plain',
  'text/html',
  'audio/mpeg',
  'application/octet-stream',
  'nonsense',
  undefined,
);

/** Framings in which a truncated reply can be detected; without a length, the close of the connection is the end. */
const framings = fc.constantFrom<Sending['framing'][]>('length', 'chunked');

const sendings: fc.Arbitrary<Sending> = fc.record({
  status: fc.constant(200),
  type: types,
  framing: framings,
  gzip: fc.boolean(),
  cut: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { freq: 2, nil: undefined }),
});

/** Errors as vendors tell them with whatever status, and things that are no answer. */
const errorBodies = [
  '{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}',
  '{"error":"no such model"}',
  '{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}',
  '[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]',
  '{"message":"invalid api token"}',
  '{"detail":"bad key"}',
  '{"error":{"toString":1,"valueOf":1}}',
  '{"error":{"message":{"toString":1}}}',
  '<html><body>502 Bad Gateway</body></html>',
  'upstream connect error',
  '',
  ' ',
  'null',
  '[]',
  '{}',
  '"text"',
  '42',
  'data: {"error":{"message":"overloaded"}}\n\n',
  'event: error\ndata: {"error":{"message":"overloaded","type":"server_error","code":null,"param":null}}\n\n',
  'data: [DONE]\n\n',
  ': a comment\n\n',
];

/** Values that are right in type or nearly so, and wrong for all else. */
const wrongs: readonly string[] = [
  '{"data":[{"index":4294967294,"embedding":[1]}]}',
  '{"data":[{"index":-1,"embedding":[1]},{"index":0.5,"embedding":[1]}]}',
  '{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}',
  '{"data":[{"index":0,"embedding":[1]}]}',
  '{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}',
  '{"data":[{"index":0,"embedding":[1e400]},{"index":1,"embedding":[1]}]}',
  '{"data":[{"index":0,"embedding":"@@@"},{"index":1,"embedding":"@@@"}]}',
  '{"data":[{"index":0,"embedding":"AAA="},{"index":1,"embedding":""}]}',
  '{"data":[{"index":0,"embedding":"AADAfw=="},{"index":1,"embedding":"AACAfw=="}]}',
  '{"embeddings":[{"values":"AAA="},{"values":"x"}]}',
  '{"embeddings":[{"values":[1]},{"values":[1e400]}],"usageMetadata":{"promptTokenCount":"1e999"}}',
  '{"embeddings":[{"values":[1]},{"values":[1]},{"values":[1]}]}',
  '{"embeddings":{"float":[[1],[]]}}',
  '{"embeddings":{"float":[[1],[1]]},"meta":{"billed_units":{"input_tokens":-5}}}',
  '{"results":[{"index":0,"relevance_score":1e400},{"index":1,"relevance_score":0}]}',
  '{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":2},{"index":9,"relevance_score":3}]}',
  '{"data":[{"index":1,"relevance_score":"1"}]}',
  '{"results":[{"index":0,"relevance_score":1}],"usage":{"total_tokens":-1}}',
  '{"results":[null]}',
  '{"text":"x","duration":{"toString":1,"valueOf":1}}',
  '{"text":"x","duration":-5,"segments":[{"start":0,"end":1,"text":"x"}]}',
  '{"text":"x","segments":[{"start":{"toString":1,"valueOf":1},"end":1,"text":"x"}]}',
  '{"text":"x","segments":[{"start":"x","end":1e400,"text":"x"}]}',
  '{"text":"x","segments":[{"start":1e300,"end":1e300,"text":"x"}]}',
  '{"text":"x","segments":[{"start":0,"end":1,"text":"a\\n\\n7\\n00:00:01,000 --> 00:00:02,000\\nb"}],"words":[1,null]}',
  '{"text":"x","usage":{"seconds":{"toString":1,"valueOf":1}}}',
  '{"text":"x","usage":{"seconds":-5}}',
  '{"text":"x","segments":[],"words":[]}',
  '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16;rate=99999999999","data":"AQIDBA=="}}]}}]}',
  '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16;rate=0","data":"AQIDBA=="}}]}}]}',
  '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/wav\\r\\nx: y","data":"AQIDBA=="}}]}}]}',
  '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"text/html","data":"AQIDBA=="}}]}}]}',
  '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/wäv☃","data":"AQIDBA=="}}]}}]}',
  '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16","data":""}}]}}]}',
  '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"audio/L16","data":5}}]}}]}',
  '{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"%%%"}}]}}]}',
  '{"candidates":[{"finishReason":"SAFETY"}]}',
  '{"predictions":[null]}',
];

describe.each(rows.map((row) => [row.name, row] as const))('%s', (_name, row) => {
  const sound = Buffer.from(row.sound.body);
  const usual: Sending = { ...plainly, type: row.sound.type };

  test('a sound reply is one, compressed or not, however its end is marked', async () => {
    for (const framing of ['length', 'chunked', 'close'] as const)
      for (const gzip of [false, true]) {
        // oxlint-disable-next-line no-await-in-loop -- one reply after the other
        const got = await expectSane(row, sound, { ...usual, framing, gzip });
        expect([got.status, got.ended], got.text).toEqual([200, true]);
      }
  });

  test('a cut reply never ends well', async () => {
    for (let nth = 0; nth < 12; nth += 1)
      for (const framing of selectRotating(['length', 'chunked'] as const, nth + rows.indexOf(row))) {
        const cut = nth / 12;
        // oxlint-disable-next-line no-await-in-loop -- one reply after the other
        const got = await expectSane(row, sound, { ...usual, framing, cut });
        const isReported = got.status !== 200 || !got.ended || got.text.includes('"error"');
        expect(isReported, `cut at ${cut}: ${got.text}`).toBe(true);
      }
  });

  test('what is wrong in one place is an error, or makes a sound reply all the same', async () => {
    // Those that speak of what this reply speaks of, and some of the others.
    const own = wrongs.filter((text) => row.sound.body.includes(/"\w+":/.exec(text)?.[0] ?? text));
    const others = wrongs.filter((text) => !own.includes(text));
    for (const text of [...own, ...selectRotating(others, rows.indexOf(row), 5)]) {
      // oxlint-disable-next-line no-await-in-loop -- one reply after the other
      await expectSane(row, Buffer.from(text), usual.type === 'text/event-stream' ? plainly : usual);
    }
  });

  test('errors, and what is no answer, are told as errors', async () => {
    for (const [nth, text] of selectRotating(errorBodies, rows.indexOf(row), 3).entries())
      for (const type of selectRotating(['application/json', row.sound.type], nth)) {
        // oxlint-disable-next-line no-await-in-loop -- one reply after the other
        await expectSane(row, Buffer.from(text), { ...plainly, type });
        // oxlint-disable-next-line no-await-in-loop -- as above
        const refused = await expectSane(row, Buffer.from(text), { ...plainly, type, status: 400 });
        expect(refused.status, text).not.toBe(200);
      }
  });

  test('damaged replies and noise', async () => {
    const isJson = row.sound.type.startsWith('application/json');
    const frames = parseSse(String(row.sound.body));
    const damaged: fc.Arbitrary<Buffer> = isJson
      ? near(JSON.parse(String(row.sound.body)), 3).map((text) => Buffer.from(text))
      : row.sound.type === 'text/event-stream'
        ? fc
            .tuple(...frames.map(({ data }) => near(JSON.parse(data), 2)))
            .map((all) => Buffer.from(all.map((data) => `data: ${data}\n\n`).join('')))
        : fc.constant(sound);
    const body = fc.oneof({ weight: 4, arbitrary: damaged }, { weight: 1, arbitrary: noise });
    const wire = body.chain((bytes) =>
      fc.oneof(
        fc.record({ bytes: fc.constant(bytes), sending: fc.constant(usual) }),
        fc.record({ bytes: fc.constant(bytes), sending: sendings }),
        statusOf.map((status) => ({ bytes, sending: { ...usual, status } })),
      ),
    );
    await fc.assert(
      fc.asyncProperty(wire, async ({ bytes, sending }) => {
        await expectSane(row, bytes, sending);
      }),
      { seed, numRuns: tries(120) },
    );
  });
});
