import { testsOf, type Coverage } from './coverage.ts';
import type { Mutant } from './mutants.ts';
import { runTests } from './run-tests.ts';
import type { Tree } from './tree.ts';

/** Outcome of a mutant. `unreached`: it survived because no test runs its code. */
export type Fate = 'killed' | 'timeout' | 'survived' | 'unreached';

/** One mutant that was tried. */
export interface Tried {
  readonly mutant: Mutant;
  readonly fate: Fate;
  /** Number of test files that ran, or would have run until one failed. */
  readonly tests: number;
}

/** Time for starting the tests, in milliseconds, and how many times as long as without a mutant the tests may take. */
const startMs = 20_000;
const slowness = 3;

/** True for a mutant that no test noticed. */
export function hasSurvived({ fate }: Tried): boolean {
  return fate === 'survived' || fate === 'unreached';
}

/** Tries each mutant with the tests that reach it, in as many trees at the same time as there are. */
export async function tryMutants(
  trees: readonly Tree[],
  mutants: readonly Mutant[],
  coverage: Coverage,
  print: (line: string, soFar: readonly Tried[]) => void,
): Promise<Tried[]> {
  const tried: Tried[] = [];
  const left = [...mutants];
  const work = async (tree: Tree): Promise<void> => {
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      const one = await tryMutant(tree, mutant, coverage);
      tried.push(one);
      print(`${tried.length}/${mutants.length} ${one.fate}: ${describeMutant(mutant)}`, tried);
    }
  };
  await Promise.all(trees.map(work));
  return tried;
}

async function tryMutant(tree: Tree, mutant: Mutant, coverage: Coverage): Promise<Tried> {
  const tests = testsOf(mutant.id, coverage);
  if (tests.length === 0) return { mutant, fate: 'unreached', tests: 0 };
  const usual = tests.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
  tree.activate(mutant.id);
  const { result } = await runTests(
    tree,
    tests.map(({ path }) => path),
    startMs + slowness * usual,
  );
  const fate = result === 'passed' ? 'survived' : result === 'failed' ? 'killed' : 'timeout';
  return { mutant, fate, tests: tests.length };
}

/** `file:line mutator: original -> replacement`, in one line. */
export function describeMutant({ file, line, mutator, original, replacement }: Mutant): string {
  const short = (code: string): string => code.replaceAll(/\s+/g, ' ').slice(0, 120);
  return `${file}:${line} ${mutator}: ${short(original)} -> ${short(replacement)}`;
}
