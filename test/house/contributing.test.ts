import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testsFor, testTable } from '../support/tests-for.ts';
import { home } from './source.ts';

/** Folders and files of the product, one level below its rooms. */
const parts = ['core', 'plugins', 'channels'].flatMap((room) =>
  readdirSync(join(home, room))
    .map((name) => `${room}/${name}`)
    .filter((path) => path.endsWith('.ts') || statSync(join(home, path)).isDirectory()),
);

test('the table of tests in CONTRIBUTING.md names files and folders that exist', () => {
  const named = testTable().flatMap(({ changed, tests }) => [...changed, ...tests]);
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((path) => !existsSync(join(home, path)))).toEqual([]);
});

test('the table of tests in CONTRIBUTING.md has tests for each part of the product', () => {
  const without = parts.filter((path) => testsFor(path).length === 0);
  expect(without).toEqual([]);
});

test('a part of the product has the tests of its most specific line', () => {
  expect(testsFor('plugins/quota')).toContain('test/plugins/quota.test.ts');
  expect(testsFor('plugins/request-id.ts')).toEqual(['test/plugins']);
  expect(testsFor('nowhere/else.ts')).toEqual([]);
});
