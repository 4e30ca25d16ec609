import { afterEach, expect, test } from 'vitest';
import { ReadingThread } from '../../../../core/state/database/reading-thread.ts';

let thread: ReadingThread | undefined;
afterEach(() => thread?.close());

function open(): ReadingThread {
  const program = new URL('_counting-program.ts', import.meta.url);
  return (thread = new ReadingThread(program, { kind: 'sqlite', path: '' }));
}

test('a question that nobody waits for any more runs no further statement, and others are answered', async () => {
  const reader = open();
  const left = new AbortController();
  const long = reader.ask({ statements: 1_000 }, left.signal);
  const other = reader.ask({ statements: 3 });
  await expect.poll(() => reader.ask('count')).toBeGreaterThan(0);
  left.abort(new Error('The client has left.'));
  await expect(long).rejects.toThrow('The client has left.');
  expect(await other).toBe('done');
  const before = Number(await reader.ask('count'));
  expect(before).toBeLessThan(1_000);
  await reader.ask({ statements: 5 });
  // One statement may have run when the question was abandoned.
  expect(await reader.ask('count')).toBeLessThanOrEqual(before + 6);
});

test('a question of a client that has left before is not asked', async () => {
  const reader = open();
  await expect(reader.ask({ statements: 1 }, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
  expect(await reader.ask('count')).toBe(0);
});
