/** What is measured: the raw proxy, Sluice as an operator starts it, and gateways that run already. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.ts';
import { createLimitedKey } from './limited-key.ts';
import { cpuOf, familyOf, listenerOf, rssOf } from './proc.ts';
import { endsWithUs, onCore, start } from './processes.ts';

/** A proxy that can be measured. */
export interface Target {
  readonly name: string;
  readonly url: string;
  /** API key of its clients. */
  readonly key: string;
  /** Another key, with a budget, rates and a concurrency limit that are never reached; the same one where keys have no such limits. */
  limitedKey(): Promise<string>;
  /** A key with such limits, whose team and organisation have them too. */
  levelsKey(): Promise<string>;
  /** Its processes, the one that started the others first. */
  pids(): readonly number[];
  /** Collects all garbage, where it can be told to. */
  settle(): Promise<void>;
  end(): Promise<void>;
}

/** This checkout. */
export const ownTree = fileURLToPath(new URL('../..', import.meta.url));

/** The key that clients of Sluice show. */
export const benchKey = `sk-${'bench'.repeat(9)}xyz`;

/** The password of the admin API of gateways that the bench starts. */
export const adminPassword = 'the bench has a password';

/** Microseconds of CPU time that a target has used. */
export function cpuUsed(target: Target): number {
  return cpuOf(target.pids());
}

/** Bytes of memory that each process of a target holds. */
export function memoryHeld(target: Target): readonly number[] {
  return target.pids().map(rssOf);
}

/** Starts the raw proxy in front of a provider. */
export async function startRaw(upstream: string, core?: number): Promise<Target> {
  const child = await start<{ readonly url: string }>('./raw-proxy.ts', {
    ...(core === undefined ? {} : { core }),
    environment: { BENCH_UPSTREAM: upstream },
  });
  return {
    name: 'raw',
    url: child.ready.url,
    key: benchKey,
    limitedKey: async () => benchKey,
    levelsKey: async () => benchKey,
    pids: () => [child.pid],
    settle: async () => {},
    end: () => child.end(),
  };
}

/** Options for starting Sluice. */
export interface SluiceOptions {
  readonly name: string;
  /** The folder of its source. */
  readonly tree: string;
  readonly upstream: string;
  /** A folder of its own, for config, data and log. */
  readonly folder: string;
  readonly workers: number;
  readonly database?: string | undefined;
  readonly shared?: string | undefined;
  /** True: it refuses calls that have waited for long, as gateways do by default. The others are to serve on a busy machine, too. */
  readonly refusesLate?: boolean;
  /** The plugin `cache`, as its entry in the config: `cache()`. */
  readonly cache?: string | undefined;
  /** A plugin that its config lists, with its options as JSON. */
  readonly plugin?: { readonly name: string; readonly options: string };
  readonly core?: number | undefined;
  /** More options for its Node, such as `--cpu-prof`: its workers have them too. */
  readonly nodeOptions?: readonly string[];
  /** Milliseconds within which it must serve. */
  readonly patience?: number;
}

/** Starts `sluice start` with the words of the tree's own `npm start`, its log in a file. Resolves when a call can be made. */
export async function startSluice(options: SluiceOptions): Promise<Target> {
  const { name, tree, folder, core, nodeOptions = [], patience = 60_000 } = options;
  const port = await freePort();
  mkdirSync(folder, { recursive: true });
  const config = join(folder, 'gateway.config.ts');
  writeFileSync(config, configFor(options, port));
  const [, ...words] = startWords(tree);
  const collector = fileURLToPath(new URL('./collector.ts', import.meta.url));
  const log = openSync(join(folder, 'sluice.log'), 'w');
  const [program = '', ...rest] = onCore(core, [
    process.execPath,
    '--expose-gc',
    `--import=${collector}`,
    ...nodeOptions,
    ...words,
    '--config',
    config,
  ]);
  const child = spawn(program, rest, { cwd: tree, stdio: ['ignore', log, log], env: asOperators() });
  closeSync(log);
  endsWithUs(child);
  const url = `http://127.0.0.1:${port}`;
  await serving(`${url}/readyz`, patience, () => {
    if (child.exitCode !== null)
      throw new Error(`${name} does not start:\n${readFileSync(join(folder, 'sluice.log'), 'utf8')}`);
  });
  let limitedKey: Promise<string> | undefined;
  let levelsKey: Promise<string> | undefined;
  return {
    name,
    url,
    key: benchKey,
    limitedKey: () => (limitedKey ??= createLimitedKey(url, adminPassword)),
    levelsKey: () => (levelsKey ??= createLimitedKey(url, adminPassword, true)),
    pids: () => familyOf(child.pid ?? 0),
    async settle() {
      for (const pid of familyOf(child.pid ?? 0)) process.kill(pid, 'SIGUSR2');
      await pause(1_000);
    },
    async end() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(late);
    },
  };
}

/** `npm start`, in words. */
export function startWords(tree: string): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8')) as {
    readonly scripts: { readonly start: string };
  };
  return scripts.start.split(' ');
}

/** A gateway that runs already, by `name=port` or `name=port=key`. It sends its calls to the provider of its own configuration. */
export function peer(text: string): Target {
  const [name = '', port = '', key = benchKey] = text.split('=');
  const pid = listenerOf(Number(port));
  if (pid === undefined) throw new Error(`Nothing listens on port ${port} of this machine (${text}).`);
  return {
    name,
    url: `http://127.0.0.1:${port}`,
    key,
    limitedKey: async () => key,
    levelsKey: async () => key,
    pids: () => familyOf(pid),
    settle: async () => {},
    end: async () => {},
  };
}

/** Nothing of the bench's own: keys of providers would switch on channels, and settings would win over the config. */
export function asOperators(): NodeJS.ProcessEnv {
  const foreign = /^(?:SLUICE_|NODE_ENV$|NODE_OPTIONS$|VITEST)|_API_KEY$/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)));
}

/** Waits until a path of it answers with 200. */
export async function serving(url: string, patience: number, check: () => void = () => {}): Promise<void> {
  const end = performance.now() + patience;
  for (;;) {
    check();
    const served = await fetch(url, { signal: AbortSignal.timeout(5_000) }).then(
      async (response) => {
        await response.body?.cancel();
        return response.ok;
      },
      () => false,
    );
    if (served) return;
    if (performance.now() > end) throw new Error(`${url} does not serve.`);
    await pause(20);
  }
}

/** An ordinary configuration: default plugins, a channel for each format, prices, one key. */
export function configFor(
  {
    upstream,
    workers,
    folder,
    database,
    shared,
    refusesLate,
    cache,
    plugin,
  }: Omit<SluiceOptions, 'name' | 'tree'>,
  port: number,
): string {
  const text = JSON.stringify;
  return `
import { defineConfig } from 'sluice';
import anthropic from 'sluice/channels/anthropic';
import gemini from 'sluice/channels/gemini';
import openai from 'sluice/channels/openai';
${cache === undefined ? '' : "import cache from 'sluice/plugins/cache';"}
${plugin === undefined ? '' : `import listed from 'sluice/plugins/${plugin.name}';`}

const provider = { key: 'sk-upstream', baseUrl: ${text(`${upstream}/v1`)} };

export default defineConfig({
  listen: { port: ${port} },
  bootstrapKey: ${text(benchKey)},
  adminPassword: ${text(adminPassword)},
  workers: ${workers},
  ${refusesLate === true ? '' : 'overload: { lag: 600_000 },'}
  data: ${text(join(folder, 'data'))},
  ${database === undefined ? '' : `database: ${text(database)},`}
  ${shared === undefined ? '' : `shared: { url: ${text(shared)} },`}
  plugins: [${[cache, plugin && `listed(${plugin.options})`].filter((one) => one !== undefined).join(', ')}],
  prices: { '*': { input: 1, output: 2 } },
  channels: [
    openai({ ...provider, id: 'chat', models: ['chat.*'], traits: { '*': { formats: ['chat-completions'] } } }),
    openai({ ...provider, id: 'responses', models: ['responses.*'], traits: { '*': { formats: ['responses'] } } }),
    anthropic({ ...provider, id: 'messages', models: ['messages.*'] }),
    gemini({ ...provider, id: 'generate-content', baseUrl: ${text(`${upstream}/v1beta`)}, models: ['generateContent.*'] }),
  ],
});
`;
}
