import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { HeldBytes } from '../../../core/model/held-bytes.ts';
import { tries } from '../../support/tries.ts';

const seed = 20_261_122;

test('what was held comes back as it was, however long the pieces were', () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc
      .integer({ min: 900, max: 40_000 })
      .map((length) => new Uint8Array(length).map((_, index) => index % 251)),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), fc.nat({ max: 60 }), (pieces, middle) => {
      const held = new HeldBytes();
      for (const part of [pieces.slice(0, middle), pieces.slice(middle)]) {
        const given = part.map((bytes) => Buffer.from(bytes));
        for (const bytes of given) held.push(bytes);
        const all = Buffer.concat(given);
        expect(held.length).toBe(all.length);
        expect(held.take().equals(all)).toBe(true);
        expect(held.length).toBe(0);
      }
    }),
    { seed, numRuns: tries(500) },
  );
});

test('single bytes take little more room than they are long', () => {
  const held = new HeldBytes();
  const before = process.memoryUsage();
  const count = 4 * 1024 * 1024;
  for (let index = 0; index < count; index += 1) held.push(Buffer.of(index % 256));
  const { heapUsed, external } = process.memoryUsage();
  const grown = heapUsed + external - before.heapUsed - before.external;
  expect(held.take().length).toBe(count);
  // Held as they came they would take a hundred times as much.
  expect(grown).toBeLessThan(40 * count);
});
