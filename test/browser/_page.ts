import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cache = join(root, 'node_modules/.cache/sluice-page');

/** Returns a digest of everything that the page is made of, by names, sizes and times. */
function digestOfSources(): string {
  const hash = createHash('sha256').update(process.version);
  const sources = ['plugins/dashboard/web/**/*.*', '{core,plugins}/**/*.ts'];
  const files = globSync(sources, { cwd: root, exclude: ['**/dist/**'] });
  for (const path of [...new Set(files), 'package-lock.json'].toSorted()) {
    const { size, mtimeMs } = statSync(join(root, path));
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}

/**
 * Returns the folder with the page as it is in the source. The first test file that needs it builds it for those that follow: a build takes
 * a second of CPU, and changes of the source alone make another one.
 */
export async function builtPage(): Promise<string> {
  const folder = join(cache, digestOfSources());
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  removeOldPages();
  const made = mkdtempSync(join(cache, 'new-'));
  // In a process of its own: the page is built for production, and tests are not run so.
  await promisify(execFile)(
    process.execPath,
    [join(root, 'node_modules/vite/bin/vite.js'), 'build', 'plugins/dashboard/web', '--outDir', made],
    { cwd: root, env: { PATH: process.env.PATH, NODE_ENV: 'production' } },
  );
  try {
    renameSync(made, folder);
  } catch (error) {
    // Another test file was faster.
    if (!existsSync(folder)) throw error;
    rmSync(made, { recursive: true });
  }
  return folder;
}

/** Removes pages that are a day old. Younger ones may belong to a run that goes on. */
function removeOldPages(): void {
  for (const name of readdirSync(cache)) {
    const folder = join(cache, name);
    // Another test file may be removing it, too.
    const { mtimeMs = Infinity } = statSync(folder, { throwIfNoEntry: false }) ?? {};
    if (mtimeMs < Date.now() - 24 * 3_600_000) rmSync(folder, { recursive: true, force: true });
  }
}
