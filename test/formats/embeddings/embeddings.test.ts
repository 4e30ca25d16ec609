import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import embeddings from '../../../core/formats/embeddings/index.ts';
import generateContent from '../../../core/formats/generate-content/index.ts';
import { asBase64, asNumbers } from '../../../core/formats/_shared/vectors.ts';
import type { Codec } from '../../../core/sdk/format.ts';
import type { EmbedRequest } from '../../../core/model/embed.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import { checked, encodedBy, thereAndBack, replyTo } from '../../support/one-shot-laws.ts';
import { tries } from '../../support/tries.ts';

const codec = embeddings.codecs.embed as Codec<EmbedRequest>;
const native = generateContent.codecs.embed as Codec<EmbedRequest>;
const params = { model: 'm' };

describe('a request for embeddings', () => {
  test.each<[string, JsonObject]>([
    ['one text', { model: 'm', input: 'Hello' }],
    ['a list of one', { model: 'm', input: ['Hello'] }],
    ['several', { model: 'm', input: ['a', 'b'], dimensions: 3, user: 'u', encoding_format: 'base64' }],
    ['tokens', { model: 'm', input: [1, 2, 3] }],
    ['lists of tokens', { model: 'm', input: [[1], [2, 3]], encoding_format: 'float' }],
    [
      'what only a vendor knows',
      { model: 'm', input: 'a', input_type: 'query', truncation: true, x: { y: 1 } },
    ],
    ['a purpose nobody knows', { model: 'm', input: 'a', task: 'moonwalk' }],
    ['parts of a vendor’s own', { model: 'm', input: [{ image: 'https://example.com/a.png' }, 'b'] }],
  ])('%s is the same there and back', (_, body) => {
    expect(thereAndBack(codec, body)).toEqual({ body, losses: [] });
  });

  test.each<[JsonObject, string]>([
    [{ model: 'm' }, 'input'],
    [{ input: 'a' }, 'model'],
    [{ model: 'm', input: '' }, 'input'],
    [{ model: 'm', input: [] }, 'input'],
    [{ model: 'm', input: ['a', ''] }, 'input[1]'],
    [{ model: 'm', input: ['a', 7] }, 'input[1]'],
    [{ model: 'm', input: [1, 2.5] }, 'input[1]'],
    [{ model: 'm', input: [[1], []] }, 'input[1]'],
    [{ model: 'm', input: 7 }, 'input'],
    [{ model: 'm', input: Array.from({ length: 2049 }, () => 'a') }, 'input'],
    [{ model: 'm', input: 'a', dimensions: 0 }, 'dimensions'],
    [{ model: 'm', input: 'a', dimensions: '3' }, 'dimensions'],
    [{ model: 'm', input: 'a', encoding_format: 'hex' }, 'encoding_format'],
    [{ model: 'm', input: 'a', user: 7 }, 'user'],
  ])('%j names %s', (body, param) => {
    expect(() => checked(codec, body)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test('passes through unless the client wants base64, which not every provider has', () => {
    expect(codec.passes?.({ model: 'm', input: 'a' }, {})).toBe(true);
    expect(codec.passes?.({ model: 'm', input: 'a', encoding_format: 'float' }, {})).toBe(true);
    expect(codec.passes?.({ model: 'm', input: 'a', encoding_format: 'base64' }, {})).toBe(false);
  });

  test('becomes a batch of generateContent, with what it is for', () => {
    const { encoded, losses } = encodedBy(codec, native, {
      model: 'm',
      input: ['a', 'b'],
      dimensions: 5,
      input_type: 'search_query',
      user: 'u',
      odd: 1,
    });
    expect(encoded).toMatchObject({ path: '/models/m:batchEmbedContents' });
    const one = { model: 'models/m', taskType: 'RETRIEVAL_QUERY', outputDimensionality: 5 };
    expect(encoded.body).toEqual({
      requests: ['a', 'b'].map((text) => ({ ...one, content: { parts: [{ text }] } })),
    });
    expect(losses).toEqual(['odd', 'user']);
  });

  test('tokens reach nobody who reads text alone', () => {
    expect(() => encodedBy(codec, native, { model: 'm', input: ['a', [1, 2]] } as JsonObject)).toThrow(
      expect.objectContaining({ status: 400 }),
    );
    expect(() => encodedBy(codec, native, { model: 'm', input: [[1, 2]] })).toThrow(
      expect.objectContaining({ code: 'unsupported_content', param: 'input[0]' }),
    );
  });
});

describe('a request in generateContent’s words', () => {
  const content = { parts: [{ text: 'Hello' }] };

  test('one or many: the provider is asked for a batch', () => {
    const one = { content, taskType: 'RETRIEVAL_DOCUMENT', title: 't', outputDimensionality: 4, odd: 1 };
    expect(encodedBy(native, native, one, params)).toMatchObject({
      encoded: { body: { requests: [{ ...one, model: 'models/m' }] } },
      losses: [],
    });
    const requests = [
      { model: 'models/x', content },
      { model: 'models/x', content, task_type: 'CLUSTERING' },
    ];
    expect(encodedBy(native, native, { requests }, params).encoded.body).toEqual({
      requests: requests.map((request) => ({ ...request, model: 'models/m' })),
    });
  });

  test('goes to other providers with what they know, and says what they do not', () => {
    const single = encodedBy(native, codec, { content, taskType: 'CLUSTERING', title: 't' }, params);
    expect(single.encoded.body).toEqual({ model: 'm', input: 'Hello' });
    expect(single.losses).toEqual(['taskType', 'title']);
    const requests = [
      { content, output_dimensionality: 3 },
      { content: { parts: [{ text: 'a' }, { text: 'b' }] } },
    ];
    const batch = encodedBy(native, codec, { requests }, params);
    expect(batch.encoded.body).toEqual({ model: 'm', input: ['Hello', 'a\nb'], dimensions: 3 });
    expect(batch.losses).toEqual(['requests[1].outputDimensionality']);
  });

  test('an image is for providers of this format alone', () => {
    const image = { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AA==' } }] } };
    expect(encodedBy(native, native, image, params).encoded.body).toMatchObject({ requests: [image] });
    expect(() => encodedBy(native, codec, image, params)).toThrow(
      expect.objectContaining({ code: 'unsupported_content' }),
    );
  });

  test.each<[JsonObject, string]>([
    [{}, 'content'],
    [{ content: {} }, 'content.parts'],
    [{ content: 'x' }, 'content'],
    [{ content: { parts: [{ text: 1 }] } }, 'content.parts[0].text'],
    [{ requests: [] }, 'requests'],
    [{ requests: [{ content }, {}] }, 'requests[1].content'],
    [{ content, outputDimensionality: 0 }, 'outputDimensionality'],
  ])('%j names %s', (body, param) => {
    expect(() => native.validate(body, params)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test('more than a hundred go in batches, and come back in order', () => {
    const request = codec.validate(
      { model: 'm', input: Array.from({ length: 250 }, (_, index) => `${index}`) },
      {},
    );
    const pieces = native.split?.(request, {}) ?? [];
    expect(pieces.map(({ inputs }) => inputs.length)).toEqual([100, 100, 50]);
    expect(pieces.flatMap(({ inputs }) => inputs)).toEqual(request.inputs);
    expect(native.join?.(pieces.map(({ inputs }) => ({ vectors: inputs.map(() => [1]) })))).toEqual({
      vectors: request.inputs.map(() => [1]),
    });
  });
});

describe('a reply with embeddings', () => {
  const body: JsonObject = {
    object: 'list',
    data: [
      { object: 'embedding', index: 1, embedding: [0.5, -2] },
      { object: 'embedding', index: 0, embedding: [1, 0.25] },
    ],
    model: 'provider-name',
    usage: { prompt_tokens: 4, total_tokens: 4, vendor: 1 },
    odd: { y: 2 },
  };

  test('is in the order of the inputs, with what only this format knows', () => {
    expect(replyTo(codec, codec.decodeWhole(body, {}), {})).toEqual({
      object: 'list',
      data: [
        { object: 'embedding', index: 0, embedding: [1, 0.25] },
        { object: 'embedding', index: 1, embedding: [0.5, -2] },
      ],
      model: 'm',
      usage: { prompt_tokens: 4, total_tokens: 4, vendor: 1 },
      odd: { y: 2 },
    });
  });

  test('comes as base64 when that was asked for, and as numbers when not, whatever the provider sent', () => {
    const events = codec.decodeWhole(body, {});
    const encoded = replyTo(codec, events, { encoding_format: 'base64' });
    expect(encoded.data).toMatchObject([
      { embedding: Buffer.from(Float32Array.of(1, 0.25).buffer).toString('base64') },
      { index: 1 },
    ]);
    const again = codec.decodeWhole({ ...encoded, usage: { prompt_tokens: 4, total_tokens: 4 } }, {});
    expect(replyTo(codec, again, {}).data).toEqual(replyTo(codec, events, {}).data);
  });

  test('in generateContent: one, or a batch', () => {
    const events = native.decodeWhole(
      { embeddings: [{ values: [1, 2] }, { values: [3, 4] }], usageMetadata: { promptTokenCount: 9 } },
      {},
    );
    expect(replyTo(native, events, { requests: [{}, {}] })).toEqual({
      embeddings: [{ values: [1, 2] }, { values: [3, 4] }],
      usageMetadata: { promptTokenCount: 9 },
    });
    expect(replyTo(native, native.decodeWhole({ embedding: { values: [1, 2] } }, {}), {})).toEqual({
      embedding: { values: [1, 2] },
    });
  });

  test.each<JsonObject>([
    {},
    { data: [] },
    { data: [{ embedding: 'x' }, {}] },
    { data: [{ index: 2, embedding: [1] }] },
    { data: [{ embedding: ['a'] }] },
    { error: { message: 'no', type: 'x' } },
    { object: 'list', data: 'x' },
  ])('%j is none', (broken) => {
    expect(() => codec.decodeWhole(broken, {})).toThrow(expect.objectContaining({ origin: 'upstream' }));
  });

  test('a damaged vector is the provider’s failure', () => {
    expect(() => codec.decodeWhole({ data: [{ index: 0, embedding: 'AAA=' }] }, {})).toThrow(
      expect.objectContaining({ code: 'upstream_error' }),
    );
  });

  test('numbers survive base64 as 32-bit floats', () => {
    fc.assert(
      fc.property(
        fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1, maxLength: 50 }),
        (vector) => {
          expect(asNumbers(asBase64(vector))).toEqual(vector);
        },
      ),
      { seed: 20_261_121, numRuns: tries(200) },
    );
  });
});
