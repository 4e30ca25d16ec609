import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

test('the reference names every header of Sluice', () => {
  const page = readFileSync(join(root, 'docs/reference/headers.md'), 'utf8');
  const used = new Set(
    ['core', 'plugins', 'channels']
      .flatMap((folder) => readdirSync(join(root, folder), { withFileTypes: true, recursive: true }))
      .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.parentPath.includes('dist'))
      .flatMap(
        (entry) =>
          readFileSync(join(entry.parentPath, entry.name), 'utf8').match(/(?<=')x-sluice-[a-z]+(?=')/g) ?? [],
      ),
  );
  expect(used.size).toBeGreaterThan(10);
  const named = (name: string): boolean =>
    page.includes(`\`${name}`) || page.includes(`\`${name.replace('x-sluice', '')}\``);
  expect([...used].filter((name) => !named(name))).toEqual([]);
});
