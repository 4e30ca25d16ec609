import { getHeapSpaceStatistics } from 'node:v8';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { collectAll, giveBackMemory } from '../../../core/processes/memory.ts';

describe('the memory that a start took', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('is given back once, when nobody waits for an answer', () => {
    let calls = 1;
    const collect = vi.fn<() => void>();
    giveBackMemory(() => calls === 0, collect);
    vi.advanceTimersByTime(60_000);
    expect(collect).not.toHaveBeenCalled();
    calls = 0;
    vi.advanceTimersByTime(60_000);
    expect(collect).toHaveBeenCalledOnce();
  });
});

test('all garbage is collected, and the room for young objects shrinks', () => {
  const room = (): number =>
    getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
  let kept: object[] = [];
  // What is still in use when it is collected makes the room grow.
  for (let count = 0; count < 400_000; count += 1) kept.push({ count, text: `${count}` });
  const before = room();
  kept = [];
  collectAll();
  expect(kept).toEqual([]);
  expect(room()).toBeLessThan(before);
  expect(globalThis.gc).toBeUndefined();
});
