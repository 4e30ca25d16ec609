import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

/** A process of the bench that answers questions. */
export interface Child<Ready> {
  readonly pid: number;
  readonly ready: Ready;
  request<Answer>(question: string, params?: unknown): Promise<Answer>;
  end(): Promise<void>;
}

export interface StartOptions {
  /** The core it may use, where processes can be tied to one; any when it is left out. */
  readonly core?: number;
  readonly environment?: Readonly<Record<string, string>>;
}

/** True when processes can be tied to cores: `taskset` is there and so is more than one core. */
export const pinned = availableParallelism() > 1 && spawnSync('taskset', ['-V']).status === 0;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Ends the process with the bench, whatever becomes of it. */
export function endsWithUs(child: ChildProcess): void {
  running.add(child);
  child.once('exit', () => running.delete(child));
}

/** A command that is tied to a core, where that can be done. */
export function onCore(core: number | undefined, command: readonly string[]): readonly string[] {
  return pinned && core !== undefined ? ['taskset', '-c', String(core), ...command] : command;
}

/** Starts a script of this folder and waits until it says that it is ready. Its log goes nowhere, its errors to ours. */
export function start<Ready>(
  script: string,
  { core, environment = {} }: StartOptions = {},
): Promise<Child<Ready>> {
  const file = fileURLToPath(new URL(script, import.meta.url));
  const [program = '', ...words] = onCore(core, [process.execPath, '--conditions=sluice-source', file]);
  const child = spawn(program, words, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production', ...environment },
  });
  endsWithUs(child);
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  const waiting = new Map<number, { resolve(answer: unknown): void; reject(error: Error): void }>();
  let numbers = 0;

  return new Promise((resolve, reject) => {
    child.once('exit', (code, signal) => {
      const error = new Error(`${script} ended early (${signal ?? `code ${code}`}).`);
      reject(error);
      for (const one of waiting.values()) one.reject(error);
    });
    child.once('error', reject);
    child.on('message', (message) => {
      const { ready, number, answer, failure } = message as {
        ready?: Ready;
        number?: number;
        answer?: unknown;
        failure?: string;
      };
      if (number === undefined) {
        resolve({ pid: child.pid ?? 0, ready: ready as Ready, request, end });
        return;
      }
      const one = waiting.get(number);
      waiting.delete(number);
      if (failure === undefined) one?.resolve(answer);
      else one?.reject(new Error(`${script}: ${failure}`));
    });
    const request = <Answer>(question: string, params?: unknown): Promise<Answer> =>
      new Promise((answered, failed) => {
        numbers += 1;
        waiting.set(numbers, { resolve: (answer) => answered(answer as Answer), reject: failed });
        child.send({ number: numbers, question, params });
      });
    const end = async (): Promise<void> => {
      if (child.connected) child.disconnect();
      const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
      await ended;
      clearTimeout(timer);
    };
  });
}
