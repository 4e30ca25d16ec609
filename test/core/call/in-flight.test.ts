import { expect, test } from 'vitest';
import { InFlight } from '../../../core/sdk/in-flight.ts';

const numbers = (inFlight: InFlight<{ readonly number: number }>): number[] =>
  inFlight.values().map(({ number }) => number);

function three(): {
  inFlight: InFlight<{ readonly number: number }>;
  places: ReturnType<typeof inFlight.add>[];
} {
  const inFlight = new InFlight<{ readonly number: number }>();
  return { inFlight, places: [1, 2, 3].map((number) => inFlight.add({ number })) };
}

test('they stand in the order in which they came', () => {
  const { inFlight } = three();
  inFlight.add({ number: 4 });
  expect(numbers(inFlight)).toEqual([1, 2, 3, 4]);
  expect(inFlight.values(2).map(({ number }) => number)).toEqual([3, 4]);
  expect(inFlight.size).toBe(4);
});

test.for([0, 1, 2])('number %i of three is taken out once, and its place refers to nothing', (index) => {
  const { inFlight, places } = three();
  const node = places[index];
  if (node === undefined) throw new Error('There is no such place.');
  expect(inFlight.remove(node)).toBe(true);
  expect(inFlight.remove(node)).toBe(false);
  expect(node).toEqual({ value: undefined, before: undefined, after: undefined });
  expect(numbers(inFlight)).toEqual([1, 2, 3].filter((number) => number !== index + 1));
  inFlight.add({ number: 4 });
  expect(numbers(inFlight)).toEqual([...[1, 2, 3].filter((number) => number !== index + 1), 4]);
});

test('the oldest goes first, until there is none', () => {
  const { inFlight } = three();
  expect([inFlight.shift(), inFlight.shift(), inFlight.shift(), inFlight.shift()]).toEqual([
    { number: 1 },
    { number: 2 },
    { number: 3 },
    undefined,
  ]);
  expect(inFlight.size).toBe(0);
  inFlight.add({ number: 4 });
  expect(numbers(inFlight)).toEqual([4]);
});

test('whoever takes some out while all are looked at still sees those that were there', () => {
  const { inFlight, places } = three();
  const seen: number[] = [];
  for (const { number } of inFlight.values()) {
    seen.push(number);
    for (const node of places) inFlight.remove(node);
  }
  expect(seen).toEqual([1, 2, 3]);
  expect(inFlight.values()).toEqual([]);
});
