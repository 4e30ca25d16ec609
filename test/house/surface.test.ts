import { describe, expect, test } from 'vitest';
import { linesOf, recorded, surface } from './surface.ts';

const now = surface();

describe('what authors import', () => {
  test('is what is recorded: no name comes, goes or changes unnoticed', () => {
    const before = new Set(recorded().lines);
    const lines = linesOf(now);
    const gone = [...before].filter((line) => !lines.includes(line)).map((line) => `- ${line}`);
    const come = lines.filter((line) => !before.has(line)).map((line) => `+ ${line}`);
    const whatToDo =
      'The public surface has changed. If that is meant, write a line under "For plugin authors" in CHANGELOG.md, and run "npm run surface".';
    expect([...gone, ...come].length === 0 ? '' : [whatToDo, ...gone, ...come].join('\n')).toBe('');
  });

  test('has an example at every name', () => {
    const without = now
      .filter(({ isExported, comment }) => isExported && !comment.includes('@example'))
      .map(({ name }) => name);
    expect(without).toEqual([]);
  });
});
