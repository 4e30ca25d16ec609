import { rmSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { start, type Child } from './processes.ts';

/** Everything that runs during the bench. */
export interface Stage {
  readonly load: Child<unknown>;
  /** Starts one of the two that are compared. */
  proxy(name: ProxyName): Promise<Child<{ readonly url: string }>>;
  end(): Promise<void>;
}

export type ProxyName = 'raw' | 'sluice';

/** The key that the load shows. */
export const benchKey = `sk-${'bench'.repeat(9)}xyz`;

/** What `npm start` gives its Node. */
const asStarted = ['--max-semi-space-size=64'];

/** The proxies have a core of their own; what stands on both sides of them shares the other. */
const proxyCore = 1;
const otherCore = 0;

/** Starts the provider and the clients. `nodeOptions` are for Sluice alone. */
export async function buildStage(nodeOptions: readonly string[]): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const upstream = await start<{ url: string }>('./fake-upstream.ts', { core: otherCore });
  const load = await start('./load.ts', { core: otherCore });
  const config = join(folder, 'gateway.config.ts');
  await writeFile(config, configFor(upstream.ready.url));
  const children: Child<unknown>[] = [load, upstream];
  return {
    load,
    async proxy(name) {
      const child = await start<{ url: string }>(name === 'raw' ? './raw-proxy.ts' : './sluice-proxy.ts', {
        core: proxyCore,
        nodeOptions: ['--expose-gc', ...(name === 'sluice' ? [...asStarted, ...nodeOptions] : [])],
        environment: { BENCH_UPSTREAM: upstream.ready.url, BENCH_CONFIG: config },
      });
      children.unshift(child);
      return child;
    },
    async end() {
      for (const child of children) await child.end();
    },
  };
}

/** An ordinary configuration: three channels, one key, an alias, the log at its usual level. */
function configFor(upstream: string): string {
  return `
import { defineConfig } from ${here('core/sdk/index.ts')};
import anthropic from ${here('channels/anthropic.ts')};
import openai from ${here('channels/openai.ts')};
import modelAlias from ${here('plugins/model-alias.ts')};

export default defineConfig({
  listen: { port: 0 },
  bootstrapKey: '${benchKey}',
  plugins: [modelAlias({ aliases: { 'bench-alias': 'bench-small' } })],
  channels: [
    openai({ key: 'sk-upstream', baseUrl: '${upstream}/v1', models: ['bench-*'] }),
    anthropic({ key: 'sk-upstream', baseUrl: '${upstream}/v1', models: ['claude-*'] }),
    openai({
      id: 'responses',
      key: 'sk-upstream',
      baseUrl: '${upstream}/v1',
      models: ['responses-*'],
      traits: { '*': { formats: ['responses'] } },
    }),
  ],
});
`;
}

/** A file of the repository, as an import spells it. */
function here(path: string): string {
  return JSON.stringify(new URL(`../../${path}`, import.meta.url).href);
}
