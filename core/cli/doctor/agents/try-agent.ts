/**
 * Runs one agent against the gateway in a temporary home, and judges from its output and its requests whether it answers, streams and uses
 * tools.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from '../../../settings/environment.ts';
import type { Access } from '../../connect/agent.ts';
import { changeOf, write } from '../../connect/files.ts';
import type { Found } from './find.ts';
import { startRecorder, type Recorded, type Recorder } from './recorder.ts';

/** Result for one agent. */
export interface Tried {
  readonly name: string;
  readonly title: string;
  /** True when the agent exited without an error in time, got a response, and printed text. */
  readonly answers: boolean;
  readonly streams: boolean;
  /** `works`: the result of a tool was sent to the model. `offered`: the model used no tool. `none`: the agent offers none. */
  readonly tools: 'works' | 'offered' | 'none';
  /** True when the agent requested the list of models and got it. */
  readonly listsModels: boolean;
  readonly requests: number;
  /** Reason why the agent does not answer. */
  readonly why?: string;
}

/** Maximum number of characters of an agent's output that are kept. */
const maxOutput = 64 * 1024;

/**
 * Runs an agent once. Its home is removed afterwards. It reads no settings of the user, and gets only the environment variables
 * that programs need to start. `timeout` in milliseconds.
 */
export async function tryAgent(
  { agent, run, program }: Found,
  access: Access & { readonly secret: string },
  timeout: number,
): Promise<Tried> {
  const home = mkdtempSync(join(tmpdir(), 'sluice-doctor-'));
  const remove = (): void => rmSync(home, { recursive: true, force: true, maxRetries: 3 });
  let stop = (): void => {};
  const listening = onInterrupt(() => {
    stop();
    remove();
  });
  let recorder: Recorder | undefined;
  try {
    recorder = await startRecorder(access.url, timeout);
    const own: Access = { ...access, key: { value: access.secret }, url: recorder.url };
    const plan = agent.plan(own, { home, platform: process.platform, variable: () => undefined });
    for (const file of plan.files) write(changeOf(file));
    const work = join(home, 'work');
    mkdirSync(work);
    writeFileSync(join(work, 'hello.txt'), 'Hello.\n');
    const question = run.tool === undefined ? 'Say hello.' : `Please call ${run.tool}`;
    const running = start(program, run.arguments(question, own), timeout, work, {
      ...systemVariables(),
      HOME: home,
      USERPROFILE: home,
      TERM: 'dumb',
      CI: '1',
      ...run.env,
    });
    stop = running.stop;
    return verdict(agent, await running.ended, recorder.requests, access.secret);
  } finally {
    await recorder?.close();
    remove();
    listening.end();
  }
}

const interrupts = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Cleans up when this process gets a signal, and then lets it end. A terminal does not interrupt the agent, because the agent has a process
 * group of its own.
 */
function onInterrupt(cleanUp: () => void): { end(): void } {
  const listener = (signal: NodeJS.Signals): void => {
    end();
    cleanUp();
    process.kill(process.pid, signal);
  };
  const end = (): void => {
    for (const signal of interrupts) process.off(signal, listener);
  };
  for (const signal of interrupts) process.on(signal, listener);
  return { end };
}

/** Returns the environment variables that programs need to start. */
function systemVariables(): Record<string, string> {
  const names = ['PATH', 'LANG', 'TMPDIR', 'SystemRoot', 'ComSpec', 'PATHEXT'];
  return Object.fromEntries(
    names.flatMap((name) => [env(name)].flatMap((value) => (value ? [[name, value]] : []))),
  );
}

interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly isLate: boolean;
}

/** A program that runs. */
interface Started {
  readonly ended: Promise<Ended>;
  /** Kills it, with all that it has started. */
  stop(): void;
}

/** Starts a program in a process group of its own, all of which is killed at the end. */
function start(
  program: string,
  args: readonly string[],
  timeout: number,
  cwd: string,
  variables: Record<string, string>,
): Started {
  const child = spawn(program, args, {
    cwd,
    env: variables,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: process.platform !== 'win32',
  });
  const stop = (): void => {
    // A program that did not start has no id, and 0 is the group of this process.
    if (child.pid === undefined) return;
    try {
      process.kill(process.platform === 'win32' ? child.pid : -child.pid, 'SIGKILL');
    } catch {
      // All of them have ended.
    }
  };
  const ended = new Promise<Ended>((resolve) => {
    let output = '';
    let isLate = false;
    const keep = (piece: Buffer): void => {
      output = (output + piece.toString()).slice(-maxOutput);
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    const timer = setTimeout(() => {
      isLate = true;
      stop();
    }, timeout);
    const end = (code: number | null): void => {
      clearTimeout(timer);
      stop();
      resolve({ code, output, isLate });
    };
    child.once('error', (error) => {
      output = error.message;
      end(null);
    });
    // Not `close`, because child processes of the agent may hold its output open.
    child.once('exit', (code) => setTimeout(() => end(code), 100));
  });
  return { ended, stop };
}

function verdict(
  { name, title }: Found['agent'],
  { code, output, isLate }: Ended,
  requests: readonly Recorded[],
  secret: string,
): Tried {
  const isModelList = ({ method, path }: Recorded): boolean => method === 'GET' && path.endsWith('/models');
  const calls = requests.filter(({ method }) => method === 'POST');
  const answered = calls.filter(({ status }) => status === 200);
  const answers = code === 0 && answered.length > 0 && output.trim() !== '';
  const failed = requests.findLast(({ error }) => error !== undefined);
  const last = output.replaceAll(secret, '…').trim().split('\n').at(-1)?.slice(0, 200) ?? '';
  const why = answers
    ? undefined
    : isLate
      ? 'the agent did not exit in time'
      : failed !== undefined
        ? `the gateway ${failed.status === 0 ? `did not respond to ${failed.path}` : `responded to ${failed.path} with ${failed.status}`}: ${failed.error}`
        : calls.length === 0
          ? `the agent sent no request: ${last}`
          : `the agent exited with code ${code}: ${last}`;
  return {
    name,
    title,
    answers,
    streams: answered.some(({ isStream }) => isStream),
    tools: answered.some(({ hasToolResults }) => hasToolResults)
      ? 'works'
      : calls.some(({ hasTools }) => hasTools)
        ? 'offered'
        : 'none',
    listsModels: requests.some((one) => isModelList(one) && one.status === 200),
    requests: requests.length,
    ...(why === undefined ? {} : { why }),
  };
}
