import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import { configFile, ConfigError, inspectConfig, readConfig } from '../../../core/config/config.ts';
import { loadConfig } from '../../../core/config/load-config.ts';
import { env } from '../../../core/settings/environment.ts';
import logging from '../../../plugins/logging.ts';
import { operatorFolder } from '../../support/operator-folder.ts';

const file = '/somewhere/gateway.config.ts';

afterEach(() => vi.unstubAllEnvs());

function problemsOf(exported: unknown): readonly string[] {
  return inspectConfig(exported, file).problems;
}

describe('a config', () => {
  test('may say nothing: everything has a default', () => {
    const { settings, root, plugins, channels } = readConfig({}, file);
    expect(settings).toMatchObject({
      listen: { port: 8080, host: '127.0.0.1' },
      data: './data',
      log: { level: 'info' },
      sampling: 'exclusive',
      limits: { body: 134_217_728 },
      timeouts: { keepAlive: 15_000, idle: 300_000, stalled: 60_000, drain: 30_000 },
    });
    expect({ root, plugins, channels }).toEqual({ root: '/somewhere', plugins: [], channels: [] });
  });

  test('keeps the place of each entry, and passes over what is switched off by a missing key', () => {
    const { plugins, channels } = readConfig(
      { plugins: [false, logging({ successes: false })], channels: [undefined, '', demo()] },
      file,
    );
    expect(plugins.map(({ at, entry }) => [at, entry.options])).toEqual([
      ['plugins[1]', { successes: false }],
    ]);
    expect(channels.map(({ at, entry }) => [at, entry.spec.name])).toEqual([['channels[2]', 'demo']]);
  });
});

describe('problems of a config', () => {
  test('are told all at once, with file, entry, option and what to do', () => {
    const config = {
      listen: { port: 70_000, hots: 'x' },
      pluigns: [],
      timeouts: { idle: 'long' },
      plugins: [logging, { not: 'a plugin' }],
      channels: [demo, 'demo', logging()],
    };
    expect(problemsOf(config)).toEqual([
      'gateway.config.ts: option "listen.port": Too big: expected number to be <=65535.',
      'gateway.config.ts: unknown option "hots" in listen. Check the spelling, or remove it.',
      'gateway.config.ts: option "timeouts.idle": Invalid input: expected number, received string.',
      'gateway.config.ts: unknown option "pluigns". Check the spelling, or remove it.',
      'gateway.config.ts, plugins[0]: the plugin is not called. Write it with parentheses: logging().',
      'gateway.config.ts, plugins[1]: not a plugin, but an object with not. Import one from plugins/, or from a package, and call it with its options.',
      'gateway.config.ts, channels[0]: the channel is not called. Write it with parentheses: demo().',
      'gateway.config.ts, channels[1]: not a channel, but a string. Import one from channels/, or from a package, and call it with its options.',
      'gateway.config.ts, channels[2]: not a channel, but a plugin. Import one from channels/, or from a package, and call it with its options.',
    ]);
    expect(() => readConfig(config, file)).toThrow(ConfigError);
  });

  test('are told of definitions that somebody else has made by halves', () => {
    const config = {
      plugins: [{ kind: 'plugin', spec: { name: 'half' } }],
      channels: [{ kind: 'channel' }, { kind: 'channel', spec: { name: 'part', setup: 'later' } }],
    };
    expect(problemsOf(config)).toEqual([
      'gateway.config.ts, plugins[0]: the plugin "half" has no function "setup". Its author must add one.',
      'gateway.config.ts, channels[0]: the channel has no name. Its author must pass one to defineChannel one.',
      'gateway.config.ts, channels[1]: the channel "part" has no function "setup". Its author must add one.',
    ]);
  });

  test('are told of an export that is none, and of lists that are none', () => {
    const none =
      'gateway.config.ts: the default export is not a configuration. Write: export default defineConfig({ … }).';
    for (const exported of [undefined, null, 'text', [], 5]) expect(problemsOf(exported)).toEqual([none]);
    expect(problemsOf({ channels: {} })).toEqual(['gateway.config.ts: "channels" must be a list.']);
  });

  test('leave the sound parts usable', () => {
    const { config } = inspectConfig({ listen: { port: -1 }, channels: [demo()] }, file);
    expect(config.settings.listen.port).toBe(8080);
    expect(config.channels).toHaveLength(1);
  });
});

describe('the environment', () => {
  test('stands above the file', () => {
    vi.stubEnv('SLUICE_PORT', '9000');
    vi.stubEnv('SLUICE_HOST', '0.0.0.0');
    vi.stubEnv('SLUICE_LOG', 'warn');
    vi.stubEnv('SLUICE_DATA', '/var/lib/sluice');
    vi.stubEnv('SLUICE_DATABASE', 'sqlite::memory:');
    vi.stubEnv('SLUICE_BOOTSTRAP_KEY', 'a-key-of-twenty-or-more');
    const { settings } = readConfig({ listen: { port: 1, host: 'x' }, log: { level: 'info' } }, file);
    expect(settings).toMatchObject({
      listen: { port: 9000, host: '0.0.0.0' },
      log: { level: 'warn' },
      data: '/var/lib/sluice',
      database: 'sqlite::memory:',
      bootstrapKey: 'a-key-of-twenty-or-more',
    });
  });

  test('sets the address of the database alone where the file says more about it', () => {
    vi.stubEnv('SLUICE_DATABASE', 'postgres://user@other/sluice');
    const database = { url: 'postgres://user@host/sluice', poolSize: 20 };
    const { settings } = readConfig({ database }, file);
    expect(settings.database).toEqual({ url: 'postgres://user@other/sluice', poolSize: 20 });
  });

  test('is named where its value is wrong', () => {
    vi.stubEnv('SLUICE_PORT', 'eighty');
    vi.stubEnv('SLUICE_LOG', 'loud');
    vi.stubEnv('SLUICE_BOOTSTRAP_KEY', 'too-short-secret');
    vi.stubEnv('SLUICE_DATABASE', 'mysql://root:password@db/sluice');
    const problems = problemsOf({});
    expect(problems).toHaveLength(4);
    expect(problems).toContain(
      'SLUICE_DATABASE, which sets "database": must be "sqlite:" and the path of a file, "sqlite::memory:", or a postgres:// URL. Correct the variable, or unset it.',
    );
    expect(problems.join('\n')).toMatch(
      /^SLUICE_PORT, which sets "listen.port": .*expected number.* Correct the variable, or unset it\.$/m,
    );
    expect(problems.join('\n')).toMatch(/^SLUICE_LOG, which sets "log.level": .*"info"/m);
    expect(problems.join('\n')).toMatch(/^SLUICE_BOOTSTRAP_KEY, .*at least 20/m);
    expect(problems.join('\n')).not.toContain('too-short-secret');
  });

  test('counts an empty variable as one that is not set', () => {
    vi.stubEnv('SLUICE_PORT', ' ');
    vi.stubEnv('SOME_KEY', '');
    expect(readConfig({}, file).settings.listen.port).toBe(8080);
    expect(env('SOME_KEY')).toBeUndefined();
    expect(env('SOME_KEY', 'fallback')).toBe('fallback');
  });
});

describe('a config file', () => {
  test('is the one that is asked for, else SLUICE_CONFIG, else gateway.config.ts here', () => {
    vi.stubEnv('SLUICE_CONFIG', '/elsewhere/other.ts');
    expect(configFile('mine.ts')).toBe(join(process.cwd(), 'mine.ts'));
    expect(configFile(undefined)).toBe('/elsewhere/other.ts');
    vi.stubEnv('SLUICE_CONFIG', '');
    expect(configFile(undefined)).toBe(join(process.cwd(), 'gateway.config.ts'));
  });

  test('is read with the .env beside it; what the environment says already wins', async () => {
    vi.stubEnv('SLUICE_TEST_SET', 'from outside');
    vi.stubEnv('SLUICE_TEST_UNSET', undefined);
    const folder = operatorFolder({
      '.env': 'SLUICE_TEST_SET=from the file\nSLUICE_TEST_UNSET=from the file\n',
      'gateway.config.ts': `
        import { defineConfig, env } from 'sluice';
        export default defineConfig({ data: env('SLUICE_TEST_SET', '') + '/' + env('SLUICE_TEST_UNSET', '') });
      `,
    });
    expect((await loadConfig(join(folder, 'gateway.config.ts'))).settings.data).toBe(
      'from outside/from the file',
    );
  });

  test('that is missing or does not load is told with its path', async () => {
    const folder = operatorFolder({ 'broken.ts': 'throw new Error("half written");' });
    await expect(loadConfig(join(folder, 'none.ts'))).rejects.toThrow(
      `${join(folder, 'none.ts')} does not exist. Set its path with --config`,
    );
    await expect(loadConfig(join(folder, 'broken.ts'))).rejects.toThrow(
      `${join(folder, 'broken.ts')}:1:7 cannot be loaded: half written`,
    );
  });
});
