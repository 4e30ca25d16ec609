/** Resolves imports of `sluice`, and of packages that authors share with it, to this installation. */
import { existsSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { home, packageFolder } from './home.ts';

/** TypeScript in the repository, JavaScript in the package. */
const extension = extname(import.meta.url);

/**
 * Each path of `exports` in package.json leads to TypeScript under the condition `sluice-source`, and to what is compiled from it without.
 * So one specifier serves the repository, where nothing is compiled to run, and the package, in which Node runs no TypeScript. In the
 * repository the compiler, the tests and the scripts set the condition themselves; what operators bring is resolved by this file, which
 * sets it by the kind of file that it is itself.
 */
const conditions = extension === '.ts' ? ['sluice-source'] : [];

const sluice = /^sluice(?:\/|$)/;

/** Packages that authors import besides. */
const shared = /^(?:rxjs|zod)(?=\/|$)/;

/** Imports of such packages that are not installed where they are imported: by the name of the package, the first file that imports it. */
const lent = new Map<string, string>();

/** Returns packages that files import without having them installed, so that they get the copy of this installation, each with one such file. */
export function lentPackages(): ReadonlyMap<string, string> {
  return lent;
}

/** Our own folders, as URLs. */
const folders = ['core/', 'plugins/', 'channels/'].map((folder) => pathToFileURL(join(home, folder)).href);

/** Modules of ours that were found, by their URLs. */
const present = new Set<string>();

/** Imports that cannot be resolved, by their errors. */
const failedImports = new WeakMap<
  object,
  { readonly specifier: string; readonly parent: string | undefined }
>();

/** Returns the import that failed with this error. */
export function failedImportOf(error: unknown) {
  return typeof error === 'object' && error !== null ? failedImports.get(error) : undefined;
}

let isRegistered = false;
let found: Set<string> | undefined;

/** Runs `load` with a set that receives the URLs of all modules that are found meanwhile. */
export async function whatIsFound<T>(load: (urls: ReadonlySet<string>) => Promise<T>): Promise<T> {
  const mine = (found = new Set<string>());
  try {
    return await load(mine);
  } finally {
    if (found === mine) found = undefined;
  }
}

/**
 * Makes `sluice` and `sluice/…` the running installation from now on, whoever imports them: a config in a folder without node_modules, and
 * a published plugin that has brought a copy, whose call keys and error classes would be strangers here. What authors import besides
 * comes from their own folder, or else from this installation, which `sluice check` tells.
 *
 * Our own files name each other by their paths, and those are taken as they stand. Node would look at every folder on the way, and for
 * package.json, for each of some three thousand imports: a start of a gateway takes an eighth less CPU without, and 15 MB less memory.
 */
export function resolveHere(): void {
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const own = ownFile(specifier, context.parentURL);
      if (own !== undefined) {
        found?.add(own.url);
        return own;
      }
      if (sluice.test(specifier))
        return nextResolve(specifier, {
          ...context,
          conditions: [...context.conditions, ...conditions],
          // A package is known by its own name to the files in its folder.
          parentURL: pathToFileURL(join(packageFolder, 'package.json')).href,
        });
      try {
        const resolved = nextResolve(specifier, context);
        if ('url' in resolved) found?.add(resolved.url);
        return resolved;
      } catch (error) {
        const [name] = shared.exec(specifier) ?? [];
        if (name === undefined) {
          if (error instanceof Error) failedImports.set(error, { specifier, parent: context.parentURL });
          throw error;
        }
        if (!lent.has(name) && context.parentURL?.startsWith('file:') === true)
          lent.set(name, fileURLToPath(context.parentURL));
        return nextResolve(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
}

/** Resolves a file of this installation that another of its files imports by path. Node resolves all others, and reports their errors. */
function ownFile(specifier: string, parent: string | undefined) {
  if (!specifier.startsWith('.') || !specifier.endsWith(extension) || parent === undefined) return undefined;
  if (!folders.some((folder) => parent.startsWith(folder))) return undefined;
  const { href: url } = new URL(specifier, parent);
  if (!present.has(url)) {
    if (!existsSync(fileURLToPath(url))) return undefined;
    present.add(url);
  }
  return { url, format: extension === '.ts' ? 'module-typescript' : 'module', shortCircuit: true };
}
