import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { Tree } from './tree.ts';

/** Result of the tests. */
export interface Outcome {
  /** `timeout`: they were still running after the time limit, and were killed. */
  readonly result: 'passed' | 'failed' | 'timeout';
  readonly milliseconds: number;
  /** The end of what they wrote. */
  readonly output: string;
}

/** Seconds for which a poll in a test waits here: nearly all that fail would never succeed. */
const patience = '15';

/** Runs test files of a tree one after the other in one process, until one fails. */
export function runTests(tree: Tree, files: readonly string[], limitMs: number): Promise<Outcome> {
  const startedAt = performance.now();
  const child = spawn(
    process.execPath,
    [
      join(tree.root, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--config=test/mutate/vitest.config.ts',
      '--root=.',
      '--bail=1',
      '--maxWorkers=1',
      ...files,
    ],
    {
      cwd: tree.root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, SLUICE_MUTATE_ORDER: files.join('\n'), SLUICE_TEST_PATIENCE: patience },
    },
  );
  running.add(child.pid);
  let output = '';
  const keep = (text: string): void => void (output = (output + text).slice(-4_000));
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      killGroup(child.pid);
    }, limitMs);
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      killGroup(child.pid);
      running.delete(child.pid);
      const result = isLate ? 'timeout' : code === 0 ? 'passed' : 'failed';
      resolve({ result, milliseconds: performance.now() - startedAt, output });
    });
  });
}

/** Tests that run. They have process groups of their own, so that a signal for this process does not reach them. */
const running = new Set<number | undefined>();
process.once('exit', () => running.forEach(killGroup));

/** Kills what the tests have started and left behind, too. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}
