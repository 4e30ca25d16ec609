import { relative } from 'node:path';
import { mergeConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import whole from '../../vitest.config.ts';

/** Test files in the order in which they are to run: those that notice a mutant soonest come first. */
const order = (process.env.SLUICE_MUTATE_ORDER ?? '').split('\n');

class InOrder extends BaseSequencer {
  override sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number =>
      order.indexOf(relative(this.ctx.config.root, moduleId));
    return Promise.resolve(files.toSorted((one, other) => rank(one) - rank(other)));
  }
}

/** A test may take this long, in milliseconds: with many mutants a test waits for what never comes. */
const testTimeout = 45_000;

export default mergeConfig(whole, {
  test: { sequence: { sequencer: InOrder }, testTimeout, hookTimeout: testTimeout },
});
