import { vi } from 'vitest';
import { patience } from './patience.ts';

/**
 * Waits until `check` neither throws nor gives `false`, and returns what it gave then. `interval` is the time between two looks, in
 * milliseconds.
 */
export function eventually<T>(check: () => T | Promise<T>, interval = 20): Promise<T> {
  const look = async (): Promise<T> => {
    const value = await check();
    if (value === false) throw new Error('It has not become true.');
    return value;
  };
  return vi.waitFor(look, { timeout: patience.wait, interval });
}
