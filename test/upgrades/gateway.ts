/** A gateway of any tree of this repository, on a port and stores that it shares with others. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../support/free-port.ts';
import { countedModel } from './provider.ts';

/** The password of the admin API of these gateways. */
export const adminPassword = 'upgrades of gateways';

/** Stores and a provider that the gateways share. */
export interface SharedUrls {
  readonly database: string;
  readonly redis: string;
  readonly provider: string;
}

/** Dollars per million tokens: micro-dollars of a token. */
export const price = { input: 3, output: 15 };

/** A gateway that is started, stopped and started again on its port. */
export class TreeGateway {
  readonly url: string;
  readonly #tree: string;
  readonly #folder: string;
  readonly #config: string;
  readonly #environment: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;
  #exited: Promise<void> = Promise.resolve();
  #output = '';

  private constructor(tree: string, { database, redis, provider }: SharedUrls, port: number) {
    this.url = `http://127.0.0.1:${port}`;
    this.#tree = tree;
    this.#folder = mkdtempSync(join(tmpdir(), 'sluice-upgrades-'));
    this.#config = join(this.#folder, 'gateway.config.mjs');
    this.#environment = {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      SLUICE_DATABASE: database,
      SLUICE_DATA: join(this.#folder, 'data'),
    };
    writeFileSync(
      this.#config,
      `import demo from '${tree}/channels/demo/index.ts';
import openaiCompatible from '${tree}/channels/openai-compatible.ts';
export default {
  listen: { port: ${port}, host: '127.0.0.1' },
  adminPassword: '${adminPassword}',
  shared: { url: '${redis}' },
  overload: { lag: 600_000 },
  timeouts: { drain: 60_000 },
  prices: { '*': ${JSON.stringify(price)} },
  channels: [
    demo({ pace: 20 }),
    openaiCompatible({ name: 'counting', key: 'sk-of-the-provider', baseUrl: '${provider}', models: ['${countedModel}'] }),
  ],
};
`,
    );
  }

  static async prepare(tree: string, stores: SharedUrls): Promise<TreeGateway> {
    return new TreeGateway(tree, stores, await freePort());
  }

  /** Resolves when it is ready. Rejects with its last words when it ends before. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, this.#words(['start']), {
      cwd: this.#folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: this.#environment,
      // A group of its own: a power cut leaves none of its processes.
      detached: true,
    });
    this.#child = child;
    this.#output = '';
    for (const stream of [child.stdout, child.stderr])
      stream
        .setEncoding('utf8')
        .on('data', (text: string) => (this.#output = (this.#output + text).slice(-4_000)));
    this.#exited = new Promise((resolve) => void child.once('close', () => resolve()));
    while (!(await this.isReady())) {
      if (hasEnded(child)) throw new Error(`The gateway ended: ${this.#output}`);
      await pause(100);
    }
  }

  async isReady(): Promise<boolean> {
    try {
      const response = await fetch(`${this.url}/readyz`, { headers: { connection: 'close' } });
      await response.arrayBuffer();
      return response.ok;
    } catch {
      return false;
    }
  }

  /** Stops it as an operator does. Resolves to its exit code. */
  async stop(): Promise<number | null | undefined> {
    this.#child?.kill('SIGTERM');
    await this.#exited;
    return this.#child?.exitCode;
  }

  /** Ends all its processes at once, as a power cut would. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child?.pid !== undefined && !hasEnded(child)) process.kill(-child.pid, 'SIGKILL');
    await this.#exited;
  }

  /** Runs a command of its tree with its configuration. Rejects where that fails. */
  async run(...words: readonly string[]): Promise<void> {
    const child = spawn(process.execPath, this.#words(words), {
      cwd: this.#folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: this.#environment,
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-4_000)));
    await new Promise<void>((resolve) => void child.once('close', () => resolve()));
    if (child.exitCode !== 0) throw new Error(`sluice ${words.join(' ')}: ${output}`);
  }

  /** Ends it at once and removes its files. */
  async end(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  #words([command = '', ...words]: readonly string[]): string[] {
    return [join(this.#tree, 'core/cli/sluice.js'), command, ...words, '--config', this.#config];
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}
