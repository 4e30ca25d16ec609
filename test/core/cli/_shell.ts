import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { compiled } from '../../support/compiled.ts';

/** Exit code and output of a command. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A process that all `sluice` commands of a test file share: for what a command says. That it ends by itself is shown by `sluice` of
 * `_process.ts`, which starts a process for each.
 */
export function shell(): (
  args: readonly string[],
  environment?: Readonly<Record<string, string>>,
) => Promise<CommandResult> {
  let started: Shell | undefined;
  let last: Promise<unknown> = Promise.resolve();
  afterAll(() => void started?.child.kill());
  return function sluiceInShell(args, environment = {}) {
    const { child, ended } = (started ??= start());
    const result = last.then(async () => {
      child.send({ args, environment });
      const answered = new Promise<CommandResult>((resolve) =>
        child.once('message', resolve as (result: unknown) => void),
      );
      return Promise.race([answered, ended]);
    });
    last = result.catch(() => {});
    return result;
  };
}

interface Shell {
  readonly child: ChildProcess;
  readonly ended: Promise<never>;
}

function start(): Shell {
  const child = fork(fileURLToPath(new URL('./_shell-process.ts', import.meta.url)), {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...compiled },
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error('The process ended with its command.');
  });
  ended.catch(() => {});
  return { child, ended };
}
