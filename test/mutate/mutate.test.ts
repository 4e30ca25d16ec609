import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { accepted, acceptedEntry, withoutMutant } from './accepted.ts';
import { testsOf } from './coverage.ts';
import { instrument, type Mutant } from './mutants.ts';
import { readOptions } from './options.ts';
import { scoreLine, scoreOf } from './report.ts';
import { interval, sample } from './sample.ts';
import { Tree } from './tree.ts';

const code = `// The head of the file.
import { GatewayError } from 'sluice';
/** Adds up to a limit. */
export function add(one: number, other: number, most: number): number {
  if (one + other > most) throw new GatewayError('too_large', 'The sum is too large.');
  return one + other;
}
`;
const plain = `export const add = (one: number, other: number): number => (one < 0 ? 0 : one + other);
`;

function mutant(changes: Partial<Mutant> = {}): Mutant {
  const usual = {
    id: '1',
    file: 'core/a.ts',
    line: 1,
    source: 'if (a < b)',
    mutator: 'M',
    original: 'a < b',
    replacement: 'a <= b',
  };
  return { ...usual, ...changes };
}

describe('mutants', () => {
  test('are found with their line and code, but not in sentences for people', async () => {
    const { mutants, files } = await instrument([{ path: 'core/a.ts', text: code }]);
    expect(mutants).toContainEqual(
      expect.objectContaining({
        file: 'core/a.ts',
        line: 5,
        source: "if (one + other > most) throw new GatewayError('too_large', 'The sum is too large.');",
        original: 'one + other > most',
        replacement: 'one + other >= most',
      }),
    );
    expect(mutants).toContainEqual(expect.objectContaining({ original: "'too_large'" }));
    expect(mutants.filter(({ original }) => original.includes('The sum'))).toEqual(
      mutants.filter(({ original }) => original.includes('new GatewayError')),
    );
    expect(files[0]?.text).toMatch(/^\/\/ The head of the file\./);
  });

  test('are switched in all processes that start from a tree, also with an empty environment', async () => {
    const home = mkdtempSync(join(tmpdir(), 'mutated-'));
    onTestFinished(() => rmSync(home, { recursive: true }));
    const text = (path: string): string => readFileSync(path, 'utf8');
    writeFileSync(join(home, 'package.json'), '{"type":"module"}');
    writeFileSync(join(home, 'add.ts'), plain);
    const { files, mutants } = await instrument([{ path: 'add.ts', text: plain }]);
    const tree = new Tree(home, files);
    onTestFinished(() => tree.close());
    const result = (): string =>
      execFileSync(
        process.execPath,
        ['--input-type=module', '-e', `import {add} from '${tree.root}/add.ts'; console.log(add(1, 2))`],
        { env: {}, encoding: 'utf8' },
      ).trim();
    expect(result()).toBe('3');
    tree.activate(mutants.find(({ replacement }) => replacement === 'one - other')?.id);
    expect(result()).toBe('-1');
    tree.record();
    expect(result()).toBe('3');
    const reached = text(tree.reached).split('\n');
    expect(reached).toContain(mutants.find(({ replacement }) => replacement === 'one - other')?.id);
    expect(new Set(reached).size).toBe(reached.length);
    tree.activate(undefined);
    expect(result()).toBe('3');
    expect(text(join(home, 'add.ts'))).toBe(plain);
    tree.close();
    expect(existsSync(tree.root)).toBe(false);
  });

  test('run the tests that reach them, those that were made for the code first', () => {
    const file = (path: string, milliseconds: number, ...ids: string[]) => ({
      path,
      milliseconds,
      reached: new Set(ids),
    });
    const tests = [file('broad', 10, '1', '2', '3', '4'), file('elsewhere', 1, '2'), file('narrow', 20, '1')];
    const paths = testsOf('1', { tests, failing: [] }).map(({ path }) => path);
    expect(paths).toEqual(['narrow', 'broad']);
    expect(testsOf('9', { tests, failing: [] })).toEqual([]);
  });
});

describe('a sample', () => {
  const items = Array.from({ length: 1_000 }, (_, index) => index);

  test('is the same for the same seed, and another for another', () => {
    expect(sample(items, 60, 1)).toEqual(sample(items, 60, 1));
    expect(sample(items, 60, 1)).not.toEqual(sample(items, 60, 2));
  });

  test('has each item once, and all where there are fewer', () => {
    expect(new Set(sample(items, 60, 1)).size).toBe(60);
    expect(sample(items, 2_000, 1).toSorted((a, b) => a - b)).toEqual(items);
  });

  test('has an interval that narrows as it grows', () => {
    // The published example: 45 of 50 lie between 78.6 % and 95.7 %.
    expect(interval(45, 50).map((bound) => Math.round(bound * 1000))).toEqual([786, 957]);
    const width = (count: number): number =>
      interval(0.9 * count, count)[1] - interval(0.9 * count, count)[0];
    expect(width(1000)).toBeLessThan(width(100));
    expect(interval(0, 0)).toEqual([0, 1]);
  });
});

describe('a score', () => {
  test('counts what survives and what no test reaches against the tests, and a timeout for them', () => {
    const fates = ['killed', 'killed', 'timeout', 'survived', 'unreached'] as const;
    const tried = fates.map((fate) => ({ mutant: mutant(), fate, tests: 1 }));
    expect(scoreLine(scoreOf('core', 70, tried))).toBe(
      'core: 3 of 5 killed (60 %, 95 % interval 23 to 88 %), of 70 mutants',
    );
  });

  test('that are accepted to survive are in lines of the code', () => {
    const linesOf = (file: string): readonly string[] =>
      readFileSync(join(import.meta.dirname, '../..', file), 'utf8')
        .split('\n')
        .map((line) => line.trim());
    expect(accepted.filter(({ file, source }) => !linesOf(file).includes(source))).toEqual([]);
  });

  test('knows accepted survivors by file and code, and those whose code is gone', () => {
    const { id: _id, line: _line, mutator: _mutator, ...location } = mutant();
    const entry = { ...location, reason: 'never equal' };
    const below = (file: string): boolean => file.startsWith('core/');
    expect(acceptedEntry(mutant({ line: 77 }), [entry])).toBe(entry);
    expect(acceptedEntry(mutant({ replacement: 'true' }), [entry])).toBeUndefined();
    expect(acceptedEntry(mutant({ source: 'while (a < b)' }), [entry])).toBeUndefined();
    expect(withoutMutant([mutant()], below, [entry])).toEqual([]);
    expect(withoutMutant([mutant({ original: 'a > b' })], below, [entry])).toEqual([entry]);
    expect(withoutMutant([], (file) => file.startsWith('plugins/'), [entry])).toEqual([]);
  });
});

describe('the command line', () => {
  test('has a default for all but the folders', () => {
    expect(readOptions(['core/money/', 'plugins/auth.ts'])).toMatchObject({
      folders: ['core/money', 'plugins/auth.ts'],
      sample: 100,
      seed: 1,
      processes: 2,
    });
  });

  test.each([[[]], [['core', '--sample', 'many']], [['core', '--seed', '0']], [['core', '--unknown']]])(
    '%j is refused with the usage',
    (args) => {
      expect(() => readOptions(args)).toThrow('npm run mutate -- FOLDER…');
    },
  );
});
