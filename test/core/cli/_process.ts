import { spawn, type ChildProcess } from 'node:child_process';
import { onTestFinished } from 'vitest';
import { sluiceProgram } from '../../support/program.ts';

/** Exit code and output of a process. */
export interface Outcome {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that may still run. It is ended with the test. */
export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Outcome>;
  /** Standard output so far. */
  stdout(): string;
  /** Resolves when standard output fits; rejects with everything it wrote when it ends before. */
  wrote(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Starts a program with nothing in its environment but what is given, so that the machine's own settings play no part. */
export function start(
  program: string,
  args: readonly string[],
  environment: Record<string, string> = {},
  cwd?: string,
): Running {
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd === undefined ? {} : { cwd }),
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  const listeners = new Set<() => void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    for (const listener of listeners) listener();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<Outcome>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return {
    child,
    ended,
    stdout: () => stdout,
    wrote: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = pattern.exec(stdout);
          if (found === null) return;
          listeners.delete(look);
          resolve(found);
        };
        listeners.add(look);
        void ended.then(
          (outcome) => reject(new Error(`It ended before it wrote ${pattern}: ${JSON.stringify(outcome)}`)),
          reject,
        );
        look();
      }),
  };
}

/** Runs one `sluice` command to its end. */
export function sluice(
  args: readonly string[],
  environment?: Record<string, string>,
  cwd?: string,
): Promise<Outcome> {
  return start(process.execPath, [...sluiceProgram, ...args], environment, cwd).ended;
}

/** A gateway in a process of its own. */
export interface GatewayProcess extends Running {
  readonly url: string;
  readonly key: string;
}

/** Runs `sluice start` on a free port with the config in this folder, and waits until it listens. */
export async function startGatewayIn(
  folder: string,
  environment: Record<string, string> = {},
): Promise<GatewayProcess> {
  const running = start(
    process.execPath,
    [...sluiceProgram, 'start', '--config', `${folder}/gateway.config.ts`],
    {
      SLUICE_PORT: '0',
      ...environment,
    },
  );
  const [, url = ''] = await running.wrote(/listens on (http:\S+)/);
  const [, key = ''] = await running.wrote(/shown only once\):\s+(sk-\w{48})\s/);
  return { ...running, url, key };
}
