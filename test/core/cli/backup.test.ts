import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { shell } from './_shell.ts';

const sluice = shell();

test('what was saved is restored into another gateway, whose keys then work', async () => {
  const folder = temporaryFolder();
  const configOf = (name: string): string[] => {
    const file = join(folder, `${name}.config.mjs`);
    writeFileSync(file, `export default { database: 'sqlite:${join(folder, name)}/sluice.db' };`);
    return ['--config', file];
  };
  const [first, second] = [configOf('first'), configOf('second')];
  await sluice(['key', 'create', '--name', 'kept', ...first]);
  const file = join(folder, 'monday.sluice');
  const saved = await sluice(['backup', file, ...first]);
  expect(saved).toMatchObject({ code: 0, stderr: '' });
  expect(saved.stdout).toMatch(/keyv +2\n[\s\S]*Saved to .*monday\.sluice, and verified\./);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect((await sluice(['restore', file, '--check'])).stdout).toMatch(/monday\.sluice is complete and valid/);

  expect(await sluice(['restore', file, ...second])).toMatchObject({ code: 0, stderr: '' });
  expect((await sluice(['key', 'list', ...second])).stdout).toContain('kept');
  const again = await sluice(['restore', file, ...second]);
  expect(again.code).toBe(1);
  expect(again.stderr).toMatch(/not empty.*--replace/);
  expect((await sluice(['restore', file, '--replace', ...second])).stdout).toMatch(
    /is kept as .*before-restore/,
  );
});

test('both commands say what they need', async () => {
  expect((await sluice(['backup'])).stderr).toMatch(/sluice backup FILE/);
  expect((await sluice(['restore'])).stderr).toMatch(/sluice restore FILE/);
});
