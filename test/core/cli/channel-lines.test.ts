import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { channelLines } from '../../../core/cli/channel-lines.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { sluice } from './_process.ts';

test('a kind is counted with the helpers that no other takes, and those that they take alone', () => {
  const folder = operatorFolder({
    'channels/one.ts': "import { a } from './_alone.ts';\nimport { b } from './_both.ts';\n",
    'channels/two.ts': "import { b } from './_both.ts';\n",
    'channels/three/index.ts': '// first\n',
    'channels/three/more.ts': "import { c } from '../_third.ts';\n",
    'channels/_alone.ts': "import { d } from './_deep.ts';\n\n\n",
    'channels/_deep.ts': '\n',
    'channels/_both.ts': '\n\n\n\n',
    'channels/_third.ts': '\n\n',
    'channels/README.md': '# Channels\n',
  });
  expect(channelLines(folder)).toBe(`| channel | lines | of helpers of its own | these |
| --- | --- | --- | --- |
| \`one\` | 2 | 4 | _alone, _deep |
| \`three\` | 2 | 2 | _third |
| \`two\` | 1 | 0 |  |`);
});

test('the command tells it of all kinds that there are', async () => {
  const { code, stdout } = await sluice(['check', '--lines']);
  expect(code).toBe(0);
  const files = readdirSync(join(import.meta.dirname, '../../../channels'))
    .filter((file) => /^[a-z].*\.ts$/.test(file))
    .map((file) => file.replace('.ts', ''));
  expect(files.filter((file) => !stdout.includes(`| \`${file}\` | `))).toEqual([]);
});
