/** A gateway of any tree of this repository, on a port and stores that it shares with others. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../support/free-port.ts';

/** The password of the admin API of these gateways. */
export const adminPassword = 'upgrades of gateways';

/** Stores that the gateways share. */
export interface SharedUrls {
  readonly database: string;
  readonly redis: string;
}

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

  private constructor(tree: string, { database, redis }: SharedUrls, port: number) {
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
export default {
  listen: { port: ${port}, host: '127.0.0.1' },
  adminPassword: '${adminPassword}',
  shared: { url: '${redis}' },
  overload: { lag: 600_000 },
  timeouts: { drain: 60_000 },
  prices: { '*': { input: 3, output: 15 } },
  channels: [demo({ pace: 20 })],
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
    });
    this.#child = child;
    this.#output = '';
    for (const stream of [child.stdout, child.stderr])
      stream
        .setEncoding('utf8')
        .on('data', (text: string) => (this.#output = (this.#output + text).slice(-4_000)));
    this.#exited = new Promise((resolve) => void child.once('close', () => resolve()));
    while (!(await this.isReady())) {
      if (child.exitCode !== null) throw new Error(`The gateway ended: ${this.#output}`);
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

  /** Runs a command of its tree with its configuration. Throws where that fails. */
  run(...words: readonly string[]): string {
    const { status, stdout, stderr } = spawnSync(process.execPath, this.#words(words), {
      cwd: this.#folder,
      encoding: 'utf8',
      env: this.#environment,
    });
    if (status !== 0) throw new Error(`sluice ${words.join(' ')}: ${stdout}${stderr}`);
    return stdout;
  }

  /** Ends it at once and removes its files. */
  async end(): Promise<void> {
    if (this.#child?.exitCode === null) this.#child.kill('SIGKILL');
    await this.#exited;
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  #words([command = '', ...words]: readonly string[]): string[] {
    return [join(this.#tree, 'core/cli/sluice.js'), command, ...words, '--config', this.#config];
  }
}
