import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { patience } from './test/support/patience.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/seed.ts'],
    // Tests over sockets wait more than they work.
    maxWorkers: Math.max(3, availableParallelism()),
    testTimeout: patience.test,
    hookTimeout: patience.test,
    expect: { poll: { timeout: patience.wait, interval: 20 } },
  },
});
