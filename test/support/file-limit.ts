import { spawnSync } from 'node:child_process';

/** True if `prlimit` of util-linux is installed, which changes the limits of a running process. */
export const hasLimits = spawnSync('prlimit', ['--version']).status === 0;

/** Sets how many file descriptors a process may have. Returns a function that restores the limit from before. */
export function limitFiles(pid: number, count: number): () => void {
  const set = (soft: string): void => {
    const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--nofile=${soft}:`], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
  };
  const before = spawnSync(
    'prlimit',
    ['--pid', String(pid), '--nofile', '--output', 'SOFT', '--noheadings'],
    {
      encoding: 'utf8',
    },
  ).stdout.trim();
  set(String(count));
  return () => set(before);
}
