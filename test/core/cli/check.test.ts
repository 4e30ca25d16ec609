import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { operatorFolder } from '../../support/operator-folder.ts';
import { sluice } from './_process.ts';
import { shell } from './_shell.ts';

const sluiceInShell = shell();
const checking = (folder: string): string[] => ['check', '--config', join(folder, 'gateway.config.ts')];
const check = (folder: string, environment?: Record<string, string>) =>
  sluiceInShell(checking(folder), environment);

test('shows the pipeline, the channels, who speaks what, and the models; and writes nothing', async () => {
  const folder = operatorFolder({
    'gateway.config.ts': `
      import { defineConfig, env } from 'sluice';
      import small from './channels/small.ts';
      export default defineConfig({
        channels: [small({ id: 'first', key: 'k', models: ['one', 'two'] }), env('SMALL_KEY') && small({ key: env('SMALL_KEY') })],
      });`,
    'channels/small.ts': `
      import { defineChannel } from 'sluice';
      export default defineChannel({
        name: 'small',
        models: ['a*', 'b*', 'c*', 'd*', 'e*', 'f*', 'g*', 'h*', 'i*'],
        setup: () => ({ speaks: { chat: ['responses', 'messages'], embed: ['embeddings'] }, open: () => Promise.reject(new Error('none')) }),
      });`,
    'plugins/mine.ts': `
      import { definePlugin } from 'sluice';
      export default definePlugin({ name: 'mine', stage: 'admit', setup: () => (call, next) => next(call) });`,
    '.env': 'SMALL_KEY=sk-from-the-file',
  });
  const { code, stdout, stderr } = await sluice(checking(folder));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toBe(`Plugins, in the order in which they run
  observe    admin, dashboard, logging, metrics, request-id, usage-log
  identify   auth
  admit      rate-limit, video-tasks, model-alias, model-access, realtime-sessions, stored-responses, provider-objects, quota, mine
  shape      reasoning-affinity, session-affinity
  translate  compaction, prompt-list, reasoning-vault, learned-refusals, parallel-choices, translation

Channels
  first (small)  serves one, two
                 chat: speaks responses, messages
                 embed: speaks embeddings
  small          serves a*, b*, c*, d*, e*, f*, g*, h* and 1 more
                 chat: speaks responses, messages
                 embed: speaks embeddings

Models in the model list
  one
  two

Models without a price (a key with a budget in dollars gets 403 for them: set "prices", or "baseModel" in the channel's "models")
  one
  two

The config is valid.
`);
  expect(existsSync(join(folder, 'data'))).toBe(false);
});

test('shows every problem at once, of whatever kind, and ends with code 1', async () => {
  const folder = operatorFolder({
    'gateway.config.ts': `
      import { defineConfig } from 'sluice';
      import groq from '../../../channels/groq.ts';
      import logging from '../../../plugins/logging.ts';
      export default defineConfig({
        listne: { port: 1 },
        plugins: [logging({ success: false })],
        channels: [groq({ key: '' }), groq],
      });`,
    'plugins/broken.ts': `throw new Error('half written');`,
  });
  const { code, stdout, stderr } = await check(folder, { SLUICE_PORT: 'eighty' });
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr.split('\n')).toEqual([
    expect.stringMatching(/^SLUICE_PORT, which sets "listen\.port": /),
    'gateway.config.ts: unknown option "listne". Check the spelling, or remove it.',
    'gateway.config.ts, channels[1]: the channel is not called. Write it with parentheses: groq().',
    'gateway.config.ts, channels[0] "groq": option "key" is empty. Set the variable that it is read from, or remove the channel.',
    expect.stringMatching(/plugins\/broken\.ts:1:7: cannot be loaded: half written$/),
    'gateway.config.ts, plugins[0] "logging": unknown option "success". Check the spelling, or remove it.',
    '',
    '6 problems.',
    '',
  ]);
});

test('opens a database that is there, and only reads the name of one that is not', async () => {
  const folder = operatorFolder({
    'gateway.config.ts': `import { defineConfig } from 'sluice'; export default defineConfig({ database: 'sqlite:./notes.txt' });`,
  });
  expect(await check(folder)).toMatchObject({ code: 0 });
  expect(existsSync(join(folder, 'notes.txt'))).toBe(false);
  const { code, stderr } = await check(folder, {
    SLUICE_DATABASE: `sqlite:${join(folder, 'gateway.config.ts')}`,
  });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^The database .*gateway\.config\.ts cannot be opened: .*\n\n1 problem\.\n$/);
});

test('lists aliases as callers see them, and the models that keys with a budget in dollars cannot use', async () => {
  const folder = operatorFolder({
    'gateway.config.ts': `
      import { defineConfig } from 'sluice';
      import azureOpenai from '../../../channels/azure-openai.ts';
      import modelAlias from '../../../plugins/model-alias.ts';
      export default defineConfig({
        plugins: [modelAlias({ aliases: { cheap: 'gpt-4o', nowhere: 'gone' } })],
        channels: [
          azureOpenai({
            key: 'k',
            resource: 'r',
            models: { 'gpt-4o': 'a', chat: { name: 'b', baseModel: 'gpt-4o' }, unknown: 'c' },
          }),
        ],
      });`,
  });
  const { code, stdout } = await check(folder);
  expect(code).toBe(0);
  expect(stdout).toContain('Models in the model list\n  chat\n  cheap\n  gpt-4o\n  unknown\n\n');
  expect(stdout).toMatch(/Models without a price \([^\n]+\)\n  unknown\n\n/);
});

test('refuses vectors in PostgreSQL where the database is SQLite, and asks no other database for them', async () => {
  const withDatabase = (database: string): string =>
    operatorFolder({
      'gateway.config.ts': `
        import { defineConfig } from 'sluice';
        import demo from 'sluice/channels/demo';
        import cache from 'sluice/plugins/cache';
        export default defineConfig({
          database: '${database}',
          channels: [demo()],
          plugins: [cache({ semantic: { model: 'e', store: 'pgvector' } })],
        });`,
    });
  const refused = await check(withDatabase('sqlite::memory:'));
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('needs PostgreSQL');
  // Nobody listens there: that is all that is wrong.
  const unreachable = await check(withDatabase('postgres://u:p@127.0.0.1:1/d'));
  expect(unreachable.stderr).toContain('127.0.0.1:1');
  expect(unreachable.stderr).not.toContain('pgvector');
});
