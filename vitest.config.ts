import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { patience } from './test/support/patience.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Processes that tests start take what an earlier one has compiled.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/sluice') },
    setupFiles: ['test/support/seed.ts'],
    // Tests over sockets wait more than they work.
    maxWorkers: Math.max(3, availableParallelism()),
    testTimeout: patience.test,
    hookTimeout: patience.test,
    expect: { poll: { timeout: patience.wait, interval: 20 } },
  },
});
