import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sluiceProgram } from '../support/program.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Ignored by git, and inside the repository, so that `sluice` means the same there as in `plugins/`. */
const testFolder = join(root, 'data/tests');

/** The key that every gateway here knows. */
export const key = `sk-${'r'.repeat(48)}`;

/** The password of its admin API. */
export const password = 'correct horse battery';

/** A line of its log. */
export type Line = Readonly<Record<string, unknown>>;

/** `sluice start` in a folder of its own, as an operator has it. */
export interface OperatedGateway {
  readonly url: string;
  readonly pid: number;
  readonly folder: string;
  /** All it wrote. */
  output(): string;
  /** The lines of its log with this sentence. */
  lines(sentence: string): Line[];
  /** Writes a file in its folder. */
  write(path: string, text: string): void;
  remove(path: string): void;
  signal(name: NodeJS.Signals): void;
  /** Ids of its worker processes. */
  workers(): number[];
  /** Resolves when this many lines of its log have the sentence, to the last of them. */
  logged(sentence: string, count?: number): Promise<Line>;
  /** Exit code or signal. */
  readonly exited: Promise<number | string>;
  /** Ends it at once and removes its files. */
  end(): Promise<void>;
}

/** The text of a config with the demo channel. */
export function configWith(members: string): string {
  return `import demo from '${root}channels/demo/index.ts';
export default {
  listen: { port: 0 },
  bootstrapKey: '${key}',
  adminPassword: '${password}',
  overload: { lag: 600_000 },
  spareWorker: false,
  ${members.replace(/,\s*$/, '')},
};
`;
}

/**
 * Starts a gateway with these files beside each other, one of them `gateway.config.ts`, and waits until it listens. With `gateway.config.mjs`
 * no worker has to load the compiler of TypeScript for it alone, and starts with a twentieth less work.
 */
export async function operate(
  files: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<OperatedGateway> {
  mkdirSync(testFolder, { recursive: true });
  const folder = mkdtempSync(join(testFolder, 'operated-'));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const [path, text] of Object.entries(files)) write(path, text);
  const config = join(folder, 'gateway.config.mjs' in files ? 'gateway.config.mjs' : 'gateway.config.ts');
  const child: ChildProcess = spawn(
    process.execPath,
    [...sluiceProgram, 'start', '--config', config, ...args],
    {
      cwd: folder,
      env: { PATH: process.env.PATH, NODE_ENV: 'production' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let text = '';
  const listeners = new Set<() => void>();
  const readOutput = (chunk: Buffer): void => {
    text += chunk.toString();
    for (const listener of listeners) listener();
  };
  child.stdout?.on('data', readOutput);
  child.stderr?.on('data', readOutput);
  const exited = new Promise<number | string>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  );
  const wrote = <Found>(look: () => Found | undefined): Promise<Found> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        const found = look();
        if (found === undefined) return;
        listeners.delete(check);
        resolve(found);
      };
      listeners.add(check);
      void exited.then((code) => reject(new Error(`The gateway ended with ${code}: ${text}`)));
      check();
    });
  const lines = (sentence: string): Line[] =>
    text
      .split('\n')
      .filter((line) => line.startsWith('{') && line.endsWith('}'))
      .map((line) => JSON.parse(line) as Line)
      .filter(({ msg }) => msg === sentence);
  const url = await wrote(() => /listens on (http:\/\/\S+)/.exec(text)?.[1]);
  return {
    url: url.replace('localhost', '127.0.0.1'),
    pid: child.pid ?? 0,
    folder,
    output: () => text,
    lines,
    write,
    remove: (path) => rmSync(join(folder, path), { recursive: true, force: true }),
    signal: (name) => void child.kill(name),
    workers: () => childrenOf(child.pid ?? 0),
    logged: (sentence, count = 1) => wrote(() => lines(sentence)[count - 1]),
    exited,
    async end() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await exited;
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

/** The processes that this one has started. */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
      .trim()
      .split(' ')
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}

/** A worker that was replaced ends with its last connection, which `fetch` would keep. */
const closing = { connection: 'close' };

/** An operator who has logged in to the admin API. */
export async function logIn(gateway: OperatedGateway) {
  const login = await fetch(`${gateway.url}/api/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...closing },
    body: JSON.stringify({ password }),
  });
  const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? '';
  const { csrfToken } = (await login.json()) as { csrfToken: string };
  const headers = { cookie, 'x-csrf-token': csrfToken, ...closing };
  const sendRequest = async (method: string, path: string): Promise<Record<string, unknown>> => {
    const answer = await fetch(`${gateway.url}/api/admin/${path}`, { method, headers });
    return (await answer.json()) as Record<string, unknown>;
  };
  return { sendRequest };
}
