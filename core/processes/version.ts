/** Computes digests of the configuration's files: the version that operators see, and the digest that detects changes during a start. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Names of files that belong to the configuration. */
const scripts = /\.(ts|mts|js|mjs|json)$/;

/**
 * Returns a short name for the config file and all scripts in `plugins/` and `channels/` beside it, as they are now: it changes with each of them.
 * `.env` is left out, as it holds secrets.
 */
export function versionOf(file: string, root: string): string {
  const hash = createHash('sha256');
  for (const path of [file, ...scriptsIn(join(root, 'plugins')), ...scriptsIn(join(root, 'channels'))]) {
    hash.update(`${relative(root, path)}\0`);
    hash.update(contentOf(path));
  }
  return hash.digest('hex').slice(0, 12);
}

/** Returns a digest of those files, of `.env` and of all scripts beside them, by which workers tell whether they have read the same. */
export function digestOfFiles(file: string, root: string): string {
  const hash = createHash('sha256').update(versionOf(file, root));
  for (const path of [join(root, '.env'), ...scriptsIn(root, false)]) {
    hash.update(`${relative(root, path)}\0`);
    hash.update(contentOf(path));
  }
  return hash.digest('hex');
}

/** Returns the scripts in a folder, sorted. Links are followed, as they are where plugins and channels are loaded; packages are left out. */
function scriptsIn(folder: string, recursive = true): string[] {
  const found: string[] = [];
  // A linked folder may be part of itself.
  const seen = new Set<string>();
  const look = (directory: string): void => {
    const real = present(() => realpathSync(directory));
    if (real === undefined || seen.has(real)) return;
    seen.add(real);
    for (const name of present(() => readdirSync(real)) ?? []) {
      const path = join(directory, name);
      const entry = present(() => statSync(path));
      if (entry?.isFile() === true && scripts.test(name)) found.push(path);
      else if (recursive && entry?.isDirectory() === true && name !== 'node_modules') look(path);
    }
  };
  look(folder);
  return found.toSorted();
}

/** Reads a file or folder for the digest; undefined if it does not exist or cannot be read. */
function present<Read>(read: () => Read): Read | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function contentOf(path: string): Buffer | string {
  return present(() => readFileSync(path)) ?? '';
}
