import { afterEach, expect, test } from 'vitest';
import type { Database } from '../../../../core/state/database/index.ts';
import { openSumsThread } from '../../../../core/money/usage-log/sums-thread.ts';
import { readUntil } from '../../../../core/state/waiting-reader.ts';

interface PendingQuery {
  readonly signal: AbortSignal | undefined;
  answer(value: unknown): void;
}

const questions: PendingQuery[] = [];
afterEach(() => void questions.splice(0));

/** Sums whose thread answers when the test says so. */
function sums() {
  const thread = {
    ask: (_question: unknown, signal?: AbortSignal) =>
      new Promise((resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason as Error));
        questions.push({ signal, answer: resolve });
      }),
  };
  const reader = openSumsThread({ startThread: () => thread } as unknown as Database);
  if (reader === undefined) throw new Error('There is no thread.');
  return () => reader.sums({ since: 1 }, 'model');
}

test('tabs that ask the same share one question, which goes on while one of them waits', async () => {
  const query = sums();
  const [first, second] = [new AbortController(), new AbortController()];
  const one = readUntil(first.signal, query);
  const other = readUntil(second.signal, query);
  expect(questions.length).toBe(1);
  first.abort(new Error('left'));
  await expect(one).rejects.toThrow('left');
  expect(questions[0]?.signal?.aborted).toBe(false);
  questions[0]?.answer({ sums: [] });
  expect(await other).toEqual({ sums: [] });
});

test('a question is abandoned when the last client has left, and asked anew for the next one', async () => {
  const query = sums();
  const left = new AbortController();
  const one = readUntil(left.signal, query);
  left.abort(new Error('left'));
  await expect(one).rejects.toThrow('left');
  expect(questions[0]?.signal?.aborted).toBe(true);
  const next = readUntil(new AbortController().signal, query);
  expect(questions.length).toBe(2);
  questions[1]?.answer({ sums: [] });
  expect(await next).toEqual({ sums: [] });
});
