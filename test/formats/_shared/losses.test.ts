import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ReportedPaths, describeLosses } from '../../../core/formats/_shared/losses.ts';
import type { Loss } from '../../../core/model/extra.ts';
import { tries } from '../../support/tries.ts';
import { anyCharacter } from '../../support/characters.ts';

const lost = (path: string): Loss => ({ path, kind: 'setting', from: 'a', to: 'b' });

describe('x-sluice-loss', () => {
  test('names each path once, in order', () => {
    expect(describeLosses([lost('top_k'), lost('messages[0].name'), lost('top_k')])).toBe(
      'top_k, messages[0].name',
    );
    expect(describeLosses([])).toBe('');
  });

  test('is always a legal header of bounded length, whatever a client called its fields', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: anyCharacter, maxLength: 3000 }), { maxLength: 60 }),
        (paths) => {
          const header = describeLosses(paths.map(lost));
          expect(header).toMatch(/^[\x21-\x7e, ]*$/);
          expect(header.length).toBeLessThan(2100);
          expect(header).not.toMatch(/^,|, ,/);
          expect(() => new Headers({ 'x-sluice-loss': header })).not.toThrow();
        },
      ),
      { seed: 20_261_120, numRuns: tries(500) },
    );
  });

  test('says when there is more', () => {
    const header = describeLosses(
      Array.from({ length: 500 }, (_, index) => lost(`messages[${index}].cache_control`)),
    );
    expect(header).toMatch(/^messages\[0\]\.cache_control, .*, \.\.\.$/);
  });
});

test('places are told of once, and no more of them than there is room for', () => {
  const paths = new ReportedPaths();
  expect(['seed', 'top_k', 'seed'].map((path) => paths.isNew(path))).toEqual([true, true, false]);
  const more = Array.from({ length: 5_000 }, (_, index) => `messages[${index}].name`);
  expect(more.filter((path) => paths.isNew(path))).toEqual(more.slice(0, 998));
  // So many are more than the header has room for, however short they are: it says that there are more.
  const short = Array.from({ length: 1_000 }, (_, index) => lost(index.toString(36)));
  expect(describeLosses(short)).toMatch(/, \.\.\.$/);
});
