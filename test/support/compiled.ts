import { fileURLToPath } from 'node:url';

/** In the environment of a process that a test starts: it takes what an earlier one has compiled, and starts with half of the work. */
export const compiled: Readonly<Record<string, string>> = {
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/sluice', import.meta.url)),
};
