/**
 * `npm run mutate -- FOLDER…`: changes the code of a folder in one small place at a time and runs the tests that reach that place. A change
 * that no test notices is listed as a survivor. See `--help` and CONTRIBUTING.md. Exits with 1 when a folder is below the goal, or when
 * accepted.ts names a mutant that is killed or gone.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testsFor } from '../support/tests-for.ts';
import { acceptedEntry, withoutMutant } from './accepted.ts';
import { measureCoverage } from './coverage.ts';
import { instrument, type Mutant, type SourceFile } from './mutants.ts';
import { readOptions, usage, type Options } from './options.ts';
import { goal, goneLines, killedLines, scoreLine, scoreOf, survivorLines } from './report.ts';
import { sample } from './sample.ts';
import { Tree } from './tree.ts';
import { hasSurvived, tryMutants, type Tried } from './try-mutants.ts';

const home = join(import.meta.dirname, '../..');
const print = (line: string): void => console.log(line);

function isBelow(folder: string, file: string): boolean {
  return file === folder || file.startsWith(`${folder}/`);
}

/** Paths of files below folders, from the root of the repository. */
function filesBelow(folders: readonly string[], pattern: RegExp): string[] {
  const found = folders.flatMap((folder) => globSync([folder, `${folder}/**/*`], { cwd: home }));
  return [...new Set(found)].filter((path) => pattern.test(path)).toSorted();
}

function sourcesOf({ folders }: Options): SourceFile[] {
  const paths = filesBelow(folders, /(?<!\.d)\.ts$/);
  if (paths.length === 0) throw new Error(`No TypeScript below ${folders.join(', ')}.`);
  return paths.map((path) => ({ path, text: readFileSync(join(home, path), 'utf8') }));
}

function testFilesOf({ folders, tests }: Options): string[] {
  const named = tests.length > 0 ? tests : folders.flatMap((folder) => testsFor(folder));
  const files = filesBelow(named, /\.test\.ts$/);
  if (files.length === 0) throw new Error(`No tests are named for ${folders.join(', ')}: use --tests.`);
  return files;
}

/** The mutants to try: the sample of each folder and all accepted ones, or those that survived an earlier run. */
function chosen(mutants: readonly Mutant[], options: Options): Mutant[] {
  if (options.again !== undefined) return survivorsOf(options.again, mutants);
  const sampled = options.folders.flatMap((folder) =>
    sample(
      mutants.filter(({ file }) => isBelow(folder, file)),
      options.sample,
      options.seed,
    ),
  );
  const known = mutants.filter((mutant) => acceptedEntry(mutant) !== undefined);
  return [...new Set([...sampled, ...known])];
}

function survivorsOf(path: string, mutants: readonly Mutant[]): Mutant[] {
  const earlier = JSON.parse(readFileSync(path, 'utf8')) as readonly Tried[];
  const isSame = (one: Mutant, other: Mutant): boolean =>
    one.file === other.file &&
    one.line === other.line &&
    one.original === other.original &&
    one.replacement === other.replacement;
  return mutants.filter((mutant) => earlier.some((one) => hasSurvived(one) && isSame(one.mutant, mutant)));
}

/** Prints the result and returns the exit code. */
function report(tried: readonly Tried[], mutants: readonly Mutant[], { folders }: Options): number {
  const scores = folders.map((folder) =>
    scoreOf(
      folder,
      mutants.filter(({ file }) => isBelow(folder, file)).length,
      tried.filter(({ mutant }) => isBelow(folder, mutant.file)),
    ),
  );
  const gone = withoutMutant(mutants, (file) => folders.some((folder) => isBelow(folder, file)));
  const wrong = [...killedLines(tried), ...goneLines(gone)];
  for (const line of ['', ...survivorLines(tried), '', ...wrong, ...scores.map(scoreLine)]) print(line);
  return wrong.length === 0 && scores.every(({ killed, tried: all }) => killed >= goal * all) ? 0 : 1;
}

async function main(options: Options): Promise<number> {
  const tests = testFilesOf(options);
  const { files, mutants } = await instrument(sourcesOf(options));
  const trees = Array.from({ length: options.processes }, () => new Tree(home, files));
  try {
    print(`${mutants.length} mutants; running ${tests.length} test files without any of them`);
    const coverage = await measureCoverage(trees, tests, print);
    const tried = await tryMutants(trees, chosen(mutants, options), coverage, (line, soFar) => {
      print(line);
      // A run may take hours: what is known is kept when it is interrupted.
      if (options.out !== undefined) writeFileSync(options.out, JSON.stringify(soFar, undefined, 2));
    });
    return report(tried, mutants, options);
  } finally {
    for (const tree of trees) tree.close();
  }
}

// Ends the tests that run and removes the trees: see the listeners for "exit".
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const args = process.argv.slice(2);
if (args.includes('--help')) print(usage);
else process.exitCode = await main(readOptions(args));
