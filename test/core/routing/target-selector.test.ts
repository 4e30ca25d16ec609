import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Affinity } from '../../../core/sdk/affinity.ts';
import { TargetSelector, type TargetSelectorOptions } from '../../../core/routing/target-selector.ts';
import { TargetLoads } from '../../../core/routing/load.ts';
import { candidatesOf, FakeHealth, nameOf, seeded, type Wanted } from './_targets.ts';

interface Setup {
  readonly how?: TargetSelectorOptions['how'];
  readonly affinity?: Affinity;
  readonly health?: FakeHealth;
  readonly load?: TargetLoads;
  readonly random?: () => number;
  readonly now?: () => number;
}

function choiceOf(
  wanted: readonly Wanted[],
  { how = 'weight', affinity, health, load, random, now }: Setup = {},
): TargetSelector {
  return new TargetSelector(candidatesOf(...wanted), affinity, {
    how,
    health: health ?? new FakeHealth(),
    load: load ?? new TargetLoads(),
    random: random ?? seeded(7),
    ...(now === undefined ? {} : { now }),
  });
}

function all(choice: TargetSelector): string[] {
  const names: string[] = [];
  for (let target = choice.next(); target !== undefined; target = choice.next()) names.push(nameOf(target));
  return names;
}

const wantedChannels: fc.Arbitrary<readonly Wanted[]> = fc
  .array(
    fc.record({
      priority: fc.integer({ min: 0, max: 2 }),
      weight: fc.constantFrom(0.5, 1, 3),
      keys: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .map((channels) => channels.map((channel, index) => ({ id: `c${index}`, ...channel })));
const hows = fc.constantFrom('weight', 'least-busy', 'fastest') as fc.Arbitrary<TargetSelectorOptions['how']>;

describe('the targets of a call', () => {
  test('come once each, and none is forgotten', () => {
    fc.assert(
      fc.property(wantedChannels, hows, fc.integer(), (wanted, how, seed) => {
        const names = all(choiceOf(wanted, { how, random: seeded(seed) }));
        const every = wanted.flatMap(({ id, keys = [] }) => keys.map((key) => `${id}/${key}`));
        expect(names.toSorted()).toEqual(every.toSorted());
      }),
    );
  });

  test('come by rank: a lower one only when no higher one may be asked, or its channel has failed', () => {
    fc.assert(
      fc.property(
        wantedChannels,
        hows,
        fc.integer(),
        fc.array(fc.constantFrom('none', 'key', 'channel')),
        fc.array(fc.integer({ min: 0, max: 14 })),
        (wanted, how, seed, failures, held) => {
          const health = new FakeHealth();
          const every = candidatesOf(...wanted).flatMap(({ targets }) => targets);
          for (const index of held) {
            const target = every[index];
            if (target !== undefined) health.waits.set(nameOf(target), 500);
          }
          const choice = choiceOf(wanted, { how, health, random: seeded(seed) });
          const tried = new Set<string>();
          const spoilt = new Set<string>();
          for (let target = choice.next(); target !== undefined; target = choice.next()) {
            const { channel } = target;
            const name = nameOf(target);
            expect(health.waits.has(name)).toBe(false);
            expect(tried.has(name)).toBe(false);
            const better = every.filter(
              (other) =>
                !tried.has(nameOf(other)) &&
                !health.waits.has(nameOf(other)) &&
                !spoilt.has(other.channel.id) &&
                (spoilt.has(channel.id) || other.channel.priority > channel.priority),
            );
            expect(better.map(nameOf)).toEqual([]);
            tried.add(name);
            const what = failures[tried.size - 1] ?? 'none';
            if (what === 'channel') spoilt.add(channel.id);
            if (what === 'channel' || what === 'key') choice.failed(target, what, seed % 2 === 0);
          }
          expect(tried.size + health.waits.size).toBe(every.length);
          expect(choice.left().map(nameOf).toSorted()).toEqual([...health.waits.keys()].toSorted());
        },
      ),
    );
  });

  test('are drawn by weight, and the keys of one channel take turns', () => {
    const load = new TargetLoads();
    const random = seeded(42);
    const wanted = [
      { id: 'one', weight: 1 },
      { id: 'three', weight: 3, keys: ['a', 'b', 'c'] },
    ];
    const counts: Record<string, number> = {};
    for (let round = 0; round < 4000; round += 1) {
      const name = all(choiceOf(wanted, { load, random }))[0] ?? '';
      counts[name] = (counts[name] ?? 0) + 1;
    }
    // A quarter of 4000 is 1000; a deviation of 140 is five times the standard one.
    expect(counts['one/a']).toBeGreaterThan(860);
    expect(counts['one/a']).toBeLessThan(1140);
    const keys = ['a', 'b', 'c'].map((key) => counts[`three/${key}`] ?? 0);
    expect(Math.max(...keys) - Math.min(...keys)).toBeLessThan(160);
  });

  test('of a channel with sites are those of the first, in turn, then of the next, whatever has failed', () => {
    const wanted = [
      { id: 'x', keys: ['a1', 'a2', 'b1', 'b2'], sites: [0, 0, 1, 1] },
      { id: 'y', priority: -1 },
    ];
    for (const how of ['weight', 'least-busy', 'fastest'] as const) {
      const load = new TargetLoads();
      const random = seeded(42);
      const firsts = Array.from({ length: 20 }, () => {
        const first = choiceOf(wanted, { how, load, random }).next();
        return first && nameOf(first);
      });
      expect(new Set(firsts)).toEqual(new Set(['x/a1', 'x/a2']));
    }
    const after = (what: 'key' | 'channel'): string => {
      const choice = choiceOf(wanted);
      const first = choice.next();
      if (first === undefined) throw new Error('none');
      choice.failed(first, what);
      return all(choice)
        .map((name) => name.replace(/\d$/, ''))
        .join(' ');
    };
    expect(after('key')).toBe('x/a x/b x/b y/a');
    // What fails at one site says nothing of the other; what is left of it comes last.
    expect(after('channel')).toBe('x/b x/b y/a x/a');
  });

  test('of a channel without sites come before an equal channel only where a key of it was at fault alone', () => {
    const channels = [
      { id: 'x', keys: ['a', 'b'] },
      { id: 'y', weight: 1e9 },
    ];
    for (const [prefersMates, next] of [
      [true, 'x'],
      [false, 'y'],
    ] as const) {
      // The first draw is of x, all others are of the heaviest channel.
      const draws = [0];
      const choice = choiceOf(channels, { random: () => draws.pop() ?? 0.5 });
      const first = choice.next();
      expect(first?.channel.id).toBe('x');
      if (first !== undefined) choice.failed(first, 'key', prefersMates);
      const second = choice.next();
      expect(second?.channel.id).toBe(next);
    }
  });

  test('of a channel that failed as a whole come last, whatever was said of its keys', () => {
    const channels = [
      { id: 'x', keys: ['a', 'b'] },
      { id: 'y', weight: 1e9 },
    ];
    for (const prefersMates of [true, false, undefined]) {
      const draws = [0];
      const choice = choiceOf(channels, { random: () => draws.pop() ?? 0.5 });
      const first = choice.next();
      if (first === undefined) throw new Error('none');
      choice.failed(first, prefersMates === undefined ? 'key' : 'channel', prefersMates);
      expect([prefersMates, choice.next()?.channel.id]).toEqual([prefersMates, 'y']);
    }
  });

  test('of a channel with sites come before an equal channel, once one of them has failed', () => {
    const wanted = [
      { id: 'x', keys: ['a', 'b'], sites: [0, 1] },
      { id: 'y', weight: 1e9 },
    ];
    const draws = [0];
    const choice = choiceOf(wanted, { random: () => draws.pop() ?? 0.5 });
    const first = choice.next();
    if (first === undefined) throw new Error('none');
    choice.failed(first, 'channel');
    expect(all(choice)).toEqual(['x/b', 'y/a']);
  });

  test('a key over which calls run waits until the others have as many', () => {
    const load = new TargetLoads();
    const wanted = [{ id: 'x', keys: ['a', 'b', 'c'] }];
    const names = Array.from({ length: 9 }, () => {
      const target = choiceOf(wanted, { load }).next();
      if (target === undefined) throw new Error('none');
      load.of(target).enter();
      return nameOf(target);
    });
    for (let round = 0; round < 9; round += 3)
      expect(names.slice(round, round + 3).toSorted()).toEqual(['x/a', 'x/b', 'x/c']);
  });

  test('of which another key is better come next after a key that failed, and last after a channel that did', () => {
    const wanted = [
      { id: 'x', keys: ['a', 'b'] },
      { id: 'y', weight: 1e9 },
      { id: 'z', priority: -1 },
    ];
    const after = (what: 'key' | 'channel'): string[] => {
      const choice = choiceOf(wanted, { affinity: { channel: 'x', key: 'a' } });
      const first = choice.next();
      if (first === undefined) throw new Error('none');
      choice.failed(first, what, true);
      return [nameOf(first), ...all(choice)];
    };
    expect(after('key')).toEqual(['x/a', 'x/b', 'y/a', 'z/a']);
    expect(after('channel')).toEqual(['x/a', 'y/a', 'z/a', 'x/b']);
  });

  test('beside others that are being asked belong to another channel while there is one', () => {
    const wanted = [
      { id: 'x', keys: ['a', 'b'] },
      { id: 'y', priority: -1 },
    ];
    const choice = choiceOf(wanted, { affinity: { channel: 'x', key: 'b' } });
    const first = choice.next();
    if (first === undefined) throw new Error('none');
    const beside = [first];
    expect(
      [nameOf(first), choice.next(beside), choice.next(beside)].map((one) =>
        typeof one === 'string' ? one : one && nameOf(one),
      ),
    ).toEqual(['x/b', 'y/a', 'x/a']);
  });
});

describe('a target that was not asked after all', () => {
  test('may be asked again, and one that was taken may not', () => {
    const choice = choiceOf([{ id: 'x', keys: ['a', 'b', 'c'] }]);
    const [first, second, third] = [choice.next(), choice.next(), choice.next()];
    if (first === undefined || second === undefined || third === undefined) throw new Error('none');
    expect([choice.next(), choice.left()]).toEqual([undefined, []]);
    choice.putBack(first);
    choice.putBack(first);
    expect(choice.left()).toEqual([first]);
    expect([choice.next(), choice.next()]).toEqual([first, undefined]);
    choice.putBack(third);
    choice.take(third);
    expect(choice.next()).toBeUndefined();
  });
});

describe('the least busy', () => {
  test('is the one with the fewest calls for its weight', () => {
    const load = new TargetLoads();
    const random = seeded(1);
    const wanted = [
      { id: 'one', weight: 1 },
      { id: 'three', weight: 3 },
    ];
    for (let round = 0; round < 40; round += 1) {
      const target = choiceOf(wanted, { how: 'least-busy', load, random }).next();
      if (target !== undefined) load.of(target).enter();
    }
    expect([load.channel('one').running, load.channel('three').running]).toEqual([10, 30]);
  });
});

describe('the fastest', () => {
  const wanted = [{ id: 'slow' }, { id: 'quick' }];
  const measured = (): TargetLoads => {
    const load = new TargetLoads();
    load.channel('slow').key('a').measured('m', 900, 0);
    load.channel('quick').key('a').measured('m', 100, 0);
    return load;
  };

  test('of two is asked, until so many calls run there that the other would answer sooner', () => {
    const load = measured();
    const pick = () => choiceOf(wanted, { how: 'fastest', load, now: () => 0, random: Math.random }).next();
    const names: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const target = pick();
      if (target === undefined) throw new Error('none');
      load.of(target).enter();
      names.push(nameOf(target));
    }
    expect(names.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => 'quick/a'));
    expect(names.slice(8)).toContain('slow/a');
  });

  test('is found anew: what nobody has measured for long is tried again', () => {
    const load = measured();
    // The quick one is still asked and measured; of the slow one the news are old.
    load.channel('quick').key('a').measured('m', 100, 120_000);
    expect(nameOf(choiceOf(wanted, { how: 'fastest', load, now: () => 120_000 }).next() as never)).toBe(
      'slow/a',
    );
  });
});

describe('an affinity', () => {
  const wanted = [
    { id: 'x', keys: ['a', 'b'], priority: -5 },
    { id: 'y', weight: 1e9 },
  ];

  test('puts its key first, whatever the rank; the others follow', () => {
    expect(all(choiceOf(wanted, { affinity: { channel: 'x', key: 'b' } }))).toEqual(['x/b', 'y/a', 'x/a']);
    expect(
      all(choiceOf(wanted, { affinity: { channel: 'x' } }))
        .slice(0, 2)
        .toSorted(),
    ).toEqual(['x/a', 'x/b']);
  });

  test('gives way while its key is down, and to any key of its channel where the key is gone', () => {
    const health = new FakeHealth();
    health.waits.set('x/b', 10_000);
    expect(all(choiceOf(wanted, { health, affinity: { channel: 'x', key: 'b' } }))).toEqual(['y/a', 'x/a']);
    expect(all(choiceOf(wanted, { affinity: { channel: 'x', key: 'replaced' } }))[0]).toMatch(/^x\//);
  });

  test('gives way to other channels once its channel has failed', () => {
    const affinities: readonly Affinity[] = [{ channel: 'x' }, { channel: 'x', key: 'replaced' }];
    for (const affinity of affinities) {
      const choice = choiceOf(wanted, { affinity });
      const first = choice.next();
      if (first === undefined) throw new Error('none');
      choice.failed(first, 'channel');
      expect([nameOf(first), ...all(choice)].map((name) => name[0])).toEqual(['x', 'y', 'x']);
    }
  });

  test('gives way to other channels when its key comes back after its channel has failed', () => {
    const health = new FakeHealth();
    health.waits.set('x/b', 10_000);
    const near = { id: 'x', keys: ['a', 'b'], priority: 5 };
    const choice = choiceOf([near, { id: 'y' }], { health, affinity: { channel: 'x', key: 'b' } });
    const first = choice.next();
    if (first === undefined) throw new Error('none');
    choice.failed(first, 'channel');
    health.waits.clear();
    expect([nameOf(first), ...all(choice)]).toEqual(['x/a', 'y/a', 'x/b']);
  });

  test('of a channel that serves no such model changes nothing', () => {
    expect(all(choiceOf(wanted, { affinity: { channel: 'gone', key: 'a' } }))).toEqual(all(choiceOf(wanted)));
  });

  test('to the busy key of a channel is to the least busy of them, where none is named', () => {
    const load = new TargetLoads();
    load.channel('x').key('a').enter();
    expect(all(choiceOf(wanted, { load, affinity: { channel: 'x' } }))[0]).toBe('x/b');
  });

  test('with "only" allows nothing else', () => {
    expect(all(choiceOf(wanted, { affinity: { channel: 'x', only: true } })).toSorted()).toEqual([
      'x/a',
      'x/b',
    ]);
    expect(all(choiceOf(wanted, { affinity: { channel: 'x', key: 'b', only: true } }))).toEqual(['x/b']);
    expect(all(choiceOf(wanted, { affinity: { channel: 'gone', only: true } }))).toEqual([]);
  });
});
