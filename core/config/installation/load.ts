import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { home, packageFolder } from './home.ts';

/**
 * Each path of `exports` in package.json leads to TypeScript under the condition `sluice-source`, and to what is compiled from it without.
 * So one specifier serves the repository, where nothing is compiled to run, and the package, in which Node runs no TypeScript. In the
 * repository the compiler, the tests and the scripts set the condition themselves; what operators bring is loaded by this file, which
 * sets it by the kind of file that it is itself.
 */
const conditions = import.meta.url.endsWith('.ts') ? ['sluice-source'] : [];

const ours = /^sluice(?:\/|$)/;

/** Packages that authors import besides. */
const brought = /^(?:rxjs|zod)(?:\/|$)/;

let isRegistered = false;

/** Modules that were found while one is loaded whose failure may have to be explained. */
let found: Set<string> | undefined;

/**
 * From now on `sluice` and `sluice/…` are the running installation, whoever imports them: a config in a folder without node_modules, and
 * a published plugin that has brought a copy, whose call keys and error classes would be strangers here. What authors import besides
 * comes from their own folder, or else from this installation.
 */
function resolveSluiceHere(): void {
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (ours.test(specifier))
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
        if (!brought.test(specifier)) throw error;
        return nextResolve(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
}

/** Loads a file of an operator's: a config, a plugin, a channel. What it throws is an Error whose message is the reason, and its place. */
export async function loadModule(file: string): Promise<{ readonly default?: unknown }> {
  resolveSluiceHere();
  const modules = (found = new Set<string>());
  try {
    return (await import(pathToFileURL(file).href)) as { default?: unknown };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const place = placeOf(error) ?? (await culprit(error, modules));
    const isKnown = place === undefined || place === file || reason.includes(place);
    throw new Error(isKnown ? reason : `${reason} (in ${place})`, { cause: error });
  } finally {
    if (found === modules) found = undefined;
  }
}

/** The file where an error was thrown, or whose text Node does not understand, as far as the error tells. */
function placeOf(error: unknown): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  // Node begins with the place of a text that it does not understand; other errors have it in their first line that is not our own.
  const places = [...stack.matchAll(/(?:^|^ +at (?:.*\()?)((?:file:\/\/)?\/[^\n]*?):\d+(?::\d+)?\)?$/gm)];
  return places
    .map(([, place = '']) => (place.startsWith('file:') ? fileURLToPath(place) : place))
    .find((place) => !place.startsWith(join(home, 'core/')));
}

/** The file that is no JavaScript. The error does not tell; but it fails again, and after those that import it. */
async function culprit(error: unknown, modules: ReadonlySet<string>): Promise<string | undefined> {
  if (!(error instanceof SyntaxError)) return undefined;
  for (const url of [...modules].toReversed()) {
    if (!url.startsWith('file:')) continue;
    try {
      await import(url);
    } catch (again) {
      if (again instanceof SyntaxError && again.message === error.message) return fileURLToPath(url);
    }
  }
  return undefined;
}
