/** Sources of secrets: those that are always there, and those of plugins. */
import { open } from 'node:fs/promises';
import type { SecretSource } from '../../sdk/author/secrets.ts';
import { env } from '../../settings/environment.ts';

/** Largest file that is read for a secret, in bytes. */
const maxBytes = 64 * 1024;

/** Variables of the environment, and files. */
export const ownSources: ReadonlyMap<string, SecretSource> = new Map([
  ['env', { read: ({ name }) => Promise.resolve(env(name)) }],
  ['file', { read: ({ name }) => textOfFile(name) }],
]);

/** Returns what a file holds; undefined where it cannot be read. Reads no more than the largest secret, whatever the file is. */
async function textOfFile(path: string): Promise<string | undefined> {
  try {
    const file = await open(path);
    try {
      const bytes = Buffer.alloc(maxBytes + 1);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
      return bytesRead > maxBytes ? undefined : bytes.toString('utf8', 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch {
    return undefined;
  }
}
