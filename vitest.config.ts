import { globSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { compiled } from './test/support/compiled.ts';
import { LongestFirst } from './test/support/longest-first.ts';
import { patience, patienceVariable } from './test/support/patience.ts';
import { temporaryFiles } from './test/support/temporary-files.ts';

/**
 * Files that leave nothing behind for the next one and share what they load; but for those that look at what their own process holds,
 * which an earlier file would blur, and those with a managed identity, because Azure's library keeps the first endpoint for the whole process.
 */
const together = globSync(
  'test/{browser,channels,chaos/found,clients,core,databases,flows,formats,fuzz,house,package,plugins,race,reload}/**/*.test.ts',
  { cwd: import.meta.dirname },
).filter(
  (file) =>
    !/\b(?:memoryUsage|getActiveResourcesInfo|getTimerCount)\(|IDENTITY_ENDPOINT/.test(
      readFileSync(join(import.meta.dirname, file), 'utf8'),
    ),
);
// `sluice` is the TypeScript of this repository: see package.json, and core/config/installation/load.ts.
const condition = 'sluice-source';
export default defineConfig({
  // Node is started with this condition, and without `module`, which Vite adds by itself and which is for bundlers.
  ssr: { resolve: { conditions: [condition] } },
  test: {
    // Node itself loads everything, as it does where a gateway runs: what the test runner would make of each module takes a third longer.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    env: { ...compiled, ...patienceVariable, ...temporaryFiles },
    globalSetup: ['test/support/prepare.ts'],
    // Whoever watches wants to know which tests to run again.
    setupFiles: [
      'test/support/seed.ts',
      'test/support/stacks.ts',
      'test/support/cheap-passwords.ts',
      ...(process.argv.includes('run') ? ['test/support/resolve.ts'] : []),
    ],
    sequence: { sequencer: LongestFirst },
    // Tests over sockets wait more than they work: on two cores, eight of them keep both busy.
    maxWorkers: Math.max(8, availableParallelism()),
    testTimeout: patience.test,
    hookTimeout: patience.test,
    expect: { poll: { timeout: patience.wait, interval: 20 } },
    // Loading the gateway anew for each file would take half as long as the tests themselves.
    projects: [
      {
        extends: true,
        // Much is made and thrown away: with a young generation of this size a tenth less of the time goes into sweeping it.
        test: {
          name: 'together',
          include: together,
          isolate: false,
          execArgv: ['--max-semi-space-size=32'],
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: ['test/**/*.test.ts'], exclude: together, isolate: true },
      },
    ],
  },
});
