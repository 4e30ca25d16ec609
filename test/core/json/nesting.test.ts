import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Nesting } from '../../../core/json/nesting.ts';
import { tries } from '../../support/tries.ts';

const seed = 20_261_127;

test('counts open brackets outside strings, in whatever pieces the JSON comes', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.array(fc.nat({ max: 20 }), { maxLength: 40 }), (value, lengths) => {
      // The quote before the first bracket begins no string.
      const bytes = Buffer.from(`data: "{ ${JSON.stringify([value])} ]`);
      const nesting = new Nesting();
      let from = 0;
      let deepest = 0;
      for (const length of [...lengths, bytes.length]) {
        const piece = bytes.subarray(from, from + length);
        from += piece.length;
        for (let at = 0; at < piece.length; at += 1) {
          at = nesting.read(piece, at);
          deepest = Math.max(deepest, nesting.depth);
        }
      }
      expect(nesting.depth).toBe(0);
      expect(deepest).toBe(1 + depthOf([value]));
    }),
    { seed, numRuns: tries(500) },
  );
});

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}
