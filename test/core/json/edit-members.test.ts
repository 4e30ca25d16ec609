import { expect, test } from 'vitest';
import { editMembers, rewriteMembers } from '../../../core/json/edit-members.ts';
import type { RefusedMember } from '../../../core/model/refused-member.ts';

function take(body: string, ...wanted: readonly (string | RefusedMember)[]) {
  const members = wanted.map((one) => (typeof one === 'string' ? { path: one } : one));
  const { bytes, taken } = rewriteMembers(Buffer.from(body), {}, members);
  return { body: bytes.toString(), taken: taken.map(({ spelled }) => spelled) };
}

test.each([
  ['{"a":1,"b":2,"c":3}', ['b'], '{"a":1,"c":3}', ['b']],
  ['{"a":1}', ['a'], '{}', ['a']],
  ['{"a":{"b":{"c":1,"d":2}},"e":1}', ['a.b.c'], '{"a":{"b":{"d":2}},"e":1}', ['a.b.c']],
  ['{"top_k":1,"x":{"top_k":2}}', ['topK'], '{"x":{"top_k":2}}', ['top_k']],
  [
    '{"generationConfig":{"topK":1,"seed":2}}',
    ['top_k'],
    '{"generationConfig":{"seed":2}}',
    ['generationConfig.topK'],
  ],
  ['{"inferenceConfig":{"topP":1}}', ['top_p'], '{"inferenceConfig":{}}', ['inferenceConfig.topP']],
  ['{"a":1,"a":2,"b":3}', ['a'], '{"b":3}', ['a', 'a']],
  ['{"a":[{"b":1}]}', ['a.b'], '{"a":[{"b":1}]}', []],
  ['{"a":"b"}', ['a.b'], '{"a":"b"}', []],
  ['[{"a":1}]', ['a'], '[{"a":1}]', []],
  ['{"a":1', ['a'], '{"a":1', []],
  ['{"a":1,"b":2}', ['a', 'b'], '{}', ['a', 'b']],
])('members go out of %s: %j', (body, paths, left, taken) => {
  expect(take(body, ...paths)).toEqual({ body: left, taken });
});

test('a body without the members is the same bytes', () => {
  const bytes = Buffer.from(' { "seed" : 12345678901234567890 } ');
  expect(rewriteMembers(bytes, {}, [{ path: 'user' }]).bytes).toBe(bytes);
});

test('numbers that JavaScript cannot hold, and texts that look like members, stay as they are', () => {
  const body = '{"user":"x","seed":12345678901234567890,"text":"\\"user\\":1, {","list":[{"user":1}]}';
  expect(take(body, 'user').body).toBe(
    '{"seed":12345678901234567890,"text":"\\"user\\":1, {","list":[{"user":1}]}',
  );
});

test('a value moves to another name, unless that has a value', () => {
  const limit = { path: 'max_tokens', as: 'max_completion_tokens' };
  expect(take('{"a":1,"max_tokens":7,"b":2}', limit)).toEqual({
    body: '{"a":1,"max_completion_tokens":7,"b":2}',
    taken: ['max_tokens'],
  });
  const both = '{"max_tokens":7,"max_completion_tokens":8}';
  expect(take(both, limit)).toEqual({ body: both, taken: [] });
});

test('a member that is refused beside another goes only where both stand', () => {
  const pair = { path: 'top_p', beside: 'temperature' };
  expect(take('{"top_p":1,"temperature":1}', pair).body).toBe('{"temperature":1}');
  expect(take('{"inferenceConfig":{"topP":1,"temperature":1}}', pair).body).toBe(
    '{"inferenceConfig":{"temperature":1}}',
  );
  expect(take('{"top_p":1,"x":{"temperature":1}}', pair).taken).toEqual([]);
});

test('members are set and removed at the top, and what is set goes out or moves where it is refused', () => {
  const body = '{"model" : "m", "max_tokens":7,"seed":1,"x":{"y":1}}';
  expect(editMembers(body, { seed: undefined, model: 'n' }).toString()).toBe(
    '{"model":"n","max_tokens":7,"x":{"y":1}}',
  );
  const limit = { path: 'max_tokens', as: 'max_completion_tokens' };
  const { bytes, taken } = rewriteMembers(
    Buffer.from(body),
    { max_tokens: 9, user: 'u', x: { y: 2, z: 3 }, seed: undefined },
    [limit, { path: 'user' }, { path: 'x.y' }],
  );
  expect(bytes.toString()).toBe('{"max_completion_tokens":9,"x":{"z":3},"model" : "m"}');
  expect(taken.map(({ spelled }) => spelled)).toEqual(['max_tokens', 'user', 'x.y']);
});

test('a value does not move beside one that is set meanwhile', () => {
  const limit = { path: 'max_tokens', as: 'max_completion_tokens' };
  const edits = { max_completion_tokens: 9 };
  expect(rewriteMembers(Buffer.from('{"max_tokens":7}'), edits, [limit]).bytes.toString()).toBe(
    '{"max_completion_tokens":9,"max_tokens":7}',
  );
});
