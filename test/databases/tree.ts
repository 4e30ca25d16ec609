/** Starts the gateway of any tree of this repository, as operators do. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../support/free-port.ts';
import { adminPassword } from './client.ts';

/** A gateway in a process of its own. */
export interface TreeGateway {
  readonly url: string;
  /** Stops it as an operator does. Resolves when it has ended. */
  stop(): Promise<void>;
}

/** Starts it on a database, before a provider at this address. Responses and videos are kept for ten years. */
export async function startTree(tree: string, database: string, provider: string): Promise<TreeGateway> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-databases-'));
  const port = await freePort();
  const config = join(folder, 'gateway.config.mjs');
  writeFileSync(
    config,
    `import demo from '${tree}/channels/demo/index.ts';
import openai from '${tree}/channels/openai.ts';
import sora from '${tree}/channels/sora.ts';
import storedResponses from '${tree}/plugins/stored-responses/index.ts';
import videoTasks from '${tree}/plugins/video-tasks/index.ts';
export default {
  listen: { port: ${port}, host: '127.0.0.1' },
  adminPassword: '${adminPassword}',
  prices: { '*': { input: 3, output: 15 } },
  plugins: [storedResponses({ retention: 3_650 }), videoTasks({ retention: 3_650 })],
  channels: [
    demo(),
    openai({ id: 'objects', key: 'sk-of-the-provider', baseUrl: '${provider}', models: ['gpt-test'] }),
    sora({ id: 'videos', key: 'sk-of-the-provider', baseUrl: '${provider}' }),
  ],
};
`,
  );
  const child = spawn(process.execPath, [join(tree, 'core/cli/sluice.js'), 'start', '--config', config], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, SLUICE_DATABASE: database, SLUICE_DATA: join(folder, 'data') },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-10_000)));
  const url = `http://127.0.0.1:${port}`;
  const exited = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  while (!(await isReady(url))) {
    if (child.exitCode !== null) throw new Error(`The gateway ended: ${output}`);
    await pause(100);
  }
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await exited;
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).ok;
  } catch {
    return false;
  }
}
