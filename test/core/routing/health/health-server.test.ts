import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  HealthServer,
  primarySharing,
  type HealthLine,
  type HealthNews,
  type HealthWord,
} from '../../../../core/routing/health/primary.ts';
import type { SharedBreaker } from '../../../../core/routing/health/sharing.ts';

const breaker = (channel: string, state: Partial<SharedBreaker> = {}): SharedBreaker => ({
  name: { channel, key: 'first' },
  cool: 0,
  rest: 0,
  rests: 0,
  base: 0,
  ...state,
});
const namesIn = (news: HealthNews | undefined): readonly string[] =>
  news?.kind === 'heard' ? news.places.map(({ name }) => name.channel) : [];

/** Creates workers that exchange messages with the primary process. */
function workers() {
  const clock = { now: 1_000 };
  const server = new HealthServer(() => clock.now);
  const inboxes = new Map<number, HealthNews[]>();
  const send = (member: number, word: HealthWord): void => {
    const news = inboxes.get(member) ?? [];
    inboxes.set(member, news);
    server.receive(member, word, (one) => news.push(one));
  };
  return {
    clock,
    server,
    join: (member: number): HealthNews | undefined => {
      send(member, { kind: 'join' });
      return inboxes.get(member)?.pop();
    },
    publish: (member: number, ...places: readonly SharedBreaker[]) => send(member, { kind: 'tell', places }),
    release: (member: number, channel: string) =>
      send(member, { kind: 'release', name: { channel, key: 'first' } }),
    /** Milliseconds until it may have the claim, 0 where it has it now. */
    acquire: (member: number, channel: string, lease = 5_000): number | undefined => {
      send(member, { kind: 'claim', id: 1, name: { channel, key: 'first' }, lease });
      const news = inboxes.get(member)?.pop();
      return news?.kind === 'turn' ? news.wait : undefined;
    },
    received: (member: number): HealthNews[] => inboxes.get(member)?.splice(0) ?? [],
  };
}

describe('what workers tell of places', () => {
  test('goes to all others that have joined, and not back to who told it', () => {
    const { join, publish, received, server } = workers();
    for (const member of [1, 2, 3]) join(member);
    publish(1, breaker('x', { cool: 5_000 }));
    expect([received(1), namesIn(received(2)[0]), namesIn(received(3)[0])]).toEqual([[], ['x'], ['x']]);
    server.forget(3);
    publish(1, breaker('y', { cool: 5_000 }));
    expect([namesIn(received(2)[0]), received(3)]).toEqual([['y'], []]);
  });

  test('is known to those that join later, with what is left of it', () => {
    const { join, publish, clock } = workers();
    expect(join(1)).toBeUndefined();
    publish(1, breaker('cools', { cool: 5_000 }), breaker('rests', { rest: 4_000, rests: 2, base: 2_000 }));
    clock.now += 3_000;
    expect(join(2)).toEqual({
      kind: 'heard',
      places: [breaker('cools', { cool: 2_000 }), breaker('rests', { rest: 1_000, rests: 2, base: 2_000 })],
    });
    clock.now += 2_000;
    // A rest goes on until a probe is answered; a limit is over by itself.
    expect(join(3)).toEqual({ kind: 'heard', places: [breaker('rests', { rests: 2, base: 2_000 })] });
  });

  test('is forgotten when it is over, and when nobody has said anything of it for an hour', () => {
    const { join, publish, clock } = workers();
    publish(1, breaker('x', { rest: 4_000, rests: 1, base: 4_000 }), breaker('y', { cool: 9_000_000 }));
    publish(1, breaker('x'));
    expect(namesIn(join(2))).toEqual(['y']);
    clock.now += 3_600_000;
    expect(namesIn(join(2))).toEqual(['y']);
    clock.now += 1;
    expect(join(2)).toBeUndefined();
  });

  test('is kept of those that changed last where there are too many', () => {
    const { join, publish } = workers();
    const cooling = (number: number) => breaker(`c${number}`, { cool: 60_000 });
    for (let number = 0; number < 5_000; number += 1) publish(1, cooling(number));
    publish(1, cooling(0));
    publish(1, cooling(5_000));
    const known = namesIn(join(2));
    expect(known).toHaveLength(5_000);
    expect([known.includes('c0'), known.includes('c1'), known.includes('c5000')]).toEqual([
      true,
      false,
      true,
    ]);
  });
});

describe('the claim to probe a place', () => {
  test('belongs to one worker until its time is over or it gives it back', () => {
    const { acquire, release, clock } = workers();
    expect([acquire(1, 'x'), acquire(2, 'x'), acquire(2, 'y')]).toEqual([0, 5_000, 0]);
    clock.now += 4_999.5;
    expect(acquire(2, 'x')).toBe(1);
    clock.now += 1;
    expect([acquire(2, 'x'), acquire(1, 'x')]).toEqual([0, 5_000]);
    release(1, 'x');
    expect(acquire(1, 'x')).toBe(5_000);
    release(2, 'x');
    expect(acquire(1, 'x')).toBe(0);
  });

  test('becomes longer when its worker asks again', () => {
    const { acquire, clock } = workers();
    acquire(1, 'x');
    expect(acquire(1, 'x', 60_000)).toBe(0);
    clock.now += 10_000;
    expect(acquire(2, 'x')).toBe(50_000);
  });

  test('of a worker that has ended is free, those of others are not', () => {
    const { acquire, server } = workers();
    acquire(1, 'x');
    acquire(2, 'y');
    server.forget(1);
    expect([acquire(3, 'x'), acquire(3, 'y')]).toEqual([0, 5_000]);
  });

  test('is that of a key, a model, or nothing else', () => {
    const { server } = workers();
    const waits: number[] = [];
    const reset = (member: number, model?: string): void =>
      server.receive(
        member,
        {
          kind: 'claim',
          id: 1,
          name: { channel: 'x', key: 'first', ...(model === undefined ? {} : { model }) },
          lease: 5_000,
        },
        (news) => {
          if (news.kind === 'turn') waits.push(news.wait);
        },
      );
    reset(1);
    reset(2, 'a');
    reset(3, 'b');
    reset(3, 'a');
    expect(waits).toEqual([0, 0, 0, 5_000]);
  });

  test('is remembered of those that were asked for last where there are too many', () => {
    const { acquire } = workers();
    for (let number = 0; number < 5_000; number += 1) acquire(1, `c${number}`);
    acquire(1, 'c0');
    expect(acquire(2, 'c0')).toBe(5_000);
    acquire(1, 'c5000');
    expect([acquire(2, 'c0'), acquire(2, 'c1')]).toEqual([5_000, 0]);
  });
});

describe('a worker that shares health with the others', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A worker's sharing, and the line on which the test answers. */
  function worker(known: readonly SharedBreaker[] = []) {
    const words: HealthWord[] = [];
    const adopted: SharedBreaker[] = [];
    let listener: (news: HealthNews) => void = () => {};
    let ticks = 0;
    const state = { cut: false };
    const line: HealthLine = {
      send: (word) => {
        if (state.cut) return false;
        words.push(word);
        return true;
      },
      listen: (one) => (listener = one),
    };
    const sharing = primarySharing(line)({
      adopt: (one) => adopted.push(one),
      known: () => known,
      tick: () => void (ticks += 1),
    });
    return {
      sharing,
      state,
      adopted,
      news: (news: HealthNews) => listener(news),
      ticks: () => ticks,
      /** Returns the messages since the last call. */
      sent: () => words.splice(0),
    };
  }
  const summarize = (words: readonly HealthWord[]): unknown[] =>
    words.map((word) => (word.kind === 'tell' ? word.places.map(({ name }) => name.channel) : word.kind));
  /** Promises that are due. */
  const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

  test('joins, and is told what others find out', () => {
    const { sharing, sent, news, adopted } = worker();
    expect([summarize(sent()), sharing.isUp]).toEqual([['join'], true]);
    news({ kind: 'heard', places: [breaker('x', { cool: 1 }), breaker('y', { cool: 1 })] });
    expect(adopted.map(({ name }) => name.channel)).toEqual(['x', 'y']);
  });

  test('tells a change at once, and what changes right behind it together, each place once', async () => {
    const { sharing, sent } = worker();
    sent();
    sharing.publish(breaker('x', { cool: 1 }));
    sharing.publish(breaker('y', { cool: 1 }));
    expect(sent()).toEqual([]);
    await settle();
    expect(summarize(sent())).toEqual([['x', 'y']]);
    sharing.publish(breaker('x', { cool: 2 }));
    await settle();
    sharing.publish(breaker('z', { cool: 1 }));
    sharing.publish(breaker('x', { cool: 3 }));
    await vi.advanceTimersByTimeAsync(24);
    expect(sent()).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    const [word, ...more] = sent();
    expect([
      word?.kind === 'tell' && word.places.map(({ name, cool }) => [name.channel, cool]),
      more,
    ]).toEqual([
      [
        ['x', 3],
        ['z', 1],
      ],
      [],
    ]);
    // After a pause the next change goes out at once again.
    await vi.advanceTimersByTimeAsync(25);
    sharing.publish(breaker('x', { cool: 4 }));
    await settle();
    expect(summarize(sent())).toEqual([['x']]);
  });

  test('tells of a reset also where the place has changed again before that was told', async () => {
    const { sharing, sent } = worker();
    sent();
    sharing.publish(breaker('x', { forgotten: true }));
    sharing.publish(breaker('x', { cool: 9 }));
    sharing.publish(breaker('y', { cool: 9 }));
    await settle();
    expect(sent()).toEqual([
      { kind: 'tell', places: [breaker('x', { cool: 9, forgotten: true }), breaker('y', { cool: 9 })] },
    ]);
  });

  test('tells what a probe has found out before it gives the claim back', async () => {
    const { sharing, sent } = worker();
    sent();
    sharing.publish(breaker('x'));
    sharing.release({ channel: 'x', key: 'first' });
    expect(summarize(sent())).toEqual([['x'], 'release']);
    await settle();
    expect(sent()).toEqual([]);
  });

  test('resolves each claim with its own answer, and takes one without an answer for no answer at all', async () => {
    const { sharing, sent, news } = worker();
    const waits: unknown[] = [];
    for (const channel of ['x', 'y'])
      void sharing.acquire({ channel, key: 'first' }, 7).then((wait) => waits.push([channel, wait]));
    const ids = sent().flatMap((word) => (word.kind === 'claim' ? [word.id] : []));
    expect(new Set(ids).size).toBe(2);
    news({ kind: 'turn', id: ids[1] ?? 0, wait: 12 });
    news({ kind: 'turn', id: 999, wait: 5 });
    await vi.advanceTimersByTimeAsync(999);
    expect([waits, sharing.isUp, sent()]).toEqual([[['y', 12]], true, []]);
    await vi.advanceTimersByTimeAsync(1);
    expect([waits, sharing.isUp]).toEqual([
      [
        ['y', 12],
        ['x', undefined],
      ],
      false,
    ]);
    // What comes too late is not taken.
    expect(sent()).toEqual([{ kind: 'release', name: { channel: 'x', key: 'first' } }]);
  });

  test('asks for no more than a thousand claims at a time', async () => {
    const { sharing, sent } = worker();
    sent();
    let refused = 0;
    const acquire = (): void =>
      void sharing.acquire({ channel: 'x', key: 'first' }, 7).then((wait) => {
        if (wait === undefined) refused += 1;
      });
    for (let count = 0; count < 1_001; count += 1) acquire();
    await settle();
    expect([sent().length, refused]).toEqual([1_000, 1]);
    expect(sharing.isUp).toBe(true);
    await sharing.close();
  });

  test('keeps nothing while the line is cut, and tells all that holds once it hears again', async () => {
    const { sharing, state, sent, news, ticks } = worker([breaker('known', { cool: 5 })]);
    sent();
    state.cut = true;
    sharing.publish(breaker('lost', { cool: 5 }));
    await settle();
    expect(sharing.isUp).toBe(false);
    expect(await sharing.acquire({ channel: 'x', key: 'first' }, 7)).toBeUndefined();
    sharing.publish(breaker('unheard', { cool: 5 }));
    await vi.advanceTimersByTimeAsync(1_200);
    expect(ticks()).toBe(0);
    state.cut = false;
    news({ kind: 'heard', places: [] });
    await vi.advanceTimersByTimeAsync(25);
    expect([sharing.isUp, summarize(sent())]).toEqual([true, [['known']]]);
    // Hearing more is nothing new.
    news({ kind: 'heard', places: [] });
    await vi.advanceTimersByTimeAsync(50);
    expect(sent()).toEqual([]);
  });

  test('looks at places that rest a few times a second, until it is closed', async () => {
    const { sharing, sent, ticks } = worker();
    sent();
    await vi.advanceTimersByTimeAsync(399);
    expect(ticks()).toBe(0);
    await vi.advanceTimersByTimeAsync(401);
    expect(ticks()).toBe(2);
    const open = sharing.acquire({ channel: 'x', key: 'first' }, 7);
    sharing.publish(breaker('last', { cool: 5 }));
    await sharing.close();
    expect([await open, summarize(sent())]).toEqual([undefined, ['claim', ['last']]]);
    await vi.advanceTimersByTimeAsync(5_000);
    expect([ticks(), vi.getTimerCount(), sent()]).toEqual([2, 0, []]);
  });
});
