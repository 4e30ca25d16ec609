import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  HealthServer,
  primarySharing,
  type HealthLine,
  type HealthNews,
  type HealthWord,
} from '../../../../core/routing/health/primary.ts';
import type { SharedBreaker } from '../../../../core/routing/health/sharing.ts';

const place = (channel: string, state: Partial<SharedBreaker> = {}): SharedBreaker => ({
  name: { channel, key: 'first' },
  cool: 0,
  rest: 0,
  rests: 0,
  base: 0,
  ...state,
});
const namesIn = (news: HealthNews | undefined): readonly string[] =>
  news?.kind === 'heard' ? news.places.map(({ name }) => name.channel) : [];

/** What workers say to the process that started them, and what each of them is told. */
function workers() {
  const clock = { now: 1_000 };
  const server = new HealthServer(() => clock.now);
  const told = new Map<number, HealthNews[]>();
  const say = (member: number, word: HealthWord): void => {
    const news = told.get(member) ?? [];
    told.set(member, news);
    server.receive(member, word, (one) => news.push(one));
  };
  return {
    clock,
    server,
    join: (member: number): HealthNews | undefined => {
      say(member, { kind: 'join' });
      return told.get(member)?.pop();
    },
    tell: (member: number, ...places: readonly SharedBreaker[]) => say(member, { kind: 'tell', places }),
    release: (member: number, channel: string) =>
      say(member, { kind: 'release', name: { channel, key: 'first' } }),
    /** Milliseconds until it may have the claim, 0 where it has it now. */
    claim: (member: number, channel: string, lease = 5_000): number | undefined => {
      say(member, { kind: 'claim', id: 1, name: { channel, key: 'first' }, lease });
      const news = told.get(member)?.pop();
      return news?.kind === 'turn' ? news.wait : undefined;
    },
    heard: (member: number): HealthNews[] => told.get(member)?.splice(0) ?? [],
  };
}

describe('what workers tell of places', () => {
  test('goes to all others that have joined, and not back to who told it', () => {
    const { join, tell, heard, server } = workers();
    for (const member of [1, 2, 3]) join(member);
    tell(1, place('x', { cool: 5_000 }));
    expect([heard(1), namesIn(heard(2)[0]), namesIn(heard(3)[0])]).toEqual([[], ['x'], ['x']]);
    server.forget(3);
    tell(1, place('y', { cool: 5_000 }));
    expect([namesIn(heard(2)[0]), heard(3)]).toEqual([['y'], []]);
  });

  test('is known to those that join later, with what is left of it', () => {
    const { join, tell, clock } = workers();
    expect(join(1)).toBeUndefined();
    tell(1, place('cools', { cool: 5_000 }), place('rests', { rest: 4_000, rests: 2, base: 2_000 }));
    clock.now += 3_000;
    expect(join(2)).toEqual({
      kind: 'heard',
      places: [place('cools', { cool: 2_000 }), place('rests', { rest: 1_000, rests: 2, base: 2_000 })],
    });
    clock.now += 2_000;
    // A rest goes on until a probe is answered; a limit is over by itself.
    expect(join(3)).toEqual({ kind: 'heard', places: [place('rests', { rests: 2, base: 2_000 })] });
  });

  test('is forgotten when it is over, and when nobody has said anything of it for an hour', () => {
    const { join, tell, clock } = workers();
    tell(1, place('x', { rest: 4_000, rests: 1, base: 4_000 }), place('y', { cool: 9_000_000 }));
    tell(1, place('x'));
    expect(namesIn(join(2))).toEqual(['y']);
    clock.now += 3_600_000;
    expect(namesIn(join(2))).toEqual(['y']);
    clock.now += 1;
    expect(join(2)).toBeUndefined();
  });

  test('is kept of those that changed last where there are too many', () => {
    const { join, tell } = workers();
    const cooling = (number: number) => place(`c${number}`, { cool: 60_000 });
    for (let number = 0; number < 5_000; number += 1) tell(1, cooling(number));
    tell(1, cooling(0));
    tell(1, cooling(5_000));
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
    const { claim, release, clock } = workers();
    expect([claim(1, 'x'), claim(2, 'x'), claim(2, 'y')]).toEqual([0, 5_000, 0]);
    clock.now += 4_999.5;
    expect(claim(2, 'x')).toBe(1);
    clock.now += 1;
    expect([claim(2, 'x'), claim(1, 'x')]).toEqual([0, 5_000]);
    release(1, 'x');
    expect(claim(1, 'x')).toBe(5_000);
    release(2, 'x');
    expect(claim(1, 'x')).toBe(0);
  });

  test('becomes longer when its worker asks again', () => {
    const { claim, clock } = workers();
    claim(1, 'x');
    expect(claim(1, 'x', 60_000)).toBe(0);
    clock.now += 10_000;
    expect(claim(2, 'x')).toBe(50_000);
  });

  test('of a worker that has ended is free, those of others are not', () => {
    const { claim, server } = workers();
    claim(1, 'x');
    claim(2, 'y');
    server.forget(1);
    expect([claim(3, 'x'), claim(3, 'y')]).toEqual([0, 5_000]);
  });

  test('is that of a key, a model, or nothing else', () => {
    const { server } = workers();
    const waits: number[] = [];
    const ask = (member: number, model?: string): void =>
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
    ask(1);
    ask(2, 'a');
    ask(3, 'b');
    ask(3, 'a');
    expect(waits).toEqual([0, 0, 0, 5_000]);
  });

  test('is remembered of those that were asked for last where there are too many', () => {
    const { claim } = workers();
    for (let number = 0; number < 5_000; number += 1) claim(1, `c${number}`);
    claim(1, 'c0');
    expect(claim(2, 'c0')).toBe(5_000);
    claim(1, 'c5000');
    expect([claim(2, 'c0'), claim(2, 'c1')]).toEqual([5_000, 0]);
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
    const heard: SharedBreaker[] = [];
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
      adopt: (one) => heard.push(one),
      known: () => known,
      tick: () => void (ticks += 1),
    });
    return {
      sharing,
      state,
      heard,
      news: (news: HealthNews) => listener(news),
      ticks: () => ticks,
      /** What was sent since the last time. */
      sent: () => words.splice(0),
    };
  }
  const told = (words: readonly HealthWord[]): unknown[] =>
    words.map((word) => (word.kind === 'tell' ? word.places.map(({ name }) => name.channel) : word.kind));
  /** Promises that are due. */
  const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);

  test('joins, and is told what others find out', () => {
    const { sharing, sent, news, heard } = worker();
    expect([told(sent()), sharing.isUp]).toEqual([['join'], true]);
    news({ kind: 'heard', places: [place('x', { cool: 1 }), place('y', { cool: 1 })] });
    expect(heard.map(({ name }) => name.channel)).toEqual(['x', 'y']);
  });

  test('tells a change at once, and what changes right behind it together, each place once', async () => {
    const { sharing, sent } = worker();
    sent();
    sharing.publish(place('x', { cool: 1 }));
    sharing.publish(place('y', { cool: 1 }));
    expect(sent()).toEqual([]);
    await settle();
    expect(told(sent())).toEqual([['x', 'y']]);
    sharing.publish(place('x', { cool: 2 }));
    await settle();
    sharing.publish(place('z', { cool: 1 }));
    sharing.publish(place('x', { cool: 3 }));
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
    sharing.publish(place('x', { cool: 4 }));
    await settle();
    expect(told(sent())).toEqual([['x']]);
  });

  test('tells of a reset also where the place has changed again before that was told', async () => {
    const { sharing, sent } = worker();
    sent();
    sharing.publish(place('x', { forgotten: true }));
    sharing.publish(place('x', { cool: 9 }));
    sharing.publish(place('y', { cool: 9 }));
    await settle();
    expect(sent()).toEqual([
      { kind: 'tell', places: [place('x', { cool: 9, forgotten: true }), place('y', { cool: 9 })] },
    ]);
  });

  test('tells what a probe has found out before it gives the claim back', async () => {
    const { sharing, sent } = worker();
    sent();
    sharing.publish(place('x'));
    sharing.release({ channel: 'x', key: 'first' });
    expect(told(sent())).toEqual([['x'], 'release']);
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
    const ask = (): void =>
      void sharing.acquire({ channel: 'x', key: 'first' }, 7).then((wait) => {
        if (wait === undefined) refused += 1;
      });
    for (let count = 0; count < 1_001; count += 1) ask();
    await settle();
    expect([sent().length, refused]).toEqual([1_000, 1]);
    expect(sharing.isUp).toBe(true);
    await sharing.close();
  });

  test('keeps nothing while the line is cut, and tells all that holds once it hears again', async () => {
    const { sharing, state, sent, news, ticks } = worker([place('known', { cool: 5 })]);
    sent();
    state.cut = true;
    sharing.publish(place('lost', { cool: 5 }));
    await settle();
    expect(sharing.isUp).toBe(false);
    expect(await sharing.acquire({ channel: 'x', key: 'first' }, 7)).toBeUndefined();
    sharing.publish(place('unheard', { cool: 5 }));
    await vi.advanceTimersByTimeAsync(1_200);
    expect(ticks()).toBe(0);
    state.cut = false;
    news({ kind: 'heard', places: [] });
    await vi.advanceTimersByTimeAsync(25);
    expect([sharing.isUp, told(sent())]).toEqual([true, [['known']]]);
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
    sharing.publish(place('last', { cool: 5 }));
    await sharing.close();
    expect([await open, told(sent())]).toEqual([undefined, ['claim', ['last']]]);
    await vi.advanceTimersByTimeAsync(5_000);
    expect([ticks(), vi.getTimerCount(), sent()]).toEqual([2, 0, []]);
  });
});
