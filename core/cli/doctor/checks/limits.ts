/** Checks the limits of open files and memory. */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { memoryLimit } from '../../../settings/environment.ts';
import { findingsOf, shownBytes, type Check, type Examined, type Finding } from '../finding.ts';

const { ok, warning } = findingsOf('limits');

/** Files that a process has open besides connections. */
const ownFiles = 200;

/** Memory of one process that serves ordinary calls, in bytes. See SIZING.md. */
const perWorker = 256 * 1024 * 1024;

/** Limits of the system: open files for the connections of all calls, and memory for all workers. */
export const limits: Check = {
  name: 'limits',
  look: (examined) => [...fileFindings(examined, openFiles()), ...memoryFindings(examined, memoryLimit())],
};

/** Compares the limit of open files with the calls that a process may run. Each call has a connection to its client and one to a provider. */
export function fileFindings({ config }: Examined, most: number | undefined): readonly Finding[] {
  if (most === undefined) return [];
  const { running } = config.settings.overload;
  const calls = Math.floor((most - ownFiles) / 2);
  return calls >= running
    ? [ok(`${most} open files are allowed.`)]
    : [
        warning(
          `${most} open files are allowed. That is enough for ${Math.max(0, calls)} concurrent calls in a process, but "overload.running" is ${running}.`,
          `Raise the limit (ulimit -n, LimitNOFILE= of systemd) to ${2 * running + ownFiles}, or lower "overload.running".`,
        ),
      ];
}

/** Compares the memory with what the workers need. */
export function memoryFindings({ config }: Examined, memory: number): readonly Finding[] {
  const { workers } = config.settings;
  const count = workers === 'auto' ? availableParallelism() : workers;
  return memory >= count * perWorker
    ? [ok(`${shownBytes(memory)} of memory for ${count === 1 ? 'one worker' : `${count} workers`}.`)]
    : [
        warning(
          `${shownBytes(memory)} of memory are too little for ${count} workers.`,
          `Lower "workers", or give the gateway ${shownBytes(count * perWorker)}.`,
        ),
      ];
}

/** Returns the limit of open files; undefined where the system does not show it. Node raises its own limit up to the hard one. */
function openFiles(): number | undefined {
  const file = '/proc/self/limits';
  if (!existsSync(file)) return undefined;
  const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync(file, 'utf8')) ?? [];
  return soft === undefined ? undefined : soft === 'unlimited' ? Infinity : Number(soft);
}
