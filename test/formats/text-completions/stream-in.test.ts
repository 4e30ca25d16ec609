import { describe, expect, it } from 'vitest';
import { codec, decodeFrames, failureOf } from './support.ts';

const chunk = (choices: unknown, more: object = {}) => ({
  data: JSON.stringify({ id: 'cmpl-1', object: 'text_completion', created: 5, model: 'x', choices, ...more }),
});
const done = { data: '[DONE]' };

describe('a stream', () => {
  it('is a head, text and a finish', () => {
    expect(
      decodeFrames([
        chunk([{ text: 'Hel', index: 0, logprobs: null, finish_reason: null }]),
        chunk([{ text: 'lo', index: 0, logprobs: null, finish_reason: 'length' }]),
        chunk([], { usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } }),
        done,
      ]),
    ).toMatchObject([
      { type: 'head', id: 'cmpl-1', model: 'x', created: 5 },
      { type: 'text-start', block: 0, choice: 0 },
      { type: 'text-delta', block: 0, text: 'Hel' },
      { type: 'text-delta', block: 0, text: 'lo' },
      { type: 'text-end', block: 0 },
      { type: 'finish', choice: 0, reason: 'length', raw: 'length', format: 'text-completions' },
      { type: 'usage', usage: { input: 3, output: 2 } },
    ]);
  });

  it('closes an answer that its provider left open before [DONE]', () => {
    expect(decodeFrames([chunk([{ text: 'a', index: 0 }]), done]).at(-1)).toMatchObject({
      type: 'finish',
      reason: 'stop',
    });
  });

  it('says nothing more of an answer that has ended', () => {
    const events = decodeFrames([
      chunk([{ text: 'a', index: 0, finish_reason: 'stop' }]),
      chunk([{ text: 'b', index: 0, finish_reason: 'stop' }]),
      done,
    ]);
    expect(events.filter(({ type }) => type === 'text-delta' || type === 'finish')).toHaveLength(2);
  });

  it.each([
    ['is cut', [chunk([{ text: 'a', index: 0 }])], 'upstream_cut'],
    ['is empty', [], 'upstream_cut'],
    ['is no JSON', [{ data: '{' }], 'upstream_error'],
    ['is a number', [{ data: '5' }], 'upstream_error'],
    ['is broken off', [chunk([{ text: '', index: 0, finish_reason: 'error' }])], 'upstream_error'],
    ['has an answer with an absurd number', [chunk([{ text: 'a', index: 1e9 }])], 'upstream_error'],
    [
      'holds an error',
      [{ data: '{"error":{"message":"overloaded","type":"server_error"}}' }],
      'upstream_error',
    ],
  ])('that %s is an error of the provider', (_what, frames, code) => {
    expect(failureOf(() => decodeFrames(frames))).toMatchObject({ origin: 'upstream', code });
  });
});

describe('a whole reply', () => {
  it.each([
    ['an error', { error: { message: 'no', type: 'server_error' } }],
    ['a bare sentence', { message: 'no' }],
    ['no answers', { id: 'x', choices: [] }],
    ['nothing', {}],
  ])('of %s is an error of the provider', (_what, body) => {
    expect(failureOf(() => codec.decodeWhole(body, {}))).toMatchObject({ origin: 'upstream' });
  });
});

it('usage is read from the frames of a pass-through', () => {
  const tap = codec.usageTap();
  const usage = '{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":"4","total_tokens":7}}';
  expect(tap.read(usage)).toMatchObject({ input: 3, output: 4 });
  expect(tap.read('{"usage":null}')).toBeUndefined();
  expect(tap.read('garbage')).toBeUndefined();
  expect(codec.isUsageOnly?.(usage)).toBe(true);
  expect(codec.isUsageOnly?.('{"choices":[{"text":"a"}],"usage":{"prompt_tokens":1}}')).toBe(false);
});
