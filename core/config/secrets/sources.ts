/** Sources of secrets: those that are always there, and those of plugins. */
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import type { SecretSource } from '../../sdk/author/secrets.ts';
import { env } from '../../settings/environment.ts';

/** Largest file that is read for a secret, in bytes. */
const maxBytes = 64 * 1024;

/** Variables of the environment, and files. */
export const ownSources: ReadonlyMap<string, SecretSource> = new Map([
  ['env', { read: ({ name }) => Promise.resolve(env(name)) }],
  ['file', { read: ({ name }) => textOfFile(name) }],
]);

/**
 * Returns the text of a file; undefined where there is none. Rejects with an Error that says why it cannot be read. Reads no more than the
 * largest secret. Other things than files are refused, and without a wait: a read of a pipe would wait for its writer.
 */
async function textOfFile(path: string): Promise<string | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new Error(`the file cannot be read (${code})`, { cause: error });
  }
  try {
    if (!(await file.stat()).isFile()) throw new Error('the path is not that of a regular file');
    const bytes = Buffer.alloc(maxBytes + 1);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    if (bytesRead > maxBytes) throw new Error(`the file is too large: at most ${maxBytes / 1024} KiB`);
    return bytes.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
