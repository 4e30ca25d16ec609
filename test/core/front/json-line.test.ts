import { describe, expect, test } from 'vitest';
import { measure, parseJsonLine, readJsonBody, type BodyLimits } from '../../../core/front/json-body.ts';

const limits: BodyLimits = { body: 1_000, depth: 4, values: 12, members: 5 };

const line = (text: string, of = limits): unknown => parseJsonLine(Buffer.from(text), of, 'Line 3');

const refused = (code: string, message: string | RegExp): Error =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error;

describe('a line that goes on as the bytes that it is', () => {
  test.each([
    ['{}', {}],
    ['{"a":1}', { a: 1 }],
    ['{"a":1,"b":2}', { a: 1, b: 2 }],
    ['{"a":{},"b":[]}', { a: {}, b: [] }],
    ['{"a":{"x":1,"y":2},"b":[1,2,3]}', { a: { x: 1, y: 2 }, b: [1, 2, 3] }],
    ['{"a":null,"b":"x","c":{"d":{}}}', { a: null, b: 'x', c: { d: {} } }],
    ['{"a":{"b":{"c":1,"d":2}}}', { a: { b: { c: 1, d: 2 } } }],
    ['{"a,b":"{,}","c":"[\\"]"}', { 'a,b': '{,}', c: '["]' }],
  ])('is read: %s', (text, value) => {
    expect(line(text)).toEqual(value);
  });

  test.each([
    '{"a":1,"a":2}',
    '{"a":1,"\\u0061":2}',
    '{"a":1,"b":2,"a":3}',
    '{"a":{"b":1,"b":2}}',
    '{"a":{"b":1,"c":2,"b":1}}',
    '{"a":[1],"b":{"c":1,"c":1}}',
    '{"a":{"b":1},"a":2}',
    '{"a":{"x":1,"x":2},"b":1}',
  ])('may give no field twice: %s', (text) => {
    expect(() => line(text)).toThrow(refused('invalid_json', '^Line 3 has a duplicate field\\.$'));
  });

  test('is named in every error', () => {
    expect(() => line('{')).toThrow(refused('invalid_json', '^Line 3 is not valid JSON: .'));
    expect(() => line('[]')).toThrow(refused('invalid_type', '^Line 3 must be a JSON object\\.$'));
    expect(() => parseJsonLine(Buffer.from([0x7b, 0xff]), limits, 'Line 3')).toThrow(
      refused('invalid_json', '^Line 3 is not valid UTF-8\\.$'),
    );
    expect(() => line('{"a":[[[[1]]]]}')).toThrow(
      refused('invalid_value', '^Line 3 is nested deeper than 4'),
    );
    expect(() => line(`{"a":[${'1,'.repeat(12)}1]}`)).toThrow(
      refused('invalid_value', '^Line 3 has more than 12 values'),
    );
    expect(() => line('{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}')).toThrow(refused('invalid_value', '^Line 3'));
  });

  test('takes memory for its values beside its bytes, and is not read where there is no room', () => {
    const taken: number[] = [];
    const bytes = Buffer.from('{"a":[1,2]}');
    parseJsonLine(bytes, limits, 'Line 3', { grow: (size) => void taken.push(size) });
    const [two = 0] = taken;
    expect(taken).toHaveLength(1);
    expect(two).toBeGreaterThan(bytes.length);
    parseJsonLine(Buffer.from('{"a":[1,23]}'), limits, 'Line 3', { grow: (size) => void taken.push(size) });
    expect(taken[1]).toBe(two + 1);
    parseJsonLine(Buffer.from('{"a":[1,2,3]}'), limits, 'Line 3', { grow: (size) => void taken.push(size) });
    expect((taken[2] ?? 0) - two).toBeGreaterThan(2);
    const noRoom = (): never => {
      throw new Error('no room');
    };
    expect(() => parseJsonLine(Buffer.from('{"a":'), limits, 'Line 3', { grow: noRoom })).toThrow('no room');
  });
});

describe('a body', () => {
  test('is given on as it came, or anew where a field at the top stands twice', () => {
    const once = Buffer.from('{ "a": 1, "b": {"c":1,"c":2} }');
    expect(readJsonBody(once, limits).bytes).toBe(once);
    expect(readJsonBody(Buffer.from('{"a":1,"a":2}'), limits).bytes.toString()).toBe('{"a":2}');
    const empty = Buffer.from('{}');
    expect(readJsonBody(empty, limits).bytes).toBe(empty);
  });

  test('counts values, members and those one level down, without what stands in texts', () => {
    const count = (text: string): unknown => measure(Buffer.from(text), limits);
    expect(count('{}')).toEqual({ values: 1, members: 1, inner: 0 });
    expect(count('{"a":1,"b":2}')).toEqual({ values: 2, members: 2, inner: 0 });
    expect(count('{"a":{"b":1,"c":2},"d":[1,2,3]}')).toEqual({ values: 7, members: 2, inner: 5 });
    expect(count('{"a":[[1,2],[3]]}')).toEqual({ values: 6, members: 1, inner: 2 });
    expect(count('{"{[,":"]}\\",{"}')).toEqual({ values: 1, members: 1, inner: 0 });
    expect(count('"never ends, {')).toEqual({ values: 0, members: 1, inner: 0 });
  });

  test.each([
    ['depth', '{"a":[[[1]]]}', '{"a":[[[[1]]]]}'],
    ['values', `{"a":[${'1,'.repeat(10)}1]}`, `{"a":[${'1,'.repeat(11)}1]}`],
    ['members', '{"a":1,"b":1,"c":1,"d":1,"e":1}', '{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}'],
  ])('of exactly the limit of %s is read, and one beyond refused', (_limit, most, tooMuch) => {
    expect(() => readJsonBody(Buffer.from(most), limits)).not.toThrow();
    expect(() => readJsonBody(Buffer.from(tooMuch), limits)).toThrow(refused('invalid_value', '^The body '));
  });
});
