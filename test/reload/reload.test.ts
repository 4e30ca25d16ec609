import { expect, test } from 'vitest';
import { tryReloads } from './run.ts';

test('open streams and calls notice nothing of reloads, and streams end in order when the gateway stops', async () => {
  const result = await tryReloads({
    streams: 60,
    pace: 200,
    longest: 2_500,
    drain: 4_000,
    say: (line) => console.log(line),
  });
  console.log(JSON.stringify(result));
  expect(result).toMatchObject({
    errorsTooEarly: 0,
    failedCalls: 0,
    reasons: [],
    marks: ['one', 'two'],
    exit: 0,
  });
  expect(result.streams.broken).toBe(0);
  expect(result.streams.complete).toBeGreaterThan(0);
  expect(result.streams.error).toBeGreaterThan(0);
  expect(result.calls).toBeGreaterThan(20);
});
