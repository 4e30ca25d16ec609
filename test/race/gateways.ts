import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SharedStoreSettings } from '../../core/settings/shared.ts';
import { sluiceProgram } from '../support/program.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A gateway in a process of its own, as an operator starts it. */
export interface RacingGateway {
  readonly url: string;
  /** Output of the gateway, for failures. */
  readonly output: string[];
  /** Makes it replace its workers. */
  reload(): void;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
  /** Lets it end in its own time. */
  stop(): Promise<void>;
}

/** Options that all gateways of a race share. */
export interface Shared {
  readonly folder: string;
  readonly database: string;
  readonly upstream: string;
  /** Provider of messages. Default: none. */
  readonly messages?: string;
  /** Seconds of a claim's lease. */
  readonly lease: number;
  /** Dollars per million tokens. */
  readonly price: { readonly input: number; readonly output: number };
  /** Redis that has the rates. Default: each gateway counts by itself. */
  readonly redis?: string | (SharedStoreSettings & { readonly whenDown?: 'refuse' });
  /** Default `warn`. */
  readonly logLevel?: 'info' | 'warn';
}

/** Starts so many gateways on one database. */
export async function startGateways(count: number, shared: Shared): Promise<RacingGateway[]> {
  const config = join(shared.folder, 'gateway.config.ts');
  const settings = {
    listen: { port: 0, host: '127.0.0.1' },
    database: shared.database,
    prices: { 'race-*': shared.price },
    log: { level: shared.logLevel ?? 'warn' },
    ...(shared.redis === undefined
      ? {}
      : { shared: typeof shared.redis === 'string' ? { url: shared.redis } : shared.redis }),
    overload: { lag: 600_000 },
    // One of eight calls fails: the others are to go on fighting for the budget.
    health: { enabled: false },
  };
  const messages =
    shared.messages === undefined
      ? ''
      : `anthropic({ key: 'sk-ant', baseUrl: '${shared.messages}/v1', models: ['race-claude'] }),`;
  writeFileSync(
    config,
    `import anthropic from '${root}channels/anthropic.ts';
import openai from '${root}channels/openai.ts';
import providerObjects from '${root}plugins/provider-objects/index.ts';
import quota from '${root}plugins/quota/index.ts';
export default {
  ...${JSON.stringify(settings)},
  plugins: [quota({ lease: ${shared.lease} }), providerObjects({ poll: { first: 100, most: 500 } })],
  channels: [
    ${messages}
    openai({
      key: 'sk-upstream',
      baseUrl: '${shared.upstream}/v1',
      models: ['race-m', 'race-text'],
      traits: { 'race-text': { formats: ['text-completions'] } },
    }),
  ],
};
`,
  );
  return Promise.all(Array.from({ length: count }, () => start(config, shared.folder)));
}

async function start(config: string, cwd: string): Promise<RacingGateway> {
  const child: ChildProcess = spawn(process.execPath, [...sluiceProgram, 'start', '--config', config], {
    cwd,
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own: a power cut leaves none of its processes.
    detached: true,
  });
  const output: string[] = [];
  const exited = once(child, 'exit');
  let hasStarted = false;
  const url = await new Promise<string>((resolve, reject) => {
    const onData = (chunk: Buffer): void => {
      output.push(chunk.toString());
      if (hasStarted) return;
      const [, found] = /listens on (http:\/\/\S+)/.exec(output.join('')) ?? [];
      if (found === undefined) return;
      hasStarted = true;
      resolve(found.replace('localhost', '127.0.0.1'));
    };
    child.stdout?.on('data', onData);
    child.stderr?.on('data', onData);
    void exited.then(() => reject(new Error(`A gateway did not start: ${output.join('')}`)));
  });
  const { pid } = child;
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    if (signal === 'SIGKILL') process.kill(-pid, signal);
    else child.kill(signal);
    await exited;
  };
  return {
    url,
    output,
    reload: () => void child.kill('SIGHUP'),
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
  };
}
