import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { home } from './home.ts';
import { resolveHere, whatIsFound } from './resolve.ts';

/** Loads a file of an operator's: a config, a plugin, a channel. What it throws is an Error whose message is the reason, and its place. */
export function loadModule(file: string): Promise<{ readonly default?: unknown }> {
  resolveHere();
  return whatIsFound(async (modules) => {
    try {
      return (await import(pathToFileURL(file).href)) as { default?: unknown };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const place = placeOf(error) ?? (await culprit(error, modules));
      const isKnown = place === undefined || place === file || reason.includes(place);
      throw new Error(isKnown ? reason : `${reason} (in ${place})`, { cause: error });
    }
  });
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
