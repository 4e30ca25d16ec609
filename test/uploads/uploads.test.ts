import { expect, test } from 'vitest';
import { runUploads } from './run.ts';

test('large recordings arrive byte for byte, many at once, in little memory; one beyond the limit is refused early', async () => {
  const { damaged, failed, growth, refusal } = await runUploads({
    atOnce: 8,
    rounds: 1,
    size: 10 * 1024 * 1024,
  });
  expect({ damaged, failed }).toEqual({ damaged: 0, failed: 0 });
  // Held whole they would be 80 MiB.
  expect(growth).toBeLessThan(60);
  expect(refusal.status).toBe(413);
});
