import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { childrenOf } from '../reload/gateway.ts';
import { sluiceProgram } from '../support/program.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const key = `sk-${'t'.repeat(48)}`;

/** A gateway in a process of its own, started as an operator starts it. */
export interface GatewayProcess {
  readonly url: string;
  readonly key: string;
  /** Its config file. */
  readonly config: string;
  /** Log lines and whatever else it wrote. */
  readonly output: string[];
  /** Resident memory of the processes that serve, in bytes. */
  memory(): number;
  signal(name: NodeJS.Signals): void;
  /** Resolves to exit code or signal. */
  readonly exited: Promise<number | string>;
  /** Ends it at once and removes its files. */
  end(): Promise<void>;
}

/** Starts `sluice start` with a config whose members are given as source text; `openai`, `anthropic` and `gemini` are in scope. */
export async function startProcess(members: string): Promise<GatewayProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-process-'));
  // JavaScript, so that no worker has to load the compiler of TypeScript for it alone.
  const config = join(folder, 'gateway.config.mjs');
  const imports = ['openai', 'anthropic', 'gemini']
    .map((kind) => `import ${kind} from '${root}channels/${kind}.ts';`)
    .join('\n');
  // A busy machine refuses no call.
  const usual = `listen: { port: 0 }, database: 'sqlite::memory:', overload: { lag: 600_000 }, spareWorker: false`;
  writeFileSync(config, `${imports}\nexport default { ${usual}, ${members} };\n`);
  const child: ChildProcess = spawn(process.execPath, [...sluiceProgram, 'start', '--config', config], {
    cwd: folder,
    env: { PATH: process.env.PATH, SLUICE_BOOTSTRAP_KEY: key, NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: string[] = [];
  const exited = new Promise<number | string>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  );
  const url = new Promise<string>((resolve, reject) => {
    let first = '';
    const onData = (chunk: Buffer): void => {
      const text = chunk.toString();
      output.push(text);
      // Looked for in what it begins with alone: a log of megabytes would be read anew with each of its lines.
      if (first.length > 100_000) return;
      first += text;
      const found = /listens on (http:\/\/\S+)/.exec(first)?.[1];
      if (found !== undefined) resolve(found.replace('localhost', '127.0.0.1'));
    };
    child.stdout?.on('data', onData);
    child.stderr?.on('data', onData);
    void exited.then((code) => reject(new Error(`The gateway ended with ${code}: ${output.join('')}`)));
  });
  return {
    url: await url,
    key,
    config,
    output,
    memory: () => childrenOf(child.pid ?? 0).reduce((sum, pid) => sum + residentMemory(pid), 0),
    signal: (name) => void child.kill(name),
    exited,
    async end() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

function residentMemory(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}
