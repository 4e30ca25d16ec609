/** Computes digests of the configuration's files: the version that operators see, and the digest that detects changes during a start. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Names of files that belong to the configuration. */
const scripts = /\.(ts|mts|js|mjs|json)$/;

/**
 * A short name for the config file and all scripts in `plugins/` and `channels/` beside it, as they are now: it changes with each of them.
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

/** A digest of those files, of `.env` and of all scripts beside them, by which workers tell whether they have read the same. */
export function digestOfFiles(file: string, root: string): string {
  const hash = createHash('sha256').update(versionOf(file, root));
  for (const path of [join(root, '.env'), ...scriptsIn(root, false)]) {
    hash.update(`${relative(root, path)}\0`);
    hash.update(contentOf(path));
  }
  return hash.digest('hex');
}

function scriptsIn(folder: string, recursive = true): string[] {
  try {
    return readdirSync(folder, { recursive, withFileTypes: true })
      .filter((entry) => entry.isFile() && scripts.test(entry.name))
      .map(({ parentPath, name }) => join(parentPath, name))
      .filter((path) => !path.includes('node_modules'))
      .toSorted();
  } catch {
    return [];
  }
}

function contentOf(path: string): Buffer | string {
  try {
    return readFileSync(path);
  } catch {
    return '';
  }
}
