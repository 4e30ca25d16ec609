import { execFileSync } from 'node:child_process';
import { getHeapSpaceStatistics } from 'node:v8';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { collectAll, giveBackMemory, shareOf, workerArguments } from '../../../core/performance/memory.ts';

describe('the memory that a start took', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const minute = 60_000;

  test('is given back once, to a process that nobody has called yet', () => {
    const collect = vi.fn<() => void>();
    giveBackMemory({ isIdle: true, ended: 0 }, collect);
    vi.advanceTimersByTime(minute);
    expect(collect).toHaveBeenCalledOnce();
    vi.advanceTimersByTime(60 * minute);
    expect(collect).toHaveBeenCalledOnce();
  });

  test('is not given back while the first call runs', () => {
    const collect = vi.fn<() => void>();
    const work = { isIdle: false, ended: 0 };
    giveBackMemory(work, collect);
    vi.advanceTimersByTime(20 * minute);
    expect(collect).not.toHaveBeenCalled();
  });

  test('is given back behind a few calls, for which hardly anything was compiled', () => {
    const collect = vi.fn<() => void>();
    giveBackMemory({ isIdle: true, ended: 3 }, collect);
    vi.advanceTimersByTime(minute);
    expect(collect).toHaveBeenCalledOnce();
  });

  test('is not given back between calls, which would be slow behind it, but when none has come for long', () => {
    const collect = vi.fn<() => void>();
    const work = { isIdle: true, ended: 1000 };
    giveBackMemory(work, collect);
    for (let calls = 0; calls < 20; calls += 1) {
      vi.advanceTimersByTime(4 * minute);
      work.ended += 1;
    }
    expect(collect).not.toHaveBeenCalled();
    vi.advanceTimersByTime(10 * minute);
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

describe('garbage', () => {
  const mebibyte = 1024 * 1024;
  const plenty = 64 * 1024 * mebibyte;

  /** Returns the number of full collections while a process allocates a gigabyte of short-lived buffers. */
  function collections(before: string): number {
    const memory = new URL('../../../core/performance/memory.ts', import.meta.url).href;
    const script = `
      import { setImmediate as turn } from 'node:timers/promises';
      import { PerformanceObserver } from 'node:perf_hooks';
      import { collectSeldom } from ${JSON.stringify(memory)};
      ${before}
      const kept = Array.from({ length: 300_000 }, (_, index) => ({ index }));
      let count = 0;
      new PerformanceObserver((list) => {
        for (const { detail } of list.getEntries()) if (detail.kind === 4) count += 1;
      }).observe({ entryTypes: ['gc'] });
      for (let made = 0; made < 1200; made += 1) {
        Buffer.alloc(800 * 1024);
        if (made % 20 === 0) await turn();
      }
      await turn();
      console.log(count, kept.length);`;
    // With threads of its own, the collector comes as far as the rest of the machine lets it.
    const flags = ['--single-threaded-gc', '--conditions=sluice-source', '--input-type=module', '-e', script];
    return Number.parseInt(execFileSync(process.execPath, flags, { encoding: 'utf8' }), 10);
  }

  test('of large bodies gathers for longer before all memory is gone through', () => {
    const usual = collections('');
    expect(usual).toBeGreaterThan(1);
    expect(collections('collectSeldom();')).toBeLessThan(usual / 2);
  });

  test('may gather in a fixed room, whatever is in use, and in less where there is little memory', () => {
    expect(shareOf(64 * mebibyte, plenty)).toBe(200);
    expect(shareOf(128 * mebibyte, plenty)).toBe(100);
    expect(shareOf(64 * mebibyte, 512 * mebibyte)).toBe(100);
    expect(shareOf(mebibyte, plenty)).toBe(400);
    expect(shareOf(4096 * mebibyte, plenty)).toBe(40);
  });
});

describe('the room for young objects of a worker', () => {
  test('is small unless the operator has set it', () => {
    expect(workerArguments(['--conditions=x'])).toEqual(['--conditions=x', '--max-semi-space-size=16']);
    expect(workerArguments(['--max-semi-space-size=64'])).toEqual(['--max-semi-space-size=64']);
  });
});
