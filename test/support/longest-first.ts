import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The test files that wait longest or work most, the longest first: they begin before all others, so that at the end of a run no worker
 * is left alone with one of them. Those that need a process of their own stand among the first eight, where every process is a new one
 * anyway. Whoever writes a test file that takes half a minute beside the others adds it here.
 */
export const longest: readonly string[] = [
  'test/flows/run-time-config.test.ts',
  'test/flows/reload-again.test.ts',
  'test/flows/reload.test.ts',
  'test/browser/dashboard.test.ts',
  'test/chaos/chaos.test.ts',
  'test/package/package.test.ts',
  'test/bench/bench.test.ts',
  'test/linear/linear.test.ts',
  'test/flows/stopping.test.ts',
  'test/race/race.test.ts',
  'test/reload/reload.test.ts',
  'test/flows/workers-as-one.test.ts',
  'test/flows/garbage.test.ts',
  'test/plugins/readme.test.ts',
  'test/core/sdk/testing/channel-cases.test.ts',
  'test/flows/slow-reader.test.ts',
  'test/fuzz/replies.test.ts',
  'test/flows/upstream-fails.test.ts',
  'test/channels/conformance.test.ts',
  'test/flows/rates-across-processes.test.ts',
  'test/core/cli/log-output.test.ts',
  'test/core/cli/start.test.ts',
  'test/flows/admin-races.test.ts',
  'test/flows/workers.test.ts',
  'test/flows/start-fails-late.test.ts',
  'test/browser/views.test.ts',
  'test/house/pages.test.ts',
  'test/core/money/usage-log/usage-log.test.ts',
  'test/plugins/telemetry/failures.test.ts',
  'test/flows/announced-stop.test.ts',
  'test/plugins/telemetry/stopping.test.ts',
  'test/browser/sign-in.test.ts',
  'test/browser/owners.test.ts',
  'test/flows/sign-in.test.ts',
  'test/flows/alerts.test.ts',
  'test/flows/isolation.test.ts',
];

/**
 * In which order the files begin: the longest first, then those that share a process, then those that need one of their own. A shared
 * process ends when the next file in line wants its own, and another one would have to load the gateway anew; so all those stand together.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- it is no array's, and leaves what it is given as it is
    const inUsualOrder = await super.sort(files);
    return inUsualOrder.toSorted((one, other) => this.#rank(one) - this.#rank(other));
  }

  #rank({ moduleId, project }: TestSpecification): number {
    const position = longest.indexOf(relative(this.ctx.config.root, moduleId));
    if (position >= 0) return position;
    return longest.length + (project.config.isolate ? 1 : 0);
  }
}
