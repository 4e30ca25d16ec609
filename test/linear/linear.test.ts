import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EffortCounter } from './effort.ts';
import { definePlugin } from '../../core/sdk/define.ts';
import { measure, mostRuns, type Work } from './measure.ts';
import { countedWork } from './others.ts';
import { PluginBench, row } from './plugin-bench.ts';

/** The smaller of two sizes. */
const size = 64;
/** Maximum growth. Copying a list for each member is 2; the growth of small tables adds noise below that. */
const most = 1.5;
/** Of each part's shapes one in so many is tried here, of the next part the next ones: `npm run linear` tries all. */
const share = 6;

let counter: EffortCounter;
beforeAll(() => {
  counter = new EffortCounter();
});
afterAll(() => counter.close());

/** Returns the work that grows faster than its input. */
function growths(works: readonly Work[]): string[] {
  return works
    .map((work) => counter.growth(work, size, most))
    .filter(({ steps, bytes }) => steps > most || bytes > most)
    .map(
      ({ work, steps, bytes }) =>
        `${work.part}, ${work.shape}: steps ${steps.toFixed(2)}, bytes ${bytes.toFixed(2)}`,
    );
}

const parts = [...new Set(countedWork.map(({ part }) => part))];

describe('work grows no faster than its input, by the steps and the bytes that it takes', () => {
  test.each(parts.map((part, index) => [part, index] as const))('%s', (part, place) => {
    const works = countedWork.filter((work) => work.part === part);
    expect(works.length).toBeGreaterThan(0);
    const oneOf = Math.min(share, works.length);
    expect(growths(works.filter((_, index) => index % oneOf === place % oneOf))).toEqual([]);
  });

  test('and what grows faster is found', () => {
    const copying: Work = {
      part: 'a list that is copied for each of its members',
      shape: 'numbers',
      make: (count) => ({
        bytes: count,
        run() {
          let list: number[] = [];
          // oxlint-disable-next-line oxc/no-accumulating-spread -- that is what shall be found
          for (let index = 0; index < 20 * count; index += 1) list = [...list, index];
          return list;
        },
      }),
    };
    expect(growths([copying])).toHaveLength(1);
  });
});

describe('what a measured run leaves behind', () => {
  const limits = { exponent: Infinity, perMegabyte: Infinity };

  test('is done before more runs follow, where it was put off to a later turn', async () => {
    let waiting = 0;
    let highest = 0;
    await measure(
      {
        part: 'work that is put off',
        shape: 'numbers',
        most: 64,
        make: (count) => ({
          bytes: count,
          run() {
            waiting += 1;
            highest = Math.max(highest, waiting);
            setImmediate(() => (waiting -= 1));
          },
        }),
      },
      limits,
    );
    expect(highest).toBeGreaterThan(0);
    expect(highest).toBeLessThanOrEqual(2 * mostRuns);
  });

  test('is dropped when a plugin was measured: each call has its next turn, and the plugin is closed', async () => {
    const done = { calls: 0, later: 0, closed: 0, highest: 0 };
    const plugin = definePlugin({
      name: 'putting-off',
      stage: 'observe',
      setup(_, { onClose }) {
        onClose(() => void (done.closed += 1));
        return (call, next) => {
          done.calls += 1;
          done.highest = Math.max(done.highest, done.calls - done.later);
          setImmediate(() => (done.later += 1));
          return next(call);
        };
      },
    });
    const bench = await PluginBench.start();
    try {
      const body = { messages: [{ role: 'user', content: 'hello' }] };
      const work = row(
        bench,
        plugin,
        undefined,
        'hello',
        () => ({ bytes: 1, input: { format: 'chat-completions', body } }),
        { most: 64 },
      );
      await measure(work, limits);
      expect(done).toMatchObject({ later: done.calls, closed: 0, highest: 1 });
      await work.close?.();
      expect(done.closed).toBe(1);
    } finally {
      await bench.close();
    }
  });
});
