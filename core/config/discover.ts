/** Loads the definitions in a folder, which are named by their files. */
import { readdir } from 'node:fs/promises';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { loadModule } from './installation/load.ts';
import { LoadError } from './installation/load-error.ts';
import { maskSecrets } from '../log.ts';

/** One definition that a folder holds. */
export interface Discovered {
  /** File or folder name without extension. */
  readonly name: string;
  readonly file: string;
  /** The module's default export. */
  readonly value: unknown;
}

/**
 * Returns the definitions in a folder: every `name.ts` (or .mts, .js, .mjs), and every `name/index.ts`. Names that begin with `_` or `.` are
 * helpers, not definitions; with `folders`, so are plain files. `wanted`: the definition of this name alone. A missing folder holds nothing.
 * A module that fails to load is reported, not thrown.
 */
export async function discover(
  folder: string,
  only?: 'folders',
  wanted?: string,
): Promise<{ readonly found: readonly Discovered[]; readonly problems: readonly string[] }> {
  const found: Discovered[] = [];
  const problems: string[] = [];
  if (!existsSync(folder)) return { found, problems };
  const entries = (await readdir(folder, { withFileTypes: true })).toSorted((a, b) =>
    a.name < b.name ? -1 : 1,
  );
  for (const entry of entries) {
    if (entry.name.startsWith('_') || entry.name.startsWith('.')) continue;
    const isFolder = entry.isSymbolicLink() ? leadsToFolder(join(folder, entry.name)) : entry.isDirectory();
    if (only === 'folders' && !isFolder) continue;
    const file = isFolder ? indexOf(join(folder, entry.name)) : scriptFile(folder, entry.name);
    if (file === undefined) continue;
    const name = isFolder ? entry.name : entry.name.replace(/\.(ts|mts|js|mjs)$/, '');
    if (wanted !== undefined && name !== wanted) continue;
    const namesake = found.find((one) => one.name === name);
    if (namesake !== undefined) {
      problems.push(`${file}: its name "${name}" is taken by ${namesake.file}. Rename one of them.`);
      continue;
    }
    try {
      const module = await loadModule(file);
      if (module.default === undefined)
        problems.push(
          `${file}: has no default export. Export the definition by default, or begin the name with "_".`,
        );
      else found.push({ name, file, value: module.default });
    } catch (error) {
      if (!(error instanceof LoadError)) throw error;
      problems.push(`${error.location}: cannot be loaded: ${maskSecrets(error.message)}`);
    }
  }
  return { found, problems };
}

function indexOf(folder: string): string | undefined {
  return ['index.ts', 'index.mts', 'index.js', 'index.mjs']
    .map((name) => join(folder, name))
    .find((file) => existsSync(file));
}

function leadsToFolder(link: string): boolean {
  return statSync(link, { throwIfNoEntry: false })?.isDirectory() === true;
}

function scriptFile(folder: string, name: string): string | undefined {
  return /\.(ts|mts|js|mjs)$/.test(name) && !/\.(d|test)\.m?ts$/.test(name) ? join(folder, name) : undefined;
}
