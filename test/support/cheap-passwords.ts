import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { passwordHashFile, passwordHashUrl, withCheapPasswords } from './password-cost.ts';

const loaded = Symbol.for('sluice.tests.cheap-passwords');

/** Loads the hash of passwords into this process with a small cost. It is loaded once in a process, by the first test file there. */
async function loadCheaply(): Promise<void> {
  const hooks = registerHooks({
    load(url, context, next) {
      const module = next(url, context);
      if (url !== passwordHashUrl) return module;
      return { ...module, source: withCheapPasswords(readFileSync(passwordHashFile, 'utf8')) };
    },
  });
  await import(passwordHashUrl);
  hooks.deregister();
}

const shared = globalThis as { [loaded]?: true };
if (!shared[loaded]) {
  shared[loaded] = true;
  await loadCheaply();
}
