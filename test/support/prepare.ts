import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { prepareBundle } from './bundle.ts';
import { compiled } from './compiled.ts';
import { endWhatIsLeftBehind } from './left-behind.ts';
import { bundleVariable } from './program.ts';
import { openTemporaryFiles } from './temporary-files.ts';

const home = join(import.meta.dirname, '../..');

/**
 * True in a run of all tests: single files and folders begin sooner without a bundle. `SLUICE_TEST_BUNDLE=yes` runs those with a bundle too.
 */
const wantsBundle =
  process.env[bundleVariable] !== undefined ||
  (process.argv.includes('run') &&
    process.argv.slice(2).every((argument) => argument === 'run' || argument.startsWith('-')));

/** Prepares a run of tests. Returns what cleans up after it. */
export default async function prepare(): Promise<() => void> {
  const runIsOver = endWhatIsLeftBehind();
  warmUp();
  if (wantsBundle) await prepareBundle();
  const removeFiles = openTemporaryFiles();
  return () => {
    runIsOver();
    removeFiles();
  };
}

/**
 * Where nothing has been compiled yet, everything is loaded once before the tests begin: otherwise each of the many processes that start
 * together compiles all of it for itself.
 */
function warmUp(): void {
  if (existsSync(compiled['NODE_COMPILE_CACHE'] ?? '')) return;
  const files = globSync(
    ['core/{server,sdk/index,sdk/testing/index,cli/start}.ts', '{channels,plugins}/{*,*/index}.ts'],
    {
      cwd: home,
    },
  );
  const script = `await Promise.all(${JSON.stringify(files.map((file) => pathToFileURL(join(home, file))))}.map((file) => import(file)))`;
  execFileSync(process.execPath, ['--conditions=sluice-source', '--input-type=module', '--eval', script], {
    env: { PATH: process.env.PATH, ...compiled },
  });
}
