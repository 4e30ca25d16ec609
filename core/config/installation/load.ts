import { pathToFileURL } from 'node:url';
import { loadErrorOf } from './load-error.ts';
import { resolveHere, whatIsFound } from './resolve.ts';

/** Loads a file of an operator: a config, a plugin, a channel. Throws LoadError with the reason and the position. */
export function loadModule(file: string): Promise<{ readonly default?: unknown }> {
  resolveHere();
  return whatIsFound(async (modules) => {
    try {
      return (await import(pathToFileURL(file).href)) as { default?: unknown };
    } catch (error) {
      throw await loadErrorOf(error, file, modules);
    }
  });
}
