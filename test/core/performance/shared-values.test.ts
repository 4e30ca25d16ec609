import * as fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { JsonValue } from '../../../core/model/json.ts';
import { onceForShared, shareValue, stringifyRequest } from '../../../core/performance/shared-values.ts';

describe('what is computed of a value', () => {
  const plain = (value: JsonValue): number => JSON.stringify(value).length;

  test('is computed once where calls share the value, also of a part of it', () => {
    const compute = vi.fn<typeof plain>(plain);
    const remembering = onceForShared(compute);
    const inner = { type: 'object', properties: {} };
    const tools = shareValue([{ name: 'read', parameters: inner }]);
    expect([remembering(tools), remembering(tools)]).toEqual([plain(tools), plain(tools)]);
    expect([remembering(inner), remembering(inner)]).toEqual([plain(inner), plain(inner)]);
    expect(compute).toHaveBeenCalledTimes(2);
  });

  test('is computed again for a value of one call, which may have changed', () => {
    const remembering = onceForShared(plain);
    const own: { text: string } = { text: 'a' };
    expect(remembering(own)).toBe(12);
    own.text = 'abc';
    expect(remembering(own)).toBe(14);
    const frozen = Object.freeze({ inner: own });
    expect(remembering(frozen)).toBe(plain(frozen));
    own.text = 'a';
    expect(remembering(frozen)).toBe(plain(frozen));
  });

  test('is computed of texts, numbers and nothing too', () => {
    const remembering = onceForShared(plain);
    expect(['a', 1, true, null].map(remembering)).toEqual([3, 1, 4, 4]);
  });
});

test('nobody can change a value that calls share', () => {
  const value = shareValue({ list: [{ text: 'a' }] }) as { list: { text: string }[] };
  expect(() => {
    for (const one of value.list) one.text = 'b';
  }).toThrow(TypeError);
  expect(() => value.list.push({ text: 'c' })).toThrow(TypeError);
});

describe('the JSON of a request', () => {
  const schema = shareValue({ type: 'object', properties: { 'größe "1"': { enum: ['a', null] } } });

  test('is what JSON.stringify gives, wherever the tools have shared schemas', () => {
    const requests: readonly JsonValue[] = [
      { model: 'm', tools: [{ name: 'a', input_schema: schema, strict: undefined }], stream: true },
      { tools: [{ type: 'function', function: { name: 'a', parameters: schema } }, 1, null, 'x'] },
      { tools: [{ functionDeclarations: [{ name: 'a', parametersJsonSchema: schema }] }] },
      { tools: shareValue([{ name: 'a', input_schema: { type: 'object' } }]), temperature: undefined },
      { tools: [], __proto__: null },
      { tools: { a: schema } },
      [schema],
      'text',
    ];
    for (const request of requests)
      for (let round = 0; round < 2; round += 1)
        expect(stringifyRequest(request)).toBe(JSON.stringify(request));
  });

  test('is what JSON.stringify gives of any request', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue()), (members, tools) => {
        const request = { ...members, tools: [...tools, { schema }] } as JsonValue;
        expect(stringifyRequest(request)).toBe(JSON.stringify(request));
      }),
    );
  });
});
