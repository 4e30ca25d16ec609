import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';

/** File system of Linux whose files are in memory. */
const inMemory = '/dev/shm';
const prefix = 'sluice-tests-';

/** Required free space: tests keep about 100 MiB of files at a time, and their processes need about 6 GiB. */
const least = { files: 2 * 1024 ** 3, memory: 8 * 1024 ** 3 } as const;

/**
 * Folder for temporary files of this run: in memory where there is enough, because databases that nobody needs afterwards wait for no disk
 * there. A run of tests of databases takes a quarter less CPU (measured in November 2026). Undefined where the usual folder is used.
 */
const folder = hasRoom() ? join(inMemory, `${prefix}${process.pid}`) : undefined;

/** Variables for tests and the processes that they start. */
export const temporaryFiles: Readonly<Record<string, string>> =
  folder === undefined ? {} : { TMPDIR: folder };

/** Makes the folder, and removes those of runs that were killed. Returns what removes it in the end. */
export function openTemporaryFiles(): () => void {
  if (folder === undefined) return () => {};
  for (const name of readdirSync(inMemory))
    if (name.startsWith(prefix) && !existsSync(`/proc/${name.slice(prefix.length)}`)) remove(name);
  // A database server that does not run as this user must reach its files.
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  return () => remove(`${prefix}${process.pid}`);
}

function remove(name: string): void {
  rmSync(join(inMemory, name), { recursive: true, force: true, maxRetries: 3 });
}

function hasRoom(): boolean {
  if (process.env['TMPDIR'] !== undefined || !existsSync(inMemory)) return false;
  const { bavail, bsize } = statfsSync(inMemory);
  return bavail * bsize >= least.files && process.availableMemory() >= least.memory;
}
