import { describe, expect, it } from 'vitest';
import { readUsage, usageTap, writeUsage } from '../../../core/formats/responses/usage.ts';

const raw = {
  input_tokens: 100,
  input_tokens_details: { cached_tokens: 40, cache_write_tokens: 10 },
  output_tokens: 30,
  output_tokens_details: { reasoning_tokens: 20 },
  total_tokens: 130,
};
const counts = { input: 100, output: 30, cacheRead: 40, cacheWrite: 10, reasoning: 20 };

describe('usage', () => {
  it('is read in the neutral meaning and written back as it was', () => {
    const usage = readUsage({ ...raw, future: 1 });
    expect(usage).toMatchObject(counts);
    expect(writeUsage(usage)).toEqual({ ...raw, future: 1 });
  });

  it('of another format has both detail objects', () => {
    expect(writeUsage(counts)).toEqual(raw);
    expect(writeUsage(undefined)).toMatchObject({
      input_tokens_details: { cached_tokens: 0 },
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 0,
    });
  });

  it.each([
    {},
    { input_tokens: '7' },
    { input_tokens: 7, input_tokens_details: null },
    { output_tokens: -1 },
  ])('with odd numbers counts what is a count: %j', (odd) => {
    const usage = readUsage(odd);
    expect([0, 7]).toContain(usage.input);
    expect(usage.output).toBe(0);
  });
});

describe('the usage of what passes through', () => {
  it.each(['completed', 'incomplete', 'failed'])('stands in response.%s', (status) => {
    const data = JSON.stringify({ type: `response.${status}`, response: { usage: raw } });
    expect(usageTap().read(data)).toMatchObject(counts);
  });

  it('stands at the top of a whole reply', () => {
    expect(usageTap().read(JSON.stringify({ object: 'response', usage: raw }))).toMatchObject(counts);
  });

  it.each(['{"type":"response.created","response":{"usage":null}}', 'no JSON with "usage"', '{}'])(
    'is not in %s',
    (data) => {
      expect(usageTap().read(data)).toBeUndefined();
    },
  );
});
