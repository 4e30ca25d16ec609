import * as fc from 'fast-check';
import { Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { measured } from '../../plugins/metrics/scrape.ts';
import { Timing } from '../../plugins/metrics/tally.ts';

const shape = {
  name: 'seconds',
  help: 'How long it took.',
  labelNames: ['operation', 'channel'],
  buckets: [0.05, 0.1, 1, 10],
};

test('times are told as the histogram of prom-client tells them', async () => {
  const label = fc.constantFrom('', 'chat', 'a "quoted"\nname', '\\');
  const seconds = fc.oneof(
    fc.constantFrom(0, 0.05, 0.1, 10, 10.001),
    fc.double({ min: 0, max: 100, noNaN: true }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(seconds, label, label), { maxLength: 30 }), async (observed) => {
      const [ours, theirs] = [new Registry(), new Registry()];
      const timing = new Timing({ ...shape, registers: [ours] });
      const histogram = new Histogram({ ...shape, registers: [theirs] });
      for (const [time, operation, channel] of observed) {
        timing.observe(time, operation, channel);
        histogram.observe({ operation, channel }, time);
      }
      expect(await ours.metrics()).toBe(await theirs.metrics());
      expect(await measured([ours])).toEqual(await measured([theirs]));
    }),
  );
});
