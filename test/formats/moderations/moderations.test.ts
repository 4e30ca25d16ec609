import { describe, expect, test } from 'vitest';
import moderations from '../../../core/formats/moderations/index.ts';
import type { Codec } from '../../../core/sdk/format.ts';
import type { JsonObject } from '../../../core/model/json.ts';
import type { ModerationRequest } from '../../../core/model/moderation.ts';
import { encodedBy, thereAndBack, replyTo } from '../../support/one-shot-laws.ts';

const codec = moderations.codecs.moderate as Codec<ModerationRequest>;

describe('a request for a verdict', () => {
  test.each<JsonObject>([
    { model: 'm', input: 'a' },
    { model: 'm', input: ['a', 'b'], odd: 1 },
    {
      model: 'm',
      input: [
        { type: 'text', text: 'a' },
        { type: 'image_url', image_url: { url: 'x' } },
      ],
    },
  ])('%j is the same there and back', (body) => {
    expect(thereAndBack(codec, body)).toEqual({ body, losses: [] });
  });

  test('without a model is for the official one, and a channel is told so', () => {
    expect(codec.peek({ input: 'a' }, {})).toEqual({ model: 'omni-moderation-latest', stream: false });
    expect(codec.passes?.({ input: 'a' }, {})).toBe(false);
    expect(encodedBy(codec, codec, { input: 'a' }, { model: 'mapped' }).encoded.body).toEqual({
      model: 'mapped',
      input: 'a',
    });
  });

  test.each<[JsonObject, string]>([
    [{ model: 'm' }, 'input'],
    [{ model: 'm', input: [] }, 'input'],
    [{ model: 'm', input: 7 }, 'input'],
    [{ model: 'm', input: ['a', 7] }, 'input[1]'],
    [{ model: 7, input: 'a' }, 'model'],
  ])('%j names %s', (body, param) => {
    expect(() => codec.validate(body, {})).toThrow(expect.objectContaining({ status: 400, param }));
  });
});

test('a verdict keeps all that the provider said, under the name that was asked for', () => {
  const body = { id: 'modr-1', model: 'x', results: [{ flagged: true, categories: { odd: true } }], more: 1 };
  expect(replyTo(codec, codec.decodeWhole(body, {}), {})).toEqual({ ...body, model: 'm' });
  expect(() => codec.decodeWhole({ results: [1] }, {})).toThrow(
    expect.objectContaining({ origin: 'upstream' }),
  );
});
