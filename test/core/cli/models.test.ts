import { join } from 'node:path';
import { expect, test } from 'vitest';
import { operatorFolder } from '../../support/operator-folder.ts';
import { sluice } from './_process.ts';
import { shell } from './_shell.ts';

const sluiceInShell = shell();

const config = {
  'gateway.config.ts': `
    import { defineConfig } from 'sluice';
    import anthropic from 'sluice/channels/anthropic';
    import openai from 'sluice/channels/openai';
    export default defineConfig({
      channels: [
        anthropic({ key: 'k', models: ['claude-haiku-4-5'] }),
        openai({ key: 'k', models: { fast: 'gpt-5-mini', vectors: 'text-embedding-3-small', unknown: 'no-such-model' } }),
      ],
    });`,
};
const asking = (...args: string[]): string[] => [
  'models',
  ...args,
  '--config',
  join(operatorFolder(config), 'gateway.config.ts'),
];
const models = (...args: string[]) => sluiceInShell(asking(...args));

test('an operator reads who serves each model, what it is for, its limits, and what it takes and does', async () => {
  const { code, stdout, stderr } = await sluice(asking('list'));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  const rows = stdout.trim().split('\n');
  const row = (name: string): readonly string[] =>
    rows.find((line) => line.startsWith(`${name} `))?.split(/ {2,}/) ?? [];
  expect(rows[0]?.split(/ {2,}/)).toEqual(['model', 'channel', 'for', 'context', 'output', 'takes', 'can']);
  expect(row('claude-haiku-4-5').slice(0, 5)).toEqual([
    'claude-haiku-4-5',
    'anthropic',
    'chat',
    '200000',
    '64000',
  ]);
  expect(row('claude-haiku-4-5')[5]).toContain('image, document');
  expect(row('fast').at(-1)).toContain('tools, parallel-tools, structured-output, reasoning, prompt-cache');
  expect(row('vectors').slice(0, 4)).toEqual(['vectors', 'openai', 'embed', '8191']);
  expect(row('unknown').slice(0, 3)).toEqual(['unknown', 'openai', 'chat']);
});

test('a pattern chooses among them, and a wrong word is told', async () => {
  expect((await models('list', 'v*')).stdout.trim().split('\n')).toHaveLength(2);
  expect((await models('list', 'nothing*')).stdout).toBe('No model matches the pattern.\n');
  expect(await models('lost')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Unknown subcommand "lost". Use list, check or import') as string,
  });
});
