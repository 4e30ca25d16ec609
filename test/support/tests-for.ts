import { readFileSync } from 'node:fs';

/** Line of the table in CONTRIBUTING.md that lists the tests to run for a change. */
export interface TestsForChange {
  /** Folders and files of the product, as paths from the root of the repository. */
  readonly changed: readonly string[];
  /** Folders and files of tests. */
  readonly tests: readonly string[];
}

/** The table in CONTRIBUTING.md: which tests to run after a change. */
export function testTable(): TestsForChange[] {
  const page = readFileSync(new URL('../../CONTRIBUTING.md', import.meta.url), 'utf8');
  const [, table = ''] = /<!-- tests -->\n([\s\S]*?)<!-- \/tests -->/.exec(page) ?? [];
  const named = (cell = ''): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path);
  return table
    .split('\n')
    .map((row) => row.split('|'))
    .map(([, changed, tests]) => ({ changed: named(changed), tests: named(tests) }))
    .filter(({ changed }) => changed.length > 0);
}

/** Returns the test files and folders for a change in a folder or file: those of the most specific line of the table. */
export function testsFor(path: string): readonly string[] {
  const fits = (one: string): boolean => path === one || path.startsWith(`${one}/`);
  const rows = testTable().flatMap(({ changed, tests }) =>
    changed.filter(fits).map((folder) => ({ folder, tests })),
  );
  const [best] = rows.toSorted((one, other) => other.folder.length - one.folder.length);
  return best?.tests ?? [];
}
