/* oxlint-disable vitest/expect-expect, vitest/no-standalone-expect, vitest/valid-expect -- what is expected stands in the tables and is asserted by the helpers, whose messages say which case it was. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { stripes } from '../../channels/demo/png.ts';
import type { JsonObject } from '../../core/model/json.ts';
import {
  hangUp,
  openUploads,
  picture,
  post,
  readRefusal,
  recording,
  startPlayground,
  written,
  type Got,
  type Part,
  type Playground,
} from '../fuzz/_other-operations.ts';
import { uploadNames } from '../support/uploads.ts';
import { Bare, requestText } from './_socket.ts';

const mega = 1024 * 1024;
let ground: Playground;
beforeAll(async () => {
  ground = await startPlayground({
    limits: { audio: 200_000, image: 5 * mega, video: 200_000, inMemory: 1000, fields: 50, files: 5 },
  });
});
afterAll(async () => {
  await ground.close();
  hangUp();
});
beforeEach(async () => {
  await ground.gateway.forgetLines();
  ground.upstream.requests.length = 0;
});
afterEach(async () => {
  await expect.poll(openUploads).toEqual([]);
  await expect.poll(uploadNames).toEqual([]);
  expect(ground.gateway.lines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
});

const formType = { 'content-type': 'multipart/form-data; boundary=x' };
const file = (value: Buffer = recording, filename = 'a.wav', type = 'audio/wav'): Part => ({
  name: 'file',
  value,
  filename,
  type,
});
const image = (value: Buffer, name = 'image'): Part => ({
  name,
  value,
  filename: 'a.png',
  type: 'image/png',
});
const text = (name: string, value: string): Part => ({ name, value });
const json = (path: string, body: JsonObject): Promise<Got> => post(ground, path, JSON.stringify(body));
const form = (path: string, parts: readonly Part[]): Promise<Got> =>
  post(ground, path, written(parts), formType);

/** The gateway refused by itself: right status, the envelope with the name of the field, nothing reached the provider. */
function expectRefused(format: string, answer: Got, status: number, param: string | undefined): string {
  expect(answer.status, answer.text).toBe(status);
  expect(ground.upstream.requests).toHaveLength(0);
  const refusal = readRefusal(format, answer);
  expect(refusal.param, answer.text).toBe(param);
  return refusal.message;
}

/** Description of the mistake, the body or its change, and the field in the error. */
type Case = readonly [what: string, change: JsonObject, param: string];

const tables: readonly (readonly [
  format: string,
  path: string,
  sound: JsonObject,
  cases: readonly Case[],
])[] = [
  [
    'audio',
    '/v1/audio/speech',
    { model: 'tts-1', input: 'Hello', voice: 'nova' },
    [
      ['no text', { input: null }, 'input'],
      ['an empty text', { input: '' }, 'input'],
      ['4097 characters', { input: 'x'.repeat(4097) }, 'input'],
      ['4097 characters of two units each', { input: '😀'.repeat(4097) }, 'input'],
      ['ten million characters', { input: 'x'.repeat(10_000_000) }, 'input'],
      ['a number for a text', { input: 5 }, 'input'],
      ['no voice', { voice: null }, 'voice'],
      ['a number for a voice', { voice: 5 }, 'voice'],
      ['a voice without its id', { voice: {} }, 'voice.id'],
      ['a speed below the least', { speed: 0.24 }, 'speed'],
      ['a speed above the most', { speed: 4.01 }, 'speed'],
      ['a word for a speed', { speed: 'fast' }, 'speed'],
      ['a list for a format', { response_format: ['mp3'] }, 'response_format'],
      ['a framing that is none', { stream_format: 'ndjson' }, 'stream_format'],
      ['instructions that are no text', { instructions: {} }, 'instructions'],
      ['no model', { model: null }, 'model'],
      ['a number for a model', { model: 5 }, 'model'],
    ],
  ],
  [
    'embeddings',
    '/v1/embeddings',
    { model: 'text-embedding-3-small', input: 'Hello' },
    [
      ['no input', { input: null }, 'input'],
      ['an empty text', { input: '' }, 'input'],
      ['an empty list', { input: [] }, 'input'],
      ['an empty text in a list', { input: ['a', ''] }, 'input[1]'],
      ['a list in a list with a text', { input: [['a']] }, 'input[0][0]'],
      ['tokens that are none', { input: [1, -1] }, 'input[1]'],
      ['tokens with a fraction', { input: [[1, 0.5]] }, 'input[0][1]'],
      ['an empty list of tokens', { input: [[]] }, 'input[0]'],
      ['a null in a list', { input: [null] }, 'input[0]'],
      ['more than 2048 texts', { input: Array<string>(2049).fill('a') }, 'input'],
      ['no length', { dimensions: 0 }, 'dimensions'],
      ['half a length', { dimensions: 1.5 }, 'dimensions'],
      ['a text for a length', { dimensions: '64' }, 'dimensions'],
      ['an encoding that is none', { encoding_format: 'hex' }, 'encoding_format'],
      ['a number for a user', { user: 5 }, 'user'],
    ],
  ],
  [
    'generate-content',
    '/v1beta/models/gemini-embedding-001:batchEmbedContents',
    {},
    [
      ['nothing at all', {}, 'content'],
      ['an empty batch', { requests: [] }, 'requests'],
      ['a text for a batch', { requests: 'x' }, 'requests'],
      ['a request without content', { requests: [{}] }, 'requests[0].content'],
      ['content without parts', { requests: [{ content: {} }] }, 'requests[0].content.parts'],
      ['a part that is no object', { content: { parts: ['x'] } }, 'content.parts[0]'],
      [
        'more than 2048 requests',
        { requests: Array.from({ length: 2049 }, () => ({ content: { parts: [{ text: 'a' }] } })) },
        'requests',
      ],
      [
        'no length',
        { content: { parts: [{ text: 'a' }] }, outputDimensionality: -1 },
        'outputDimensionality',
      ],
    ],
  ],
  [
    'rerank',
    '/v2/rerank',
    { model: 'rerank-v4.0', query: 'which', documents: ['one', 'two'] },
    [
      ['no query', { query: null }, 'query'],
      ['a list for a query', { query: ['x'] }, 'query'],
      ['no documents', { documents: null }, 'documents'],
      ['an empty list', { documents: [] }, 'documents'],
      ['a text for a list', { documents: 'one' }, 'documents'],
      ['a number among them', { documents: ['one', 2] }, 'documents[1]'],
      ['one without a text', { documents: [{ title: 'x' }] }, 'documents[0].text'],
      ['one whose text is none', { documents: [{ text: 5 }] }, 'documents[0].text'],
      ['more than 10 000', { documents: Array<string>(10_001).fill('a') }, 'documents'],
      ['no results', { top_n: 0 }, 'top_n'],
      ['half a result', { top_n: 1.5 }, 'top_n'],
      ['no results, in other words', { top_k: -1 }, 'top_k'],
      ['a word for a flag', { return_documents: 'yes' }, 'return_documents'],
      ['fields that are no list', { rank_fields: 'title' }, 'rank_fields'],
      ['a field that is no name', { rank_fields: ['title', 5] }, 'rank_fields[1]'],
      ['more fields than anybody has', { rank_fields: Array<string>(101).fill('a') }, 'rank_fields'],
      ['fewer than no tokens', { max_tokens_per_doc: -1 }, 'max_tokens_per_doc'],
    ],
  ],
  [
    'moderations',
    '/v1/moderations',
    { model: 'omni-moderation-latest', input: 'Hello' },
    [
      ['no input', { input: null }, 'input'],
      ['an empty list', { input: [] }, 'input'],
      ['a number', { input: 5 }, 'input'],
      ['a number among texts', { input: ['a', 5] }, 'input[1]'],
      ['a number for a model', { model: 5 }, 'model'],
    ],
  ],
  [
    'ocr',
    '/v1/ocr',
    { model: 'mistral-ocr-latest', document: { document_url: 'https://example.com/a.pdf' } },
    [
      ['no document', { document: null }, 'document'],
      ['a text for a document', { document: 'https://example.com/a.pdf' }, 'document'],
      ['a document that is nowhere', { document: { type: 'document_url' } }, 'document.document_url'],
      ['one in two places', { document: { document_url: 'data:,', file_id: 'f' } }, 'document.file_id'],
      ['one of another type', { document: { type: 'file', document_url: 'data:,' } }, 'document.type'],
      ['a path of a file', { document: { document_url: 'file:///etc/passwd' } }, 'document.document_url'],
      ['a number for an image', { document: { image_url: 5 } }, 'document.image_url'],
      ['pages that are none', { pages: 'all' }, 'pages'],
      ['half a page', { pages: [0, 1.5] }, 'pages[1]'],
      ['more pages than a document has', { pages: Array<number>(1001).fill(1) }, 'pages'],
      ['a word for a flag', { include_image_base64: 'yes' }, 'include_image_base64'],
      ['fewer than no images', { image_limit: -1 }, 'image_limit'],
      ['a text for a schema', { document_annotation_format: 'json' }, 'document_annotation_format'],
    ],
  ],
  [
    'images',
    '/v1/images/generations',
    { model: 'dall-e-2', prompt: 'the moon' },
    [
      ['no prompt', { prompt: null }, 'prompt'],
      ['an empty prompt', { prompt: ' ' }, 'prompt'],
      ['a prompt that is too long for the model', { prompt: 'x'.repeat(1001) }, 'prompt'],
      [
        'a prompt that is too long for the newer model',
        { model: 'dall-e-3', prompt: 'x'.repeat(4001) },
        'prompt',
      ],
      ['none', { n: 0 }, 'n'],
      ['more than ten', { n: 11 }, 'n'],
      ['half a one', { n: 1.5 }, 'n'],
      ['two of a model that makes one', { model: 'dall-e-3', n: 2 }, 'n'],
      ['a size that the model has not', { size: '100x100' }, 'size'],
      ['a style that the model has not', { style: 'vivid' }, 'style'],
    ],
  ],
  [
    'videos',
    '/v1/videos',
    { model: 'sora-2', prompt: 'the moon' },
    [
      ['no prompt', { prompt: '' }, 'prompt'],
      ['a size that is none', { size: 'large' }, 'size'],
      ['no seconds', { seconds: 0 }, 'seconds'],
      ['more than an hour', { seconds: '3601' }, 'seconds'],
      ['two at once', { n: 2 }, 'n'],
      ['metadata that are no object', { metadata: 'x' }, 'metadata'],
      ['half a seed', { seed: 0.5 }, 'seed'],
    ],
  ],
];

describe.each(tables)('%s · %s', (format, path, sound, cases) => {
  test.each(cases)('%s is a 400', async (_what, change, param) => {
    expectRefused(format, await json(path, { ...sound, ...change }), 400, param);
  });

  test('a model that nobody has is a 503, a body that is none a 400, a form a 415', async () => {
    if (sound.model !== undefined)
      expectRefused(format, await json(path, { ...sound, model: 'no-such-model' }), 503, 'model');
    expectRefused(format, await post(ground, path, ''), 400, undefined);
    expectRefused(format, await post(ground, path, '{"model":'), 400, undefined);
    expectRefused(format, await post(ground, path, '[]'), 400, undefined);
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    expectRefused(format, await post(ground, path, 'model=x', type), 415, undefined);
  });
});

describe('what is the provider’s to judge passes', () => {
  test.each<readonly [string, string, JsonObject]>([
    ['a voice that nobody knows', '/v1/audio/speech', { model: 'tts-1', input: 'x', voice: 'no-such-voice' }],
    [
      'a format that nobody knows',
      '/v1/audio/speech',
      { model: 'tts-1', input: 'x', voice: 'a', response_format: 'midi' },
    ],
    ['the slowest speed', '/v1/audio/speech', { model: 'tts-1', input: 'x', voice: 'a', speed: 0.25 }],
    ['the fastest speed', '/v1/audio/speech', { model: 'tts-1', input: 'x', voice: 'a', speed: 4 }],
    ['4096 characters', '/v1/audio/speech', { model: 'tts-1', input: '😀'.repeat(4096), voice: 'a' }],
    [
      '2048 texts',
      '/v1/embeddings',
      { model: 'text-embedding-3-small', input: Array<string>(2048).fill('a') },
    ],
    [
      'a field that nobody knows',
      '/v1/moderations',
      { model: 'omni-moderation-latest', input: 'x', odd: [1] },
    ],
    [
      'a prompt of a thousand',
      '/v1/images/generations',
      { model: 'dall-e-2', prompt: 'x'.repeat(1000), n: 10 },
    ],
  ])('%s', async (_what, path, body) => {
    const answer = await json(path, body);
    expect(answer.status, answer.text.slice(0, 300)).toBe(200);
    expect(JSON.parse(ground.upstream.requests[0]?.body.toString() ?? '')).toEqual(body);
  });
});

describe('a field of the client’s own is never taken for a note of the gateway’s', () => {
  test.each<readonly [string, JsonObject, string]>([
    [
      '/v1/embeddings',
      {
        model: 'text-embedding-3-small',
        input: ['a', 'b'],
        encoding_format: 'base64',
        $purpose: { model: 'dear' },
      },
      'text-embedding-3-small',
    ],
    [
      '/v1/embeddings',
      { model: 'text-embedding-3-small', input: ['a', 'b'], encoding_format: 'base64', $single: true },
      'text-embedding-3-small',
    ],
    [
      '/v1/rerank',
      {
        model: 'jina-reranker-v3',
        query: 'q',
        documents: ['a', 'b'],
        $limits: { model: 'dear', query: 'other' },
      },
      'jina-reranker-v3',
    ],
    ['/v1/moderations', { input: ['a', 'b'], $single: true }, 'omni-moderation-latest'],
  ])('%s · %j', async (path, body, model) => {
    expect((await json(path, body)).status).toBe(200);
    const { return_documents: _, ...sent } = JSON.parse(
      ground.upstream.requests[0]?.body.toString() ?? '',
    ) as JsonObject;
    expect(sent).toEqual({ ...body, model });
  });
});

const wide = stripes(64, 32, [
  [0, 0, 0],
  [255, 255, 255],
]);
const small = stripes(32, 32, [
  [0, 0, 0],
  [255, 255, 255],
]);
const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe0]), Buffer.alloc(100)]);
const heavy = Buffer.concat([picture, Buffer.alloc(4 * mega)]);

type FormCase = readonly [what: string, parts: readonly Part[], status: number, param: string | undefined];
const whisper = text('model', 'whisper-1');
const dalle = text('model', 'dall-e-2');
const prompt = text('prompt', 'redder');

const formTables: readonly (readonly [format: string, path: string, cases: readonly FormCase[]])[] = [
  [
    'audio',
    '/v1/audio/transcriptions',
    [
      ['no file', [whisper], 400, 'file'],
      ['a text where the file belongs', [whisper, text('file', 'RIFF')], 400, 'file'],
      ['two files', [whisper, file(), file()], 400, 'file'],
      ['an empty file', [whisper, file(Buffer.alloc(0))], 400, 'file'],
      [
        'a page that calls itself a recording',
        [whisper, file(Buffer.from('<html>not found</html>'), 'a.mp3', 'audio/mpeg')],
        400,
        'file',
      ],
      ['a picture that calls itself a recording', [whisper, file(picture, 'a.wav')], 400, 'file'],
      [
        'an archive that calls itself a recording',
        [whisper, file(Buffer.from('PK\x03\x04zzzz', 'latin1'), 'a.wav')],
        400,
        'file',
      ],
      [
        'a file beyond the limit',
        [whisper, file(Buffer.concat([recording, Buffer.alloc(200_000)]))],
        413,
        'file',
      ],
      [
        'a file beyond the limit under another name',
        [whisper, { ...file(Buffer.alloc(200_001)), name: 'odd[]' }, file()],
        413,
        'odd',
      ],
      ['no model', [file()], 400, 'model'],
      ['two models', [whisper, whisper, file()], 400, 'model'],
      ['a file for a model', [{ ...file(Buffer.from('whisper-1')), name: 'model' }, file()], 400, 'model'],
      ['a format that is none', [whisper, file(), text('response_format', 'docx')], 400, 'response_format'],
      [
        'a format that the model has not',
        [text('model', 'gpt-4o-transcribe'), file(), text('response_format', 'srt')],
        400,
        'response_format',
      ],
      [
        'two formats',
        [whisper, file(), text('response_format', 'json'), text('response_format', 'text')],
        400,
        'response_format',
      ],
      ['a temperature above one', [whisper, file(), text('temperature', '1.1')], 400, 'temperature'],
      ['a temperature that is none', [whisper, file(), text('temperature', 'warm')], 400, 'temperature'],
      ['an endless temperature', [whisper, file(), text('temperature', '1e999')], 400, 'temperature'],
      ['a stream that is neither', [whisper, file(), text('stream', 'maybe')], 400, 'stream'],
      [
        'times without the format for them',
        [whisper, file(), text('timestamp_granularities[]', 'word')],
        400,
        'timestamp_granularities',
      ],
      [
        'times of what there is not',
        [whisper, file(), text('response_format', 'verbose_json'), text('timestamp_granularities[]', 'page')],
        400,
        'timestamp_granularities',
      ],
      [
        'a strategy that is damaged',
        [whisper, file(), text('chunking_strategy', '{"type":')],
        400,
        'chunking_strategy',
      ],
      [
        'too many fields',
        [whisper, ...Array.from({ length: 50 }, (_, at) => text(`f${at}`, 'x')), file()],
        400,
        undefined,
      ],
      ['too many files', [whisper, ...Array.from({ length: 6 }, () => file())], 400, undefined],
    ],
  ],
  [
    'audio',
    '/v1/audio/translations',
    [
      ['no file', [whisper], 400, 'file'],
      ['a model that cannot', [text('model', 'voyage-4'), file()], 503, 'model'],
    ],
  ],
  [
    'images',
    '/v1/images/edits',
    [
      ['no image', [dalle, prompt], 400, 'image'],
      ['a text for an image', [dalle, prompt, text('image', 'x')], 400, 'image'],
      ['no prompt', [dalle, image(picture)], 400, 'prompt'],
      ['an image that is not square, for the older model', [dalle, prompt, image(wide)], 400, 'image'],
      ['an image that is no PNG, for the older model', [dalle, prompt, image(jpeg)], 400, 'image'],
      ['an image of 4 MiB, for the older model', [dalle, prompt, image(heavy)], 400, 'image'],
      ['an image that is a recording', [dalle, prompt, image(recording)], 400, 'image'],
      ['a mask of another size', [dalle, prompt, image(picture), image(small, 'mask')], 400, 'mask'],
      [
        'two masks',
        [dalle, prompt, image(picture), image(picture, 'mask'), image(picture, 'mask')],
        400,
        'mask',
      ],
      ['two images, for the older model', [dalle, prompt, image(picture), image(picture)], 400, 'image'],
      [
        'an image beyond the gateway’s limit',
        [dalle, prompt, image(Buffer.concat([picture, Buffer.alloc(5 * mega)]))],
        413,
        'image',
      ],
      ['eleven', [dalle, prompt, image(picture), text('n', '11')], 400, 'n'],
      ['some', [dalle, prompt, image(picture), text('n', 'some')], 400, 'n'],
    ],
  ],
  [
    'images',
    '/v1/images/variations',
    [
      ['no image', [dalle], 400, 'image'],
      ['an image that is not square', [dalle, image(wide)], 400, 'image'],
      ['a model that varies none', [text('model', 'gemini-2.5-flash-image'), image(picture)], 503, 'model'],
    ],
  ],
  [
    'videos',
    '/v1/videos',
    [
      ['a size that is none', [text('model', 'sora-2'), prompt, text('size', 'x')], 400, 'size'],
      [
        'metadata that are no JSON',
        [text('model', 'sora-2'), prompt, text('metadata', '{')],
        400,
        'metadata',
      ],
      ['no prompt', [text('model', 'sora-2')], 400, 'prompt'],
    ],
  ],
];

describe.each(formTables)('forms · %s · %s', (format, path, cases) => {
  test.each(cases)('%s', async (_what, parts, status, param) => {
    expectRefused(format, await form(path, parts), status, param);
  });

  const sound = written([whisper, dalle, file(), image(picture), prompt]);
  test.each([
    ['no boundary', 'multipart/form-data', sound],
    ['an empty boundary', 'multipart/form-data; boundary=', sound],
    ['a boundary that is never met', 'multipart/form-data; boundary=other', sound],
    ['a boundary of a thousand characters', `multipart/form-data; boundary=${'b'.repeat(1000)}`, sound],
    ['a form that is cut', formType['content-type'], sound.subarray(0, sound.length - 200)],
    ['a form that is cut in its first line', formType['content-type'], sound.subarray(0, 20)],
    ['no body', formType['content-type'], Buffer.alloc(0)],
    ['JSON that calls itself a form', formType['content-type'], Buffer.from('{"model":"whisper-1"}')],
    [
      'a part without a name',
      formType['content-type'],
      Buffer.concat([Buffer.from('--x\r\ncontent-disposition: form-data\r\n\r\nx\r\n'), sound]),
    ],
    [
      'a file without a name',
      formType['content-type'],
      Buffer.concat([Buffer.from('--x\r\ncontent-disposition: form-data; filename="a"\r\n\r\nx\r\n'), sound]),
    ],
  ])('%s is a 400', async (_what, type, bytes) => {
    expectRefused(format, await post(ground, path, bytes, { 'content-type': type }), 400, undefined);
  });

  test('a client that leaves in the middle of its upload reaches nobody and leaves nothing', async () => {
    // Longer than what is joined in memory before it is written to a file.
    const begun = written([whisper, prompt, { ...file(), value: Buffer.alloc(150_000) }]).subarray(0, -500);
    const bare = await Bare.to(ground.gateway.url);
    bare.write(
      requestText('POST', path, {
        authorization: `Bearer ${ground.gateway.key}`,
        ...formType,
        'content-length': '180000',
      }),
    );
    bare.write(begun);
    await expect.poll(openUploads).not.toEqual([]);
    bare.socket.destroy();
    await expect.poll(openUploads).toEqual([]);
    await expect.poll(() => ground.gateway.lines.filter(({ plugin }) => plugin === 'logging').length).toBe(1);
    expect(ground.gateway.lines.at(-1)).toMatchObject({ ended: 'left' });
    expect(ground.upstream.requests).toHaveLength(0);
  });
});

test.each(['/v1/audio/transcriptions', '/v1/audio/translations', '/v1/images/variations'])(
  'JSON where a form must be, at %s, is a 415',
  async (path) => {
    const answer = await json(path, { model: 'whisper-1', file: 'x' });
    expectRefused(path.includes('audio') ? 'audio' : 'images', answer, 415, undefined);
  },
);

test.each(['/v1/audio/speech', '/v1/embeddings', '/v1/rerank', '/v1/moderations', '/v1/images/generations'])(
  'a form where JSON must be, at %s, is a 415',
  async (path) => {
    const format = { audio: 'audio', images: 'images' }[path.split('/')[2] ?? ''] ?? path.split('/')[2] ?? '';
    expectRefused(format, await form(path, [text('model', 'demo'), text('input', 'x')]), 415, undefined);
  },
);
