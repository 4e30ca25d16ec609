import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { operatorFolder } from '../../support/operator-folder.ts';
import { sluice, start } from './_process.ts';
import { shell } from './_shell.ts';

const sluiceInShell = shell();

const launcher = fileURLToPath(new URL('../../../core/cli/sluice.js', import.meta.url));
const config = `import { defineConfig } from 'sluice'; export default defineConfig({});`;

describe('sluice', () => {
  test('without a command explains itself', async () => {
    const { code, stdout } = await sluice([]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Sluice \d+\.\d+\.\d+: /);
    for (const command of ['start', 'check', 'key'])
      expect(stdout).toMatch(new RegExp(`^ {2}${command} `, 'm'));
  });

  test('explains each command, however it is asked', async () => {
    const pages = await Promise.all([
      sluiceInShell(['help', 'key']),
      sluiceInShell(['key', '--help']),
      sluiceInShell(['key', 'create', '-h']),
    ]);
    expect(new Set(pages.map(({ stdout }) => stdout)).size).toBe(1);
    expect(pages[0]?.stdout).toContain('sluice key revoke KEY');
    expect(pages.every(({ code }) => code === 0)).toBe(true);
  });

  test('says its version', async () => {
    expect((await sluice(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test('ends with code 2 for what it does not understand', async () => {
    const outcomes = await Promise.all([
      sluiceInShell(['strat']),
      sluiceInShell(['start', '--prot', '1']),
      sluiceInShell(['key', 'delete']),
      sluiceInShell(['key', 'create']),
    ]);
    expect(outcomes.map(({ code }) => code)).toEqual([2, 2, 2, 2]);
    expect(outcomes.map(({ stderr }) => stderr.split('\n')[0])).toEqual([
      'Unknown command "strat".',
      "Unknown option '--prot'",
      'Unknown subcommand "delete". Use one of: create, list, rotate, end-grace, revoke.',
      'A key needs a name: add --name NAME.',
    ]);
    expect(outcomes[3]?.stderr).toContain('See: sluice help key');
  });
});

/** A Node that does not run TypeScript, when this machine has one. */
function oldNode(): string | undefined {
  const candidates = ['/usr/bin/node', '/usr/local/bin/node'].filter((path) => existsSync(path));
  return candidates.find((path) =>
    /^v(20|21|22\.([0-9]|1[0-8])\.)/.test(execFileSync(path, ['--version'], { encoding: 'utf8' })),
  );
}

describe.each([
  ['a Node that runs TypeScript', process.execPath],
  ['an older Node', oldNode()],
])('the launcher, with %s', (_which, node) => {
  test.skipIf(node === undefined)('passes on arguments and the exit code', async () => {
    expect(await start(node ?? '', [launcher, '--version']).ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+/),
    });
    expect(await start(node ?? '', [launcher, 'strat']).ended).toMatchObject({ code: 2 });
  });

  test.skipIf(node === undefined)('passes on signals', async () => {
    const folder = operatorFolder({ 'gateway.config.ts': config });
    const running = start(node ?? '', [launcher, 'start', '--config', join(folder, 'gateway.config.ts')], {
      SLUICE_PORT: '0',
    });
    await running.wrote(/listens on/);
    running.child.kill('SIGTERM');
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/"msg":"stopped"/);
  });
});
