import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';

/** How a command ended, and what it wrote. */
export interface Told {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

let shell: { readonly child: ChildProcess; readonly ended: Promise<never> } | undefined;
let last: Promise<unknown> = Promise.resolve();

afterAll(() => void shell?.child.kill());

/**
 * Runs one `sluice` command in a process that all commands of a test file share. For what a command says; that it ends by itself is shown
 * by `sluice` of `_process.ts`, which starts a process for each.
 */
export function sluiceInShell(args: readonly string[]): Promise<Told> {
  shell ??= start();
  const { child, ended } = shell;
  const told = last.then(async () => {
    child.send(args);
    const answered = new Promise<Told>((resolve) =>
      child.once('message', resolve as (told: unknown) => void),
    );
    return Promise.race([answered, ended]);
  });
  last = told.catch(() => {});
  return told;
}

function start(): NonNullable<typeof shell> {
  const child = fork(fileURLToPath(new URL('./_shell-process.ts', import.meta.url)), {
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error('The process ended with its command.');
  });
  ended.catch(() => {});
  return { child, ended };
}
