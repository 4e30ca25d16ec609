import { expect, test } from 'vitest';
import { prove } from './run.ts';

test('many sessions at once lose no frame, pay for each answer once, and a client that reads nothing costs little', async () => {
  const { growth, ...wrong } = await prove({ sessions: 20, seconds: 4, flood: 128 });
  expect(wrong).toEqual({ damaged: 0, broken: 0, unrecorded: 0, uncharged: 0 });
  expect(growth).toBeLessThan(96 * 1024 * 1024);
});
