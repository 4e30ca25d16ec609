import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadModule } from '../../../core/config/installation/load.ts';
import { LoadError } from '../../../core/config/installation/load-error.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** A credential that stands in every file: no message may hold it. */
const secret = 'canary-credential-4711';

/** Loads a file of a new folder. Returns where it failed and why, with the folder left out. */
async function failure(
  files: Readonly<Record<string, string>>,
  name = Object.keys(files)[0] ?? '',
): Promise<{ readonly location: string; readonly message: string }> {
  const folder = temporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const error: unknown = await loadModule(join(folder, name)).catch((thrown: unknown) => thrown);
  if (!(error instanceof LoadError)) throw new Error('It loads.', { cause: error });
  expect(`${error.location} ${error.message}`).not.toContain(secret);
  const short = (text: string): string => text.replaceAll(`${folder}/`, '');
  return { location: short(error.location), message: short(error.message) };
}

describe('a file that does not load is named with line and column, and its source is not shown:', () => {
  test.each<[string, string, string, RegExp]>([
    [
      'TypeScript that is wrong',
      'a.ts',
      `const key = '${secret}';\nexport default { a: 1,, key: '${secret}' };`,
      /^a\.ts:2:23 Unexpected token/,
    ],
    [
      'a literal in the wrong place',
      'a.ts',
      `export default {\n  key '${secret}',\n};`,
      /^a\.ts:2:7 Unexpected token/,
    ],
    ['a text without an end', 'a.ts', `\nexport default '${secret};\n`, /^a\.ts:2:16 Unterminated string/],
    [
      'an enum',
      'a.ts',
      `import type { A } from 'a';\nenum Color { Red = '${secret}' }\nexport default 1;`,
      /^a\.ts:2:1 TypeScript enum is not supported/,
    ],
    [
      'an enum of several lines',
      'a.ts',
      `export default 1;\n{\n  enum Color {\n    Red = '${secret}',\n  }\n}`,
      /^a\.ts:3:3 TypeScript enum is not supported/,
    ],
    [
      'a parameter property',
      'a.mts',
      `class A { constructor(private key = '${secret}') {} }\nexport default A;`,
      /^a\.mts:1:31 TypeScript parameter property is not supported/,
    ],
    [
      'JavaScript that is wrong',
      'a.mjs',
      `export default {\n  key: '${secret}',,\n};`,
      /^a\.mjs:2:\d+ Unexpected token ','/,
    ],
    [
      'two default exports',
      'a.ts',
      `export default '${secret}';\nexport default 2;`,
      /^a\.ts:2:\d+ .*already been declared/,
    ],
    [
      'an import of a file that is not there',
      'a.ts',
      `const key = '${secret}';\nimport gone from './gone.ts';\nexport default gone;`,
      /^a\.ts:2:18 Cannot find module/,
    ],
    [
      'an import of a package that is not there',
      'a.mjs',
      `import gone from "no-such-package";\nexport default gone;`,
      /^a\.mjs:1:18 Cannot find package 'no-such-package'/,
    ],
    [
      'an exception',
      'a.ts',
      `export default 1;\nconst key = '${secret}';\nthrow new Error('boom');`,
      /^a\.ts:3:7 boom$/,
    ],
    [
      'a name that is not defined',
      'a.ts',
      `export default {\n  key: '${secret}', port: nothing,\n};`,
      /^a\.ts:2:\d+ nothing is not defined$/,
    ],
  ])('%s', async (_, name, text, expected) => {
    const { location, message } = await failure({ [name]: text });
    expect(`${location} ${message}`).toMatch(expected);
  });

  test('a name that another file does not export', async () => {
    const files = {
      'a.ts': `import { nothing } from './b.ts';\nexport default nothing;`,
      'b.ts': `export const key = '${secret}';`,
    };
    expect(await failure(files)).toEqual({
      location: 'a.ts:1:10',
      message: "The requested module './b.ts' does not provide an export named 'nothing'",
    });
  });

  test.each([
    ['b.ts', `export const key = '${secret}';\nenum A { B }`, /\(in b\.ts:2:1\)$/],
    ['b.mjs', `export const key = '${secret}',;`, /^Unexpected token ';' \(in b\.mjs:1:\d+\)$/],
    ['b.mjs', `export const key = '${secret}';\n\n  throw new Error('boom');`, /^boom \(in b\.mjs:3:9\)$/],
    ['b.mjs', `import './c.mjs';`, /^Cannot find module .* \(in b\.mjs:1:8\)$/],
  ])('a file that imports it, %s', async (name, text, expected) => {
    const { location, message } = await failure({
      'a.ts': `import './${name}';\nexport default 1;`,
      [name]: text,
    });
    expect(location).toBe('a.ts');
    expect(message).toMatch(expected);
  });

  test('JSON that is wrong', async () => {
    const files = {
      'a.mjs': `import data from './b.json' with { type: 'json' };\nexport default data;`,
      'b.json': `{ "key": "${secret}", nothing }`,
    };
    expect((await failure(files)).message).toContain('b.json');
    const short = { ...files, 'b.json': `["${secret}", x]` };
    expect((await failure(short)).message).toMatch(/b\.json: Unexpected token 'x' in JSON/);
  });
});
