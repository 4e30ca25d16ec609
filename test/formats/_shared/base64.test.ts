import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { joinBase64 } from '../../../core/formats/_shared/base64.ts';
import { tries } from '../../support/tries.ts';

test('pieces of base64 are joined to the same bytes, wherever they were cut and whichever of them have padding', () => {
  const cutAnywhere = fc.tuple(fc.uint8Array({ maxLength: 40 }), fc.array(fc.nat(60), { maxLength: 4 }));
  fc.assert(
    fc.property(fc.array(cutAnywhere, { maxLength: 5 }), (media) => {
      const pieces = media.flatMap(([bytes, cuts]) => {
        const text = Buffer.from(bytes).toString('base64');
        const places = [0, ...cuts.map((cut) => Math.min(cut, text.length)), text.length].toSorted(
          (one, other) => one - other,
        );
        return places.slice(1).map((end, index) => text.slice(places[index], end));
      });
      const whole = Buffer.concat(media.map(([bytes]) => bytes));
      const joined = joinBase64(pieces);
      expect(Buffer.from(joined, 'base64')).toEqual(whole);
      expect(joined).toBe(whole.toString('base64'));
    }),
    { numRuns: tries(600) },
  );
});
