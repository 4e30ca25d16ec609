import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { digestOfFiles, versionOf } from '../../../core/processes/version.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** A folder with a config, and one with code that several gateways share. */
function folders(name: string): { readonly config: string; readonly root: string; readonly shared: string } {
  const folder = temporaryFolder();
  const [root, shared] = [join(folder, name), join(folder, 'shared')];
  mkdirSync(join(root, 'plugins'), { recursive: true });
  mkdirSync(shared);
  const config = join(root, 'gateway.config.ts');
  writeFileSync(config, 'export default {};');
  return { config, root, shared };
}

test('the version changes with a plugin that is a link to a file or in a linked folder', () => {
  const { config, root, shared } = folders('gateway');
  mkdirSync(join(shared, 'guard'));
  const [file, inFolder] = [join(shared, 'greet.ts'), join(shared, 'guard/index.ts')];
  for (const path of [file, inFolder]) writeFileSync(path, '1');
  symlinkSync(file, join(root, 'plugins/greet.ts'));
  symlinkSync(join(shared, 'guard'), join(root, 'plugins/guard'));
  // A link that leads nowhere, and one that leads back, end nothing.
  symlinkSync(join(shared, 'gone.ts'), join(root, 'plugins/gone.ts'));
  symlinkSync(root, join(shared, 'guard/back'));
  const seen = [versionOf(config, root)];
  for (const path of [file, inFolder]) {
    writeFileSync(path, '2');
    seen.push(versionOf(config, root));
  }
  expect(new Set(seen).size).toBe(3);
});

test('the version changes with a plugin of a gateway that itself stands in node_modules, and not with packages beside it', () => {
  const { config, root } = folders('node_modules/gateway');
  writeFileSync(join(root, 'plugins/greet.ts'), '1');
  mkdirSync(join(root, 'plugins/node_modules/other'), { recursive: true });
  writeFileSync(join(root, 'plugins/node_modules/other/index.js'), '1');
  const before = [versionOf(config, root), digestOfFiles(config, root)];
  writeFileSync(join(root, 'plugins/node_modules/other/index.js'), '2');
  expect([versionOf(config, root), digestOfFiles(config, root)]).toEqual(before);
  writeFileSync(join(root, 'plugins/greet.ts'), '2');
  expect(versionOf(config, root)).not.toBe(before[0]);
});
