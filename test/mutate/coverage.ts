import { existsSync, readFileSync } from 'node:fs';
import { runTests } from './run-tests.ts';
import type { Tree } from './tree.ts';

/** Result of one test file with unchanged code. */
export interface TestFile {
  readonly path: string;
  readonly milliseconds: number;
  /** Ids of the mutants that it reaches, in its own process and in those that it starts. */
  readonly reached: ReadonlySet<string>;
}

/** Measured coverage, and the test files that are left out because they fail without a mutant. */
export interface Coverage {
  readonly tests: readonly TestFile[];
  readonly failing: readonly string[];
}

/** A test file may take this long when nothing is changed, in milliseconds. */
const limitMs = 300_000;

/** Runs each test file alone, and records which mutants it reaches. Several trees work side by side. */
export async function measureCoverage(
  trees: readonly Tree[],
  files: readonly string[],
  print: (line: string) => void,
): Promise<Coverage> {
  const tests: TestFile[] = [];
  const failing: string[] = [];
  const left = [...files];
  const work = async (tree: Tree): Promise<void> => {
    for (let path = left.shift(); path !== undefined; path = left.shift()) {
      tree.record();
      const { result, milliseconds, output } = await runTests(tree, [path], limitMs);
      const reached = idsIn(tree.reached);
      if (result === 'passed') tests.push({ path, milliseconds, reached });
      else {
        failing.push(path);
        print(`${path} fails without a mutant and is left out:\n${output}`);
      }
    }
  };
  await Promise.all(trees.map(work));
  return { tests, failing };
}

function idsIn(path: string): Set<string> {
  return new Set(existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []);
}

/** Returns the test files that reach a mutant: those that reach the fewest others come first, because they are made for this code. */
export function testsOf(id: string, { tests }: Coverage): readonly TestFile[] {
  return tests
    .filter(({ reached }) => reached.has(id))
    .toSorted((one, other) => one.reached.size * one.milliseconds - other.reached.size * other.milliseconds);
}
