import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defaultServerConditions } from 'vite';
import { defineConfig } from 'vitest/config';
import { patience } from './test/support/patience.ts';

// `sluice` is the TypeScript of this repository: see package.json, and core/installation/load.ts.
const condition = 'sluice-source';

export default defineConfig({
  ssr: { resolve: { conditions: [condition, ...defaultServerConditions] } },
  test: {
    include: ['test/**/*.test.ts'],
    // Processes that tests start take what an earlier one has compiled.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/sluice') },
    execArgv: [`--conditions=${condition}`],
    setupFiles: ['test/support/seed.ts'],
    // Tests over sockets wait more than they work.
    maxWorkers: Math.max(3, availableParallelism()),
    testTimeout: patience.test,
    hookTimeout: patience.test,
    expect: { poll: { timeout: patience.wait, interval: 20 } },
  },
});
