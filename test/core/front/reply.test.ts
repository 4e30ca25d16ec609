import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lossHeader } from '../../../core/front/reply.ts';
import type { Loss } from '../../../core/model/extra.ts';
import { tries } from '../../support/tries.ts';
import { anyCharacter } from '../../support/characters.ts';

const lost = (path: string): Loss => ({ path, kind: 'setting', from: 'a', to: 'b' });

describe('x-sluice-loss', () => {
  test('names each path once, in order', () => {
    expect(lossHeader([lost('top_k'), lost('messages[0].name'), lost('top_k')])).toBe(
      'top_k, messages[0].name',
    );
    expect(lossHeader([])).toBe('');
  });

  test('is always a legal header of bounded length, whatever a client called its fields', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: anyCharacter, maxLength: 3000 }), { maxLength: 60 }),
        (paths) => {
          const header = lossHeader(paths.map(lost));
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
    const header = lossHeader(
      Array.from({ length: 500 }, (_, index) => lost(`messages[${index}].cache_control`)),
    );
    expect(header).toMatch(/^messages\[0\]\.cache_control, .*, \.\.\.$/);
  });
});
