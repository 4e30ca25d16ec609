import { vi } from 'vitest';
import { patience } from './patience.ts';

/** Waits until `check` throws no more, and gives what it gave then. `interval` is the time between two looks, in milliseconds. */
export function eventually<T>(check: () => T | Promise<T>, interval = 20): Promise<T> {
  return vi.waitFor(check, { timeout: patience.wait, interval });
}
