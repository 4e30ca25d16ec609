import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import rerank from '../../../core/formats/rerank/index.ts';
import { GatewayError } from '../../../core/sdk/errors.ts';
import type { Codec } from '../../../core/sdk/format.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { RerankRequest } from '../../../core/model/rerank.ts';
import { checked, encodedBy, replyTo } from '../../support/one-shot-laws.ts';
import { tries } from '../../support/tries.ts';

const codec = rerank.codecs.rerank as Codec<RerankRequest>;
const request: JsonObject = { model: 'm', query: 'q', documents: ['a', 'b', 'c'] };

describe('a request to rerank', () => {
  test('keeps what it says, and never has documents sent back', () => {
    const body: JsonObject = {
      ...request,
      top_n: 2,
      max_chunk_per_doc: 3,
      overlap_tokens: 10,
      truncation: true,
      odd: [1],
    };
    expect(encodedBy(codec, codec, { ...body, return_documents: true })).toMatchObject({
      encoded: { path: '/rerank', body: { ...body, return_documents: false } },
      losses: [],
    });
  });

  test('asks for no more documents than there are', () => {
    expect(encodedBy(codec, codec, { ...request, top_n: 99 }).encoded.body.top_n).toBe(3);
  });

  test.each<[JsonObject, string]>([
    [{ query: 'q', documents: ['a'] }, 'model'],
    [{ model: 'm', documents: ['a'] }, 'query'],
    [{ model: 'm', query: 7, documents: ['a'] }, 'query'],
    [{ model: 'm', query: 'q' }, 'documents'],
    [{ model: 'm', query: 'q', documents: [] }, 'documents'],
    [{ model: 'm', query: 'q', documents: 'a' }, 'documents'],
    [{ model: 'm', query: 'q', documents: ['a', 7] }, 'documents[1]'],
    [{ model: 'm', query: 'q', documents: [{ title: 'x' }] }, 'documents[0].text'],
    [{ model: 'm', query: 'q', documents: [{ text: 7 }] }, 'documents[0].text'],
    [{ ...request, top_n: 0 }, 'top_n'],
    [{ ...request, top_n: 1.5 }, 'top_n'],
    [{ ...request, return_documents: 'yes' }, 'return_documents'],
    [{ ...request, rank_fields: [1] }, 'rank_fields[0]'],
    [{ ...request, max_tokens_per_doc: -1 }, 'max_tokens_per_doc'],
  ])('%j names %s', (body, param) => {
    expect(() => checked(codec, body)).toThrow(expect.objectContaining({ status: 400, param }));
  });

  test('objects need no text where fields are named', () => {
    const body = { ...request, documents: [{ title: 'x' }], rank_fields: ['title'] };
    expect(() => codec.validate(body, {})).not.toThrow();
  });
});

describe('a reply with scores', () => {
  const scores = {
    results: [
      { index: 2, relevance_score: 0.1 },
      { index: 0, relevance_score: 0.9 },
    ],
  };

  test('is one that clients of both families read', () => {
    const reply = replyTo(codec, codec.decodeWhole({ id: 'x', ...scores }, {}), request);
    expect(reply).toEqual({
      id: 'x',
      object: 'list',
      model: 'm',
      results: [
        { index: 0, relevance_score: 0.9 },
        { index: 2, relevance_score: 0.1 },
      ],
      usage: { prompt_tokens: 0, total_tokens: 0 },
      meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
    });
  });

  test('carries documents only where they were asked for, as objects', () => {
    const body = { ...request, documents: ['a', 'b', { text: 'c', title: 't' }], return_documents: true };
    expect(replyTo(codec, codec.decodeWhole(scores, {}), body).results).toEqual([
      { index: 0, relevance_score: 0.9, document: { text: 'a' } },
      { index: 2, relevance_score: 0.1, document: { text: 'c', title: 't' } },
    ]);
    // Some providers send them unasked.
    const chatty = { results: [{ index: 0, relevance_score: 1, document: { text: 'a' } }] };
    expect(replyTo(codec, codec.decodeWhole(chatty, {}), request).results).toEqual([
      { index: 0, relevance_score: 1 },
    ]);
  });

  test('tells tokens from wherever a provider does', () => {
    const usage = { total_tokens: 12 };
    expect(replyTo(codec, codec.decodeWhole({ ...scores, usage }, {}), request).usage).toEqual({
      prompt_tokens: 12,
      total_tokens: 12,
    });
    const meta = { billed_units: { search_units: 3 }, tokens: { input_tokens: 7 } };
    expect(replyTo(codec, codec.decodeWhole({ ...scores, meta }, {}), request)).toMatchObject({
      usage: { prompt_tokens: 7, total_tokens: 7 },
      meta: { billed_units: { search_units: 3 }, tokens: { input_tokens: 7 } },
    });
  });

  test('is sorted, cut, and holds each document once, whatever a provider sends', () => {
    const item = fc.record({
      index: fc.integer({ min: -2, max: 8 }),
      relevance_score: fc.float({ noNaN: true, noDefaultInfinity: true }),
    });
    fc.assert(
      fc.property(fc.array(item, { maxLength: 20 }), fc.integer({ min: 1, max: 9 }), (results, topN) => {
        const body = { ...request, documents: ['a', 'b', 'c', 'd', 'e'], top_n: topN };
        const reply = replyTo(codec, codec.decodeWhole({ results }, {}), body);
        const got = reply.results as { index: number; relevance_score: number }[];
        expect(got.length).toBeLessThanOrEqual(topN);
        expect(new Set(got.map(({ index }) => index)).size).toBe(got.length);
        expect(got.every(({ index }) => index >= 0 && index < 5)).toBe(true);
        for (const [index, one] of got.entries()) {
          const next = got[index + 1];
          if (next === undefined) continue;
          expect(
            one.relevance_score > next.relevance_score ||
              (one.relevance_score === next.relevance_score && one.index < next.index),
          ).toBe(true);
        }
      }),
      { seed: 20_261_121, numRuns: tries(300) },
    );
  });

  test.each<JsonObject>([
    {},
    { results: [{}] },
    { results: [{ index: 'a', relevance_score: 1 }] },
    { results: 7 },
  ])('%j is none', (broken) => {
    expect(() => codec.decodeWhole(broken, {})).toThrow(expect.objectContaining({ origin: 'upstream' }));
  });

  test('an error tells its sentence where each family looks for it', () => {
    const { body } = rerank.errorReply(new GatewayError('invalid_value', 'No.', { param: 'top_n' }), 'req_1');
    expect(body).toMatchObject({ message: 'No.', error: { message: 'No.', param: 'top_n' } });
  });
});
