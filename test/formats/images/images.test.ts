import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import images from '../../../core/formats/images/index.ts';
import generateContent from '../../../core/formats/generate-content/index.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { Codec, RouteParams, StreamEncoder, WireFrame } from '../../../core/sdk/format.ts';
import { parseSse } from '../../../core/formats/_shared/sse.ts';
import type { GatewayEvent } from '../../../core/model/event.ts';
import type { Form, FormPart, Upload } from '../../../core/model/form.ts';
import type { ImageRequest } from '../../../core/model/image.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { ModelTraits } from '../../../core/model/traits.ts';
import { stripes } from '../../../channels/demo/png.ts';
import { fixturesOf } from '../../support/fixtures.ts';
import { checkLegal } from '../../support/legal-images.ts';
import { formOf, uploadOf } from '../../support/form.ts';
import { checked, replyTo } from '../../support/one-shot-laws.ts';
import { tries } from '../../support/tries.ts';

const codecOf = (format: typeof images, operation: 'generate-image' | 'edit-image' | 'vary-image') =>
  format.codecs[operation] as Codec<ImageRequest>;
const generate = codecOf(images, 'generate-image');
const edit = codecOf(images, 'edit-image');
const vary = codecOf(images, 'vary-image');
const contents = codecOf(generateContent, 'generate-image');
const contentEdits = codecOf(generateContent, 'edit-image');

const upload = (bytes: Buffer, filename = 'a.png', mimeType = 'image/png', size?: number): Upload =>
  uploadOf(bytes, filename, mimeType, size);
const pngOf = (width: number, height: number): Buffer =>
  stripes(width, height, [
    [0, 0, 0],
    [255, 255, 255],
  ]);
const png = pngOf(64, 64);
const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 74, 70, 73, 70]);
const file = upload(png);
const shown: FormPart = { name: 'image', file };

const withFiles = (fields: JsonObject, files: readonly FormPart[] = [shown]): RouteParams =>
  formOf(fields, files);

function sent(
  to: Codec<ImageRequest>,
  request: ImageRequest,
  traits: ModelTraits = {},
  model = request.model,
) {
  const losses: string[] = [];
  const encoded = to.encodeRequest(request, {
    model,
    stream: request.stream,
    traits,
    headers: {},
    unsupported: 'refuse',
    drop: (path) => losses.push(path),
  });
  return { ...encoded, losses };
}
const fieldsOf = (form: Form = []): unknown[] =>
  form.map((part) => ('value' in part ? [part.name, part.value] : [part.name, part.file]));

describe('a request for images', () => {
  test.each(fixturesOf('images', 'requests', '.json'))('$name is the same there and back', ({ text }) => {
    const { body } = JSON.parse(text) as { body: JsonObject };
    const { body: again, losses, path } = sent(generate, generate.validate(body, {}));
    expect(again).toEqual(body);
    expect([path, losses]).toEqual(['/images/generations', []]);
  });

  test.each<[JsonObject, string]>([
    [{ prompt: 'x' }, 'model'],
    [{ model: 'm' }, 'prompt'],
    [{ model: 'm', prompt: ' ' }, 'prompt'],
    [{ model: 'm', prompt: ['x'] }, 'prompt'],
    [{ model: 'm', prompt: 'x', n: 0 }, 'n'],
    [{ model: 'm', prompt: 'x', n: 11 }, 'n'],
    [{ model: 'm', prompt: 'x', n: 1.5 }, 'n'],
    [{ model: 'm', prompt: 'x', n: '2' }, 'n'],
    [{ model: 'm', prompt: 'x', size: 1024 }, 'size'],
    [{ model: 'm', prompt: 'x', output_compression: 101 }, 'output_compression'],
    [{ model: 'm', prompt: 'x', partial_images: 4 }, 'partial_images'],
    [{ model: 'm', prompt: 'x', response_format: 'base64' }, 'response_format'],
    [{ model: 'm', prompt: 'x', stream: 'yes' }, 'stream'],
  ])('%j names what is wrong', (body, param) => {
    expect(() => checked(generate, body)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test('may come to what its count, its quality and its prompt say', () => {
    const most = (more: JsonObject) =>
      generate.estimate?.(generate.validate({ model: 'm', prompt: 'x'.repeat(40), ...more }, {}));
    expect(most({})).toMatchObject({ input: 10, output: 6_240, units: { images: 1 } });
    expect(most({ n: 3, quality: 'low' })).toMatchObject({
      input: 10,
      output: 3 * 408,
      units: { images: 3 },
    });
  });
});

describe('a form with images', () => {
  const fields = {
    model: 'm',
    prompt: 'a hat',
    n: '2',
    size: '1024x1024',
    input_fidelity: 'high',
    quality: 'low',
    output_compression: '50',
    partial_images: '1',
    stream: 'true',
    user: 'u',
    odd: ['a', 'b'],
  };

  test('goes to the provider with everything that it says, its files as they were', () => {
    const params = withFiles(fields, [
      { name: 'image[]', file },
      { name: 'image[]', file: upload(jpeg, 'b.jpg', 'image/jpeg') },
      { name: 'mask', file },
    ]);
    expect(edit.peek(fields, params)).toEqual({ model: 'm', stream: true });
    const request = edit.validate(fields, params);
    expect(request).toMatchObject({ count: 2, compression: 50, partials: 1, stream: true });
    const { form, path, losses } = sent(edit, request, {}, 'theirs');
    expect([path, losses]).toEqual(['/images/edits', []]);
    expect(fieldsOf(form)).toEqual([
      ['model', 'theirs'],
      ['prompt', 'a hat'],
      ['size', '1024x1024'],
      ['quality', 'low'],
      ['user', 'u'],
      ['n', '2'],
      ['output_compression', '50'],
      ['stream', 'true'],
      ['partial_images', '1'],
      ['image[]', file],
      ['image[]', expect.objectContaining({ filename: 'b.jpg', mimeType: 'image/jpeg' })],
      ['mask', file],
      ['input_fidelity', 'high'],
      ['odd[]', 'a'],
      ['odd[]', 'b'],
    ]);
  });

  test('of a variation has one image and no prompt', () => {
    const request = vary.validate({ model: 'm', n: '2' }, withFiles({ model: 'm', n: '2' }));
    expect(fieldsOf(sent(vary, request).form)).toEqual([
      ['model', 'm'],
      ['n', '2'],
      ['image', file],
    ]);
    expect(vary.peek({ model: 'm', stream: 'true' }, withFiles({}))).toEqual({ model: 'm', stream: false });
  });

  test('says which file it could not carry when it is written anew', () => {
    const params = withFiles({ model: 'm', prompt: 'x' }, [shown, { name: 'control', file }]);
    expect(sent(edit, edit.validate({ model: 'm', prompt: 'x' }, params)).losses).toEqual(['control']);
  });

  const editRequest = { model: 'm', prompt: 'x' };
  test.each<[string, JsonObject, readonly FormPart[], string]>([
    ['no image', editRequest, [], 'image'],
    ['a text for an image', { ...editRequest, image: 'a.png' }, [], 'image'],
    ['an empty image', editRequest, [{ name: 'image', file: upload(Buffer.alloc(0)) }], 'image'],
    [
      'a text that claims to be an image',
      editRequest,
      [{ name: 'image', file: upload(Buffer.from('hi')) }],
      'image',
    ],
    [
      'a document that claims to be an image',
      editRequest,
      [{ name: 'image[]', file: upload(Buffer.from('%PDF-1.7')) }],
      'image',
    ],
    ['two masks', editRequest, [shown, { name: 'mask', file }, { name: 'mask', file }], 'mask'],
    ['a mask that is none', editRequest, [shown, { name: 'mask', file: upload(Buffer.from('hi')) }], 'mask'],
    ['a count that is none', { ...editRequest, n: 'two' }, [shown], 'n'],
    ['a field that comes twice', { ...editRequest, size: ['1', '2'] }, [shown], 'size'],
    ['no prompt', { model: 'm' }, [shown], 'prompt'],
  ])('with %s is refused', (_, body, files, param) => {
    expect(() => edit.validate(body, withFiles(body, files))).toThrow(
      expect.objectContaining({ status: 400, param }),
    );
  });
});

describe('an edit in JSON', () => {
  const body: JsonObject = {
    model: 'm',
    prompt: 'x',
    images: [
      { image_url: 'https://example.com/a.png' },
      { image_url: 'data:image/png;base64,aGk=', detail: 'high' },
      { file_id: 'file-1' },
    ],
    mask: { file_id: 'file-2', odd: 1 },
    size: 'auto',
    input_fidelity: 'low',
  };

  test('is the same there and back', () => {
    const { body: again, form, losses } = sent(edit, edit.validate(body, {}));
    expect(again).toEqual(body);
    expect([form, losses]).toEqual([undefined, []]);
  });

  test.each<[JsonObject, string]>([
    [{ images: [] }, 'images'],
    [{ images: ['https://example.com/a.png'] }, 'images[0]'],
    [{ images: [{}] }, 'images[0].image_url'],
    [{ images: [{ image_url: 'https://a', file_id: 'b' }] }, 'images[0]'],
    [{ images: [{ image_url: 'data:text/plain;base64,aGk=' }] }, 'images[0].image_url'],
    [{ mask: 'x' }, 'mask'],
  ])('%j names what is wrong', (more, param) => {
    expect(() => edit.validate({ ...body, ...more }, {})).toThrow(
      expect.objectContaining({ status: 400, param }),
    );
  });
});

describe('what a model takes', () => {
  const older: Readonly<Record<string, ModelTraits>> = {
    small: {
      images: {
        streams: false,
        promptLength: 1000,
        most: 10,
        sizes: ['256x256', '512x512', '1024x1024'],
        qualities: ['standard'],
        styles: [],
        source: { mimeType: 'image/png', below: 4 * 1024 * 1024 },
      },
    },
    large: {
      images: {
        streams: false,
        promptLength: 4000,
        most: 1,
        sizes: ['1024x1024', '1024x1792', '1792x1024'],
        qualities: ['standard', 'hd'],
        styles: ['vivid', 'natural'],
      },
    },
  };
  const check = (model: string, more: JsonObject): void =>
    generate.check?.(generate.validate({ model, prompt: 'x', ...more }, {}), older[model] ?? {});

  test.each<[string, JsonObject, string]>([
    ['small', { prompt: 'x'.repeat(1001) }, 'prompt'],
    ['small', { size: '1792x1024' }, 'size'],
    ['small', { quality: 'hd' }, 'quality'],
    ['small', { style: 'vivid' }, 'style'],
    ['large', { prompt: 'x'.repeat(4001) }, 'prompt'],
    ['large', { n: 2 }, 'n'],
    ['large', { size: '512x512' }, 'size'],
    ['large', { quality: 'high' }, 'quality'],
    ['large', { style: 'calm' }, 'style'],
  ])('the %s model refuses %j', (model, body, param) => {
    expect(() => check(model, body)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test.each<[string, JsonObject]>([
    ['small', { prompt: 'x'.repeat(1000), n: 10, size: '256x256', quality: 'standard' }],
    ['small', { prompt: '😀'.repeat(1000) }],
    ['large', { prompt: 'x'.repeat(4000), n: 1, size: '1024x1792', quality: 'hd', style: 'natural' }],
    ['others', { prompt: 'x'.repeat(32_000), n: 10, size: '2048x2048', quality: 'max', style: 'calm' }],
  ])('the %s model takes %#', (model, body) => {
    expect(() => check(model, body)).not.toThrow();
  });

  const checkFiles = (...files: readonly FormPart[]): void => {
    const fields = { model: 'small', prompt: 'x' };
    edit.check?.(edit.validate(fields, withFiles(fields, files)), older.small ?? {});
  };
  const wide = upload(pngOf(64, 32));
  const large = upload(png, 'a.png', 'image/png', 4 * 1024 * 1024);

  test.each<[string, readonly FormPart[], string]>([
    ['a JPEG', [{ name: 'image', file: upload(jpeg) }], 'image'],
    ['a PNG of 4 MB', [{ name: 'image', file: large }], 'image'],
    ['one that is not square', [{ name: 'image', file: wide }], 'image'],
    ['a damaged one', [{ name: 'image', file: upload(png.subarray(0, 12)) }], 'image'],
    ['several', [shown, shown], 'image'],
    ['a mask of another size', [shown, { name: 'mask', file: upload(pngOf(32, 32)) }], 'mask'],
    ['a mask that is no PNG', [shown, { name: 'mask', file: upload(jpeg) }], 'mask'],
  ])('the older one that edits refuses %s', (_, files, param) => {
    expect(() => checkFiles(...files)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test('and takes a square PNG with its mask', () => {
    expect(() => checkFiles(shown, { name: 'mask', file })).not.toThrow();
  });

  test('models that always give base64 are not asked for it', () => {
    const traits: ModelTraits = { images: { delivers: 'base64' } };
    const encodeFor = (format: string) =>
      sent(generate, generate.validate({ model: 'm', prompt: 'x', response_format: format }, {}), traits);
    expect(encodeFor('b64_json')).toMatchObject({ body: { model: 'm', prompt: 'x' }, losses: [] });
    expect(encodeFor('b64_json').body).not.toHaveProperty('response_format');
    expect(encodeFor('url').losses).toEqual(['response_format']);
    expect(generate.passes?.({ response_format: 'b64_json' }, traits)).toBe(false);
    expect(generate.passes?.({}, traits)).toBe(true);
  });

  test('models without streams are asked for the bytes that a stream needs', () => {
    const traits: ModelTraits = { images: { streams: false } };
    const body = { model: 'm', prompt: 'x', stream: true, partial_images: 2 };
    expect(generate.passes?.(body, traits)).toBe(false);
    expect(sent(generate, generate.validate(body, {}), traits)).toMatchObject({
      body: { model: 'm', prompt: 'x', response_format: 'b64_json' },
      losses: ['partial_images'],
    });
  });

  test('models that give addresses alone pass what asks for no bytes', () => {
    const traits: ModelTraits = { images: { delivers: 'url' } };
    expect(generate.passes?.({ response_format: 'url' }, traits)).toBe(true);
    expect(generate.passes?.({}, traits)).toBe(true);
    expect(generate.passes?.({ response_format: 'b64_json' }, traits)).toBe(false);
    expect(generate.passes?.({ stream: true }, traits)).toBe(false);
  });
});

describe('a reply', () => {
  test.each(fixturesOf('images', 'replies', '.json'))('$name is the same there and back', ({ text }) => {
    const body = JSON.parse(text) as JsonObject;
    expect(replyTo(generate, generate.decodeWhole(body, {}), {})).toEqual(body);
  });

  test('is paid for by its tokens and by its images', () => {
    const used = (text: string) =>
      generate.decodeWhole(JSON.parse(text) as JsonObject, {}).find(({ type }) => type === 'usage');
    const [base64, , urls] = fixturesOf('images', 'replies', '.json');
    expect(used(base64?.text ?? '')).toMatchObject({
      usage: { input: 50, output: 50, units: { images: 2 } },
    });
    expect(used(urls?.text ?? '')).toMatchObject({ usage: { input: 0, output: 0, units: { images: 1 } } });
  });

  test.each([{}, { data: [] }, { data: [{}] }, { data: ['x'] }, { error: { message: 'no' } }])(
    '%j is none',
    (body) => {
      expect(() => generate.decodeWhole(body, {})).toThrow(expect.objectContaining({ origin: 'upstream' }));
    },
  );
});

describe('a stream of images', () => {
  const context = {
    model: 'm',
    body: {},
    requestId: 'r',
    created: 1_760_000_000,
    inputEstimate: 0,
    drop: () => {},
  };
  const framesOf = (text: string): WireFrame[] =>
    parseSse(text).map(({ event, data }) => ({
      ...(event === undefined ? {} : { event }),
      json: JSON.parse(data) as JsonObject,
    }));
  const decode = (text: string, ends = true): GatewayEvent[] => {
    const decoder = generate.decodeStream?.({});
    const events = parseSse(text).flatMap((frame) => decoder?.frame(frame) ?? []);
    return [...events, ...(ends ? (decoder?.end() ?? []) : [])];
  };
  const encoderOf = (codec = generate): StreamEncoder => {
    const encoder = codec.encodeStream?.(context);
    if (encoder === undefined) throw new Error('no stream');
    return encoder;
  };
  const encode = (events: readonly GatewayEvent[], codec = generate): WireFrame[] => {
    const encoder = encoderOf(codec);
    return [...events.flatMap((event) => encoder.event(event)), ...encoder.end()];
  };
  const streams = fixturesOf('images', 'streams', '.sse');

  test.each(streams)('$name is legal, and the same there and back', ({ text }) => {
    expect(checkLegal(framesOf(text))).toEqual([]);
    expect(encode(decode(text))).toEqual(framesOf(text));
  });

  test('tells all usage, and passing by as well', () => {
    const two = streams.find(({ name }) => name === 'two-images')?.text ?? '';
    const usages = decode(two).flatMap((event) => (event.type === 'usage' ? [event.usage] : []));
    expect(usages.at(-1)).toMatchObject({ input: 100, output: 100, units: { images: 2 } });
    const tap = generate.usageTap();
    const usageList = parseSse(two).map(({ data }) => tap.read(data));
    expect(usageList.at(-1)).toMatchObject({ input: 100, output: 100, units: { images: 2 } });
  });

  test.each(streams)('$name: cut anywhere it never ends as if it were whole', ({ text }) => {
    const frames = parseSse(text);
    frames.forEach((_, count) => {
      const decoder = generate.decodeStream?.({});
      const types = frames.slice(0, count).map((frame) => {
        decoder?.frame(frame);
        return frame.event;
      });
      if (types.at(-1) === 'image_generation.completed') expect(() => decoder?.end()).not.toThrow();
      else expect(() => decoder?.end()).toThrow(expect.objectContaining({ code: 'upstream_cut' }));
    });
  });

  test.each([
    '{"type":"error","error":{"type":"image_generation_user_error","code":"moderation_blocked","message":"no"}}',
    '{"type":"error","code":"moderation_blocked","message":"no"}',
    '{"error":{"message":"x"}}',
    'not JSON',
    '{"type":"image_generation.completed"}',
  ])('%s is an error of the provider', (data) => {
    const decoder = generate.decodeStream?.({});
    expect(() => decoder?.frame({ data })).toThrow(expect.objectContaining({ origin: 'upstream' }));
  });

  test('is made of a whole reply where the provider has none, usage with its last image', () => {
    const [base64] = fixturesOf('images', 'replies', '.json');
    const frames = encode(generate.decodeWhole(JSON.parse(base64?.text ?? '') as JsonObject, {}), edit);
    expect(checkLegal(frames)).toEqual([]);
    expect(frames.map(({ event }) => event)).toEqual(['image_edit.completed', 'image_edit.completed']);
    expect(frames.map((frame) => 'json' in frame && 'usage' in frame.json)).toEqual([false, true]);
  });

  test('is legal whatever comes, and says its last word once', () => {
    const event = fc.constantFrom<GatewayEvent>(
      ...streams.flatMap(({ text }) => decode(text)),
      { type: 'result', value: { images: [{ base64: 'aGk=' }, { url: 'https://example.com/a.png' }] } },
      { type: 'text-delta', block: 0, choice: 0, text: 'x' },
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 20 }), fc.boolean(), (events, breaks) => {
        const encoder = encoderOf();
        const frames = events.flatMap((one) => encoder.event(one));
        frames.push(...(breaks ? encoder.error(new GatewayError('upstream_cut', 'x')) : encoder.end()));
        expect(checkLegal(frames)).toEqual([]);
        expect([
          ...events.flatMap((one) => encoder.event(one)),
          ...encoder.end(),
          ...encoder.error(new GatewayError('upstream_cut', 'x')),
        ]).toEqual([]);
      }),
      { seed: 20_261_121, numRuns: tries(300) },
    );
  });
});

describe('images by a model that answers in contents', () => {
  const requestOf = (more: JsonObject = {}): ImageRequest =>
    generate.validate({ model: 'm', prompt: 'a cat', ...more }, {});
  const config = (more: JsonObject, traits: ModelTraits = {}): unknown[] => {
    const { body, losses } = sent(contents, requestOf(more), traits);
    return [(body.generationConfig as JsonObject).imageConfig, losses];
  };

  test('are asked for with their ratio', () => {
    expect(sent(contents, requestOf())).toMatchObject({
      path: '/models/m:generateContent',
      losses: [],
      body: {
        contents: [{ role: 'user', parts: [{ text: 'a cat' }] }],
        generationConfig: { responseModalities: ['TEXT', 'IMAGE'] },
      },
    });
    expect(config({ size: 'auto' })).toEqual([undefined, []]);
    expect(config({ size: '1024x1536' })).toEqual([{ aspectRatio: '2:3' }, []]);
    expect(config({ size: '1792x1024' })).toEqual([{ aspectRatio: '16:9' }, []]);
    expect(config({ size: '21:9' })).toEqual([{ aspectRatio: '21:9' }, []]);
    expect(config({ size: '4096x4096' }, { images: { largest: '4K' } })).toEqual([
      { aspectRatio: '1:1', imageSize: '4K' },
      [],
    ]);
    expect(config({ size: '2k' }, { images: { largest: '4K' } })).toEqual([{ imageSize: '2K' }, []]);
    expect(config({ size: '4096x4096' })).toEqual([{ aspectRatio: '1:1' }, ['size']]);
    expect(config({ size: '1000x100' })).toEqual([undefined, ['size']]);
    expect(config({ size: 'huge' })).toEqual([undefined, ['size']]);
  });

  test('lose what has no place, and say so', () => {
    const { losses } = sent(
      contents,
      requestOf({
        quality: 'high',
        background: 'transparent',
        style: 'vivid',
        response_format: 'url',
        partial_images: 1,
        user: 'u',
        output_format: 'webp',
        output_compression: 3,
        moderation: 'low',
      }),
    );
    expect(losses.toSorted()).toEqual([
      'background',
      'moderation',
      'output_compression',
      'output_format',
      'partial_images',
      'quality',
      'response_format',
      'style',
      'user',
    ]);
    const none = { quality: 'auto', background: 'auto', output_format: 'png', response_format: 'b64_json' };
    expect(sent(contents, requestOf(none)).losses).toEqual([]);
  });

  test('several are asked for one at a time, and are one reply', () => {
    const pieces = contents.split?.(requestOf({ n: 3 }), {}) ?? [];
    expect(pieces.map(({ count }) => count)).toEqual([1, 1, 1]);
    const results = pieces.flatMap((_, index) =>
      contents
        .decodeWhole(replyWith([{ inlineData: { mimeType: 'image/png', data: `aW${index}=` } }]), {})
        .flatMap((event) => (event.type === 'result' ? [event.value] : [])),
    );
    const value = contents.join?.(results) ?? {};
    expect(value).toMatchObject({ tokens: { inputText: 15, outputImage: 3 * 1290 } });
    const reply = replyTo(generate, [{ type: 'result', value }], {});
    expect(reply.data).toEqual([{ b64_json: 'aW0=' }, { b64_json: 'aW1=' }, { b64_json: 'aW2=' }]);
  });

  const replyWith = (parts: readonly JsonObject[], more: JsonObject = {}): JsonObject => ({
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0, ...more }],
    usageMetadata: {
      promptTokenCount: 5,
      candidatesTokenCount: 1290,
      totalTokenCount: 1295,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: 5 }],
      candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1290 }],
    },
  });

  test('come back with their tokens by kind; words beside them are a loss', () => {
    const events = contents.decodeWhole(
      replyWith([
        { text: 'thinking', thought: true },
        { inlineData: { mimeType: 'image/png', data: 'ZHJhZnQ=' }, thought: true },
        { text: 'Here it is.' },
        { inline_data: { mime_type: 'image/png', data: 'aGk=' } },
      ]),
      {},
    );
    const losses: string[] = [];
    const encoder = generate.encodeWhole({
      model: 'm',
      body: {},
      requestId: 'r',
      created: 7,
      inputEstimate: 0,
      drop: (path) => losses.push(path),
    });
    for (const event of events) encoder.event(event);
    expect(encoder.end()).toEqual({
      created: 7,
      data: [{ b64_json: 'aGk=' }],
      output_format: 'png',
      usage: {
        input_tokens: 5,
        output_tokens: 1290,
        total_tokens: 1295,
        input_tokens_details: { text_tokens: 5, image_tokens: 0 },
        output_tokens_details: { text_tokens: 0, image_tokens: 1290 },
      },
    });
    expect(losses).toEqual(['text']);
  });

  test('say of each thing that has no place once, and of no more than anybody reads', () => {
    const dropped: string[] = [];
    const context = {
      model: 'm',
      body: {},
      requestId: 'r',
      created: 7,
      inputEstimate: 0,
      drop: (path: string) => dropped.push(path),
    };
    const odd = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`odd_${index}`, 1]));
    const result: GatewayEvent = {
      type: 'result',
      value: { images: [{ base64: 'aGk=' }], extra: { 'generate-content': odd } },
    };
    for (const encoder of [generate.encodeWhole(context), generate.encodeStream?.(context)]) {
      dropped.length = 0;
      encoder?.event(result);
      encoder?.event(result);
      expect(dropped).toHaveLength(1_000);
      expect(new Set(dropped).size).toBe(1_000);
    }
  });

  test.each<[JsonObject, string]>([
    [replyWith([], { finishReason: 'IMAGE_SAFETY' }), 'content_policy_violation'],
    [{ promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } }, 'content_policy_violation'],
    [{ predictions: [{ raiFilteredReason: 'not this' }] }, 'content_policy_violation'],
    [replyWith([{ text: 'I cannot.' }]), 'upstream_error'],
    [replyWith([], { finishReason: 'NO_IMAGE' }), 'upstream_error'],
    [{}, 'upstream_error'],
    [{ predictions: [] }, 'upstream_error'],
  ])('%# without an image is told for what it is', (body, code) => {
    expect(() => contents.decodeWhole(body, {})).toThrow(
      expect.objectContaining({ code, origin: 'upstream' }),
    );
  });

  test('are changed with the given ones beside the words', () => {
    const request: ImageRequest = {
      ...edit.validate(
        { model: 'm', prompt: 'a hat', images: [{ image_url: 'data:image/png;base64,aGk=' }] },
        {},
      ),
    };
    expect(contentEdits.inlinesImages).toBe(true);
    expect(sent(contentEdits, request).body.contents).toEqual([
      { role: 'user', parts: [{ text: 'a hat' }, { inlineData: { mimeType: 'image/png', data: 'aGk=' } }] },
    ]);
    const mask = { kind: 'data', data: 'aGk=', mimeType: 'image/png' } as const;
    expect(() => sent(contentEdits, { ...request, mask })).toThrow(
      expect.objectContaining({ code: 'unsupported_content', param: 'mask' }),
    );
    const foreign = edit.validate({ model: 'm', prompt: 'x', images: [{ file_id: 'f' }] }, {});
    expect(() => sent(contentEdits, foreign)).toThrow(
      expect.objectContaining({ code: 'unsupported_content', param: 'images[0]' }),
    );
  });

  const predicts: ModelTraits = { images: { predicts: true, largest: '2K' } };

  test('are predicted up to four at once', () => {
    const request = requestOf({ n: 6, size: '2048x2048', output_format: 'jpeg', output_compression: 70 });
    expect(contents.split?.(request, predicts).map(({ count }) => count)).toEqual([4, 2]);
    expect(sent(contents, request, predicts)).toMatchObject({
      path: '/models/m:predict',
      losses: [],
      body: {
        instances: [{ prompt: 'a cat' }],
        parameters: {
          sampleCount: 6,
          aspectRatio: '1:1',
          sampleImageSize: '2K',
          outputOptions: { mimeType: 'image/jpeg', compressionQuality: 70 },
        },
      },
    });
    const body = {
      predictions: [
        { mimeType: 'image/jpeg', bytesBase64Encoded: 'aGk=', prompt: 'a fine cat' },
        { raiFilteredReason: 'not this' },
      ],
    };
    expect(replyTo(generate, contents.decodeWhole(body, {}), {})).toEqual({
      created: 1_760_000_000,
      output_format: 'jpeg',
      data: [{ b64_json: 'aGk=', revised_prompt: 'a fine cat' }],
    });
    const given = [{ image_url: 'data:image/png;base64,aGk=' }];
    const edits = edit.validate({ model: 'm', prompt: 'x', images: given }, {});
    expect(() => sent(contentEdits, edits, predicts)).toThrow(
      expect.objectContaining({ code: 'unsupported_content', param: 'image' }),
    );
  });
});
