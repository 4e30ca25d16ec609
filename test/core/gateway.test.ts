import { EMPTY, firstValueFrom, of } from 'rxjs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { readConfig } from '../../core/config/config.ts';
import { type GatewayConfig } from '../../core/sdk/config.ts';
import { defineChannel, type Handler } from '../../core/sdk/define.ts';
import { definePlugin } from '../../core/config/whole-definitions.ts';
import { type InternalTools } from '../../core/config/internal-tools.ts';
import { createGateway } from '../../core/gateway.ts';
import { type Gateway } from '../../core/front/gateway.ts';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { openStores } from '../../core/state/stores.ts';
import { openGatewayServices } from '../../core/config/gateway-services.ts';
import auth from '../../plugins/auth.ts';
import logging from '../../plugins/logging.ts';
import modelAccess from '../../plugins/model-access.ts';
import modelAlias from '../../plugins/model-alias.ts';
import { testCall } from '../support/call.ts';
import { keptLog, type Lines } from '../support/log.ts';
import { operatorFolder } from '../support/operator-folder.ts';

/** Builds a gateway as `sluice start` does, for a config that stands in a folder with these files. */
async function build(
  config: GatewayConfig,
  files: Record<string, string> = {},
): Promise<{ gateway: Gateway; lines: Lines; folder: string }> {
  const folder = operatorFolder(files);
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  const { log, lines } = keptLog();
  const loaded = readConfig(config, join(folder, 'gateway.config.ts'));
  const surroundings = openGatewayServices(log, stores, createApiKeys(stores), loaded.settings);
  const gateway = await createGateway(loaded, surroundings);
  onTestFinished(() => gateway.close());
  return { gateway, lines, folder };
}

async function problemsOf(
  config: GatewayConfig,
  files: Record<string, string> = {},
): Promise<readonly string[]> {
  const error: unknown = await build(config, files).then(
    () => ({ problems: [] }),
    (thrown: unknown) => thrown,
  );
  return (error as { problems: readonly string[] }).problems;
}

const goOn: Handler = (call, next) => next(call);

const channel = defineChannel({
  name: 'fake',
  options: z.object({ project: z.string().default('one') }),
  setup: () => ({
    speaks: { chat: ['chat-completions'] },
    traits: (model) => ({ reasoning: 'effort', outputLimit: model.length }),
    open: () => Promise.reject(new Error('not called here')),
  }),
});

const pluginFile = (name: string, more = ''): string => `
  import { definePlugin } from 'sluice';
  export default definePlugin({ name: '${name}', stage: 'shape', ${more} setup: () => (call, next) => next(call) });
`;

describe('plugins', () => {
  test('run by standing in the folder, in the order of their stages', async () => {
    const { gateway } = await build(
      {},
      { 'plugins/zebra.ts': pluginFile('zebra'), 'plugins/_helper.ts': 'throw new Error();' },
    );
    const names = gateway.plugins.map(({ name }) => name);
    expect(names.indexOf('zebra')).toBeGreaterThan(names.indexOf('auth'));
    expect(names.indexOf('auth')).toBeGreaterThan(names.indexOf('logging'));
    expect(names.indexOf('model-access')).toBeGreaterThan(names.indexOf('model-alias'));
    expect(names.at(-1)).toBe('translation');
  });

  test("of the operator's take the place of ours by their name", async () => {
    const { gateway } = await build({}, { 'plugins/logging.ts': pluginFile('logging') });
    expect(gateway.plugins.filter(({ name }) => name === 'logging')).toMatchObject([{ stage: 'shape' }]);
  });

  test('that wait to be listed do not run until they are', async () => {
    const files = {
      'plugins/shy.ts': pluginFile('shy', 'whenListed: true,'),
      'plugins/needy.ts': pluginFile('needy', "after: ['shy'],"),
    };
    const needed =
      'gateway.config.ts: plugin "needy" must run after "shy", which runs only when it is listed. Add it to plugins, or switch "needy" off.';
    expect(await problemsOf({}, files)).toEqual([needed]);
    const shy = definePlugin({ name: 'shy', stage: 'shape', whenListed: true, setup: () => goOn });
    const { gateway } = await build({ plugins: [shy()] }, files);
    expect(gateway.plugins.map(({ name }) => name)).toContain('shy');
  });

  test('can be switched off, unless another needs them', async () => {
    const { gateway } = await build({ plugins: [logging.off(), auth.off()] });
    expect(gateway.plugins.map(({ name }) => name)).not.toContain('logging');
    expect(await problemsOf({ plugins: [modelAlias.off()] })).toEqual([
      'gateway.config.ts: plugin "model-access" must run after "model-alias", which is off in gateway.config.ts (plugins[0]). Remove the off(), or switch "model-access" off too.',
    ]);
    const { gateway: without } = await build({ plugins: [modelAlias.off(), modelAccess.off()] });
    expect(without.plugins.map(({ name }) => name)).not.toContain('model-alias');
  });

  test('of one stage run in the order of the list', async () => {
    const [one, two] = ['one', 'two'].map((name) =>
      definePlugin({ name, stage: 'observe', setup: () => goOn }),
    );
    const { gateway } = await build({ plugins: [two?.(), logging(), one?.()] });
    expect(gateway.plugins.map(({ name }) => name).slice(0, 3)).toEqual(['two', 'logging', 'one']);
  });

  test('get their options with defaults, and tools of their own', async () => {
    const setup = vi.fn<(options: { size: number; color: string }, tools: InternalTools) => Handler>(
      (_options, tools) => {
        tools.log.info('hello');
        tools.route('GET', '/mine', () => {});
        return goOn;
      },
    );
    const options = z.object({ size: z.number().default(3), color: z.string().default('red') });
    const mine = definePlugin({ name: 'mine', stage: 'admit', reads: 'content', options, setup });
    const { gateway, lines } = await build({ plugins: [mine({ color: 'blue' })] });
    expect(setup.mock.calls[0]?.[0]).toEqual({ size: 3, color: 'blue' });
    expect(setup.mock.calls[0]?.[1].reads()).toBe('content');
    expect(lines).toMatchObject([{ plugin: 'mine', msg: 'hello' }]);
    expect(gateway.routes.filter(({ plugin }) => plugin === 'mine')).toMatchObject([
      { plugin: 'mine', method: 'GET', path: '/mine' },
    ]);
  });
});

describe('problems', () => {
  test('of plugins and channels are told all at once, and nothing is set up', async () => {
    const setup = vi.fn<() => Handler>(() => goOn);
    const sound = definePlugin({ name: 'sound', stage: 'observe', setup });
    const picky = definePlugin({
      name: 'picky',
      stage: 'shape',
      options: z.object({ words: z.array(z.string()).default([]) }),
      setup,
    });
    const misspelt = { wrods: ['a'] } as object;
    const config: GatewayConfig = {
      plugins: [sound(), picky(misspelt), sound()],
      channels: [
        channel({ id: 'empty', key: '' }),
        channel({ id: 'aimless', key: 'k' }),
        channel({ id: 'twin', key: 'k', models: ['a'] }),
        channel({ id: 'twin', key: 'k', models: ['a'] }),
        channel({ key: 'k', models: ['a'], baseUrl: 'ftp://x', ...({ projetc: 'x' } as object) }),
      ],
    };
    const files = {
      'plugins/misnamed.ts': pluginFile('other'),
      'plugins/plain.ts': 'export default () => 1;',
      'channels/half.ts': 'throw new Error("half written");',
    };
    const problems = await problemsOf(config, files);
    const tails = problems.map((problem) => problem.replace(/^\/.*\/(plugins|channels)\//, '$1/'));
    expect(tails).toEqual([
      'channels/half.ts:1:7: cannot be loaded: half written',
      'gateway.config.ts, channels[0] "empty": option "key" is empty. Set the variable that it is read from, or remove the channel.',
      `gateway.config.ts, channels[1] "aimless": option "models" is missing. List the models that this channel serves: models: ['…'].`,
      'gateway.config.ts, channels[3]: the id "twin" is taken by another channel. Give one of them another id.',
      expect.stringMatching(/^gateway\.config\.ts, channels\[4\] "fake": option "baseUrl": Invalid URL\.$/),
      'gateway.config.ts, channels[4] "fake": unknown option "projetc". Check the spelling, or remove it.',
      'gateway.config.ts, plugins[2] "sound": the plugin is listed twice. Keep one of the entries.',
      'plugins/misnamed.ts: its name is "other". A plugin must have the name of its file.',
      'plugins/plain.ts: its default export is not a plugin. Export definePlugin({ … }) by default, or begin the name with "_".',
      'gateway.config.ts, plugins[1] "picky": unknown option "wrods". Check the spelling, or remove it.',
    ]);
    expect(setup).not.toHaveBeenCalled();
  });

  test('of a setup are told with the entry, and what was set up is closed again', async () => {
    const closed = vi.fn<() => void>();
    const opening = definePlugin({
      name: 'opening',
      stage: 'observe',
      setup(_options, { onClose }) {
        onClose(closed);
        return goOn;
      },
    });
    const failing = definePlugin({
      name: 'failing',
      stage: 'shape',
      setup() {
        throw new Error('the file is not there');
      },
    });
    const silent = definePlugin({
      name: 'silent',
      stage: 'admit',
      setup: (() => undefined) as unknown as () => Handler,
    });
    expect(await problemsOf({ plugins: [opening(), failing()] })).toEqual([
      'gateway.config.ts, plugins[1] "failing": setup failed: the file is not there',
    ]);
    expect(await problemsOf({ plugins: [silent()] })).toEqual([
      'gateway.config.ts, plugins[0] "silent": setup returned no handler. Return an async function (call, next).',
    ]);
    expect(closed).toHaveBeenCalledTimes(1);
  });

  test('that stop nothing are warnings', async () => {
    const { gateway } = await build({});
    expect(gateway.warnings).toEqual([
      'gateway.config.ts: no channel is configured, so every call gets 503. Set the key of a provider, or add demo().',
    ]);
  });
});

describe('channels', () => {
  test('serve names, patterns and other names for models', async () => {
    const models = { fast: 'fast-2026-01', 'big-*': 'big-latest', 'raw-*': '*' };
    const { gateway } = await build({
      channels: [
        channel({
          key: 'k',
          models,
          traits: { 'big-*': { reasoning: 'none' }, 'fast-*': { outputLimit: 7 } },
        }),
      ],
    });
    const target = (model: string) => {
      const [found] = gateway.catalog.targets(model);
      return found && { model: found.model, ...found.traits };
    };
    expect(target('fast')).toEqual({
      model: 'fast-2026-01',
      reasoning: 'effort',
      outputLimit: 7,
      statesOutputLimit: false,
    });
    expect(target('big-3')).toEqual({ model: 'big-latest', reasoning: 'none', outputLimit: 10 });
    expect(target('raw-3')).toMatchObject({ model: '3' });
    expect(target('other')).toBeUndefined();
    expect(gateway.catalog.list().map(({ id }) => id)).toEqual(['fast']);
  });

  test('never show their keys in the log', async () => {
    const { lines } = await build({
      channels: [
        defineChannel({
          name: 'leaky',
          models: ['a'],
          setup({ key }, { log }) {
            log.warn({ detail: `uses ${key}` }, `starts with ${key}`);
            return { speaks: {}, open: () => Promise.reject(new Error('not called here')) };
          },
        })({ key: 'plain word of mine' }),
      ],
    });
    expect(lines).toMatchObject([{ channel: 'leaky', detail: 'uses …', msg: 'starts with …' }]);
  });
});

describe('a gateway', () => {
  const clumsy = definePlugin({
    name: 'clumsy',
    stage: 'observe',
    setup: () => (() => Promise.resolve()) as unknown as Handler,
  });

  test('names a misbehaving plugin, except in production', async () => {
    const { call } = testCall();
    const { gateway } = await build({ plugins: [clumsy()] });
    await expect(gateway.handle(call)).rejects.toThrow('plugin "clumsy" returned no stream');
    vi.stubEnv('NODE_ENV', 'production');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { gateway: quick } = await build({ plugins: [clumsy()] });
    await expect(firstValueFrom(await quick.handle(call))).rejects.toThrow(TypeError);
    const { gateway: wanted } = await build({ plugins: [clumsy()], checks: true });
    await expect(wanted.handle(call)).rejects.toThrow('plugin "clumsy"');
  });

  test('runs everything but the translate stage around another terminal', async () => {
    const seen: string[] = [];
    const spy = (name: string, stage: 'shape' | 'translate') =>
      definePlugin({
        name,
        stage,
        setup: () => (call, next) => {
          seen.push(name);
          return next(call);
        },
      });
    const { gateway } = await build({
      plugins: [auth.off(), spy('shaping', 'shape')(), spy('translating', 'translate')()],
    });
    const events = of({ type: 'models', models: [] } as const);
    const { call } = testCall({ operation: 'list-models' });
    await gateway.around(async () => events)(call);
    expect(seen).toEqual(['shaping']);
  });

  test('closes in the opposite order, also when a job fails', async () => {
    const jobs: string[] = [];
    const closing = definePlugin({
      name: 'closing',
      stage: 'observe',
      setup(_options, { onClose }) {
        onClose(() => void jobs.push('first'));
        onClose(() => Promise.reject(new Error('stuck')));
        onClose(() => void jobs.push('last'));
        return async () => EMPTY;
      },
    });
    const { gateway, lines } = await build({ plugins: [closing()] });
    const listener = vi.fn<() => void>();
    gateway.notices.on('closing', listener);
    await gateway.close();
    expect(jobs).toEqual(['last', 'first']);
    expect(listener).toHaveBeenCalledTimes(1);
    expect(lines).toMatchObject([{ level: 'error', error: { message: 'stuck' } }]);
  });
});
