import { expect, test } from 'vitest';
import { everything } from '../support/tries.ts';
import { tryReloads } from './run.ts';

// Streams during reloads are also in rolling.test.ts and in the test of run-time configuration; all at once are tried by `npm run fuzz`.
test.skipIf(!everything)(
  'open streams and calls notice nothing of reloads, and streams end in order when the gateway stops',
  async () => {
    const result = await tryReloads({
      streams: 60,
      pace: 200,
      longest: 2_500,
      drain: 4_000,
      print: (line) => console.log(line),
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
  },
);
