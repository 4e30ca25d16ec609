import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { discover } from '../../../core/config/discover.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** A folder with these files, gone after the test. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

test('finds files and folders by their names, in order, and passes over helpers', async () => {
  const folder = folderWith({
    'zebra.ts': 'export default "zebra" as string;',
    'apple.js': 'export default "apple";',
    'melon.mjs': 'export default "melon";',
    'grape/index.ts': 'export default "grape";',
    'grape/part.ts': 'throw new Error("not a definition");',
    'grape.v2/index.js': 'export default "grape two";',
    'empty/notes.txt': 'no definition here',
    '_helper.ts': 'throw new Error("not a definition");',
    '.hidden.ts': 'throw new Error("not a definition");',
    'types.d.ts': 'export default string;',
    'zebra.test.ts': 'throw new Error("a test");',
    'README.md': '# Read me',
  });
  const { found, problems } = await discover(folder);
  expect(problems).toEqual([]);
  expect(found.map(({ name, value }) => [name, value])).toEqual([
    ['apple', 'apple'],
    ['grape', 'grape'],
    ['grape.v2', 'grape two'],
    ['melon', 'melon'],
    ['zebra', 'zebra'],
  ]);
});

test('reports a module that does not load or exports nothing, and goes on with the others', async () => {
  const folder = folderWith({
    'broken.ts': 'throw new Error("cannot start");',
    'good.ts': 'export default 1;',
    'nothing.ts': 'export const value = 1;',
  });
  const { found, problems } = await discover(folder);
  expect(found.map(({ name }) => name)).toEqual(['good']);
  expect(problems).toEqual([
    `${join(folder, 'broken.ts')}:1:7: cannot be loaded: cannot start`,
    `${join(folder, 'nothing.ts')}: has no default export. Export the definition by default, or begin the name with "_".`,
  ]);
});

test('reports a name that is taken', async () => {
  const folder = folderWith({ 'same.ts': 'export default 1;', 'same/index.ts': 'export default 2;' });
  const { found, problems } = await discover(folder);
  expect(found).toHaveLength(1);
  expect(problems).toEqual([expect.stringMatching(/its name "same" is taken by .*Rename one of them\.$/)]);
});

test('follows links to files and folders', async () => {
  const elsewhere = folderWith({ 'plugin/index.ts': 'export default "linked";' });
  const folder = folderWith({});
  symlinkSync(join(elsewhere, 'plugin'), join(folder, 'linked'));
  symlinkSync(join(elsewhere, 'gone'), join(folder, 'dangling'));
  const { found, problems } = await discover(folder);
  expect(problems).toEqual([]);
  expect(found.map(({ name, value }) => [name, value])).toEqual([['linked', 'linked']]);
});

test('finds nothing in a folder that does not exist', async () => {
  expect(await discover('/nowhere/at/all')).toEqual({ found: [], problems: [] });
});
