import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { compiled } from '../support/compiled.ts';

/** Child process of the chaos test that answers requests. */
export interface Child<Ready> {
  readonly ready: Ready;
  readonly pid: number;
  request<Answer>(question: string, params?: unknown): Promise<Answer>;
  /** Ends it; kills it when it does not end by itself. */
  end(): Promise<void>;
}

interface ChildMessage {
  readonly ready?: unknown;
  readonly number?: number;
  readonly answer?: unknown;
  readonly failure?: string;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts a script of this folder, which uses `answering`, and waits until it is ready. */
export async function startChild<Ready>(
  script: string,
  environment: Readonly<Record<string, string>>,
  nodeOptions: readonly string[] = [],
): Promise<Child<Ready>> {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), {
    execArgv: [...process.execArgv, ...nodeOptions],
    env: {
      ...(process.env['PATH'] === undefined ? {} : { PATH: process.env['PATH'] }),
      NODE_ENV: 'production',
      ...compiled,
      ...environment,
    },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  running.add(child);
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  const isReady = Promise.withResolvers<unknown>();
  const exited = once(child, 'exit').then(([code, signal]: (number | string | null)[]) => {
    running.delete(child);
    const error = new Error(`${script} ended with ${signal ?? code}.`);
    isReady.reject(error);
    for (const one of waiting.values()) one.reject(error);
  });
  child.on('message', (message) => {
    const { ready, number, answer, failure } = message as ChildMessage;
    if (number === undefined) {
      isReady.resolve(ready);
      return;
    }
    const one = waiting.get(number);
    waiting.delete(number);
    if (failure === undefined) one?.resolve(answer);
    else one?.reject(new Error(`${script}: ${failure}`));
  });
  let numbers = 0;
  const ready = (await isReady.promise) as Ready;
  return {
    ready,
    pid: child.pid ?? 0,
    request<Answer>(question: string, params?: unknown): Promise<Answer> {
      const number = (numbers += 1);
      const one = Promise.withResolvers<unknown>();
      waiting.set(number, one);
      child.send({ number, question, params });
      return one.promise as Promise<Answer>;
    },
    async end() {
      if (child.connected) child.disconnect();
      const timer = setTimeout(() => child.kill('SIGKILL'), 5000);
      await exited;
      clearTimeout(timer);
    },
  };
}
