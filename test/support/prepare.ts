import { execFileSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { compiled } from './compiled.ts';
import { openTemporaryFiles } from './temporary-files.ts';

const home = join(import.meta.dirname, '../..');

/** Prepares a run of tests. Returns what cleans up after it. */
export default function prepare(): () => void {
  warmUp();
  return openTemporaryFiles();
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
