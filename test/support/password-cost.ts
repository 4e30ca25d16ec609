import { fileURLToPath } from 'node:url';

/** URL of the file with the cost of the hash of a password: some 50 milliseconds of CPU for each start of a gateway and each login. */
export const passwordHashUrl: string = new URL('../../core/state/password-hash.ts', import.meta.url).href;

export const passwordHashFile: string = fileURLToPath(passwordHashUrl);

const usual = 'const cost = 2 ** 15;';
const cheap = 'const cost = 2 ** 4;';

/**
 * Returns the source of that file with a cost that takes no time. A stored hash names its cost, so that processes with either cost read the
 * hashes of both.
 */
export function withCheapPasswords(source: string): string {
  if (!source.includes(usual)) throw new Error(`${passwordHashFile} has no line "${usual}".`);
  return source.replace(usual, cheap);
}
