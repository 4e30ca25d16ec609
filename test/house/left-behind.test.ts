import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';

function titlesOfChildren(pid: number): string {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  return children.map((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8')).join();
}

test.runIf(existsSync('/proc/self/stat'))(
  'a run of tests that is killed leaves no process behind',
  async () => {
    const support = new URL('../support/left-behind.ts', import.meta.url).href;
    // A run whose test has started a server that ignores signals, and that has one of its own.
    const server = `trap '' TERM INT; sleep 1000 & echo $!; wait`;
    const script = `
    import { spawn } from 'node:child_process';
    import { endWhatIsLeftBehind } from '${support}';
    endWhatIsLeftBehind();
    const { pid } = spawn('sh', ['-c', ${JSON.stringify(server)}], { stdio: ['ignore', 'inherit', 'inherit'] });
    console.log(pid);`;
    const run = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const pids: number[] = [];
    onTestFinished(() => {
      for (const pid of pids) if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
    });
    for await (const line of createInterface(run.stdout)) {
      pids.push(Number(line));
      if (pids.length === 2) break;
    }
    await expect.poll(() => titlesOfChildren(run.pid ?? 0)).toContain('sluice tests: 2 processes');
    run.kill('SIGKILL');
    await once(run, 'exit');
    await expect.poll(() => pids.filter((pid) => existsSync(`/proc/${pid}`))).toEqual([]);
  },
);
