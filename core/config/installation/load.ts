/** Loads modules that the gateway finds by their place: a config, plugins, channels, formats. */
import { pathToFileURL } from 'node:url';
import { loadErrorOf } from './load-error.ts';
import { resolveHere, whatIsFound } from './resolve.ts';

interface Module {
  readonly default?: unknown;
}

/** Modules that were loaded, by their files: Node, too, loads each once, but looks for it again each time. */
const loaded = new Map<string, Module>();

/** Loads a file of an operator: a config, a plugin, a channel. Throws LoadError with the reason and the position. */
export async function loadModule(file: string): Promise<Module> {
  const known = loaded.get(file);
  if (known !== undefined) return known;
  resolveHere();
  return whatIsFound(async (modules) => {
    try {
      const module = (await import(pathToFileURL(file).href)) as Module;
      loaded.set(file, module);
      return module;
    } catch (error) {
      throw await loadErrorOf(error, file, modules);
    }
  });
}
