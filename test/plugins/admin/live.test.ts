import { once } from 'node:events';
import type { PassThrough, Readable } from 'node:stream';
import { definePlugin, type Call } from 'sluice/internal';
import { testPlugins } from 'sluice/testing';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { OnlyPeer } from '../../../core/state/links/peers.ts';
import { LiveCalls } from '../../../plugins/admin/live.ts';
import { liveFrame, type LiveFrame } from '../../../plugins/admin/schemas/index.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Somebody who watches, and may stop reading. */
class Watching {
  text = '';
  readonly #stream: Readable;

  constructor(live: LiveCalls, mayWatch: () => Promise<boolean>) {
    this.#stream = live.watch(undefined, mayWatch);
    this.#stream.on('data', (bytes: Buffer) => (this.text += bytes.toString()));
  }

  stopReading(): void {
    this.#stream.pause();
  }

  leave(): void {
    this.#stream.destroy();
  }

  /** Bytes that wait for it. */
  get waiting(): number {
    const { readableLength, writableLength } = this.#stream as PassThrough;
    return readableLength + writableLength;
  }

  get isOpen(): boolean {
    return !this.#stream.destroyed;
  }

  get frames(): LiveFrame[] {
    return [...this.text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) =>
      liveFrame.parse(JSON.parse(data)),
    );
  }
}

const allowed = () => Promise.resolve(true);

const watch = (live: LiveCalls, mayWatch = allowed): Watching => new Watching(live, mayWatch);

/** Lets pending messages arrive. */
const soon = () => vi.advanceTimersByTimeAsync(1);

/** A gateway's calls, followed by this. */
async function callsOf(live: LiveCalls) {
  const following = definePlugin({
    name: 'following',
    stage: 'observe',
    setup: () => (call: Call, next) => live.follow(call, next),
  });
  const { run, close } = await testPlugins(following);
  onTestFinished(close);
  /** Begins a call that is answered when its client has left. */
  const begin = async (): Promise<() => Promise<unknown>> => {
    const client = new AbortController();
    const { promise: arrived, resolve } = Promise.withResolvers<void>();
    const reply = (): Promise<never> => {
      resolve();
      return new Promise(() => {});
    };
    const running = run({ model: 'm' }, { reply, signal: client.signal });
    await arrived;
    return () => {
      client.abort();
      return running;
    };
  };
  return { run, begin };
}

describe('those who watch', () => {
  test('cost nothing while there are none: no timer runs, and calls are only counted', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const { begin } = await callsOf(live);
    const before = vi.getTimerCount();
    const leave = await begin();
    expect(await live.running()).toBe(1);
    expect(vi.getTimerCount()).toBe(before);
    await leave();
    expect(await live.running()).toBe(0);
    const watching = watch(live);
    expect(vi.getTimerCount()).toBe(before + 2);
    watching.leave();
    await soon();
    expect(vi.getTimerCount()).toBe(before);
  });

  test('are told of a call when it changes, and not again when it does not', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const watching = watch(live);
    await soon();
    const leave = await (await callsOf(live)).begin();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(watching.frames).toMatchObject([
      { running: 0, calls: [] },
      { running: 1, calls: [{ phase: 'waiting', model: 'm' }] },
    ]);
    await leave();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(watching.frames).toHaveLength(3);
    expect(watching.frames[2]).toMatchObject({
      running: 0,
      calls: [{ phase: 'ended', ended: 'left', status: 499 }],
    });
  });

  test('hear something in a silence, and nothing once their login is over', async () => {
    const live = new LiveCalls(new OnlyPeer());
    let loggedIn = true;
    const watching = watch(live, () => Promise.resolve(loggedIn));
    await vi.advanceTimersByTimeAsync(15_000);
    expect(watching.text).toMatch(/\n\n: ping\n\n$/);
    expect(watching.isOpen).toBe(true);
    loggedIn = false;
    await vi.advanceTimersByTimeAsync(15_000);
    expect(watching.isOpen).toBe(false);
  });

  test('are let go of when they read too slowly; others see everything', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const { run } = await callsOf(live);
    const slow = watch(live);
    const quick = watch(live);
    await soon();
    slow.stopReading();
    for (let round = 0; round < 400; round += 1) {
      // oxlint-disable-next-line no-await-in-loop
      await Promise.all(Array.from({ length: 20 }, () => run({ model: `m${round}` })));
      // oxlint-disable-next-line no-await-in-loop
      await vi.advanceTimersByTimeAsync(250);
    }
    expect(slow.isOpen).toBe(false);
    expect(slow.waiting).toBeLessThan(2 * 1024 * 1024);
    expect(quick.isOpen).toBe(true);
    expect(quick.frames.flatMap(({ calls }) => calls)).toHaveLength(8_000);
  });

  test('are told how much was left out when there was too much at once', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const { run } = await callsOf(live);
    const watching = watch(live);
    await soon();
    await Promise.all(Array.from({ length: 800 }, () => run({ model: 'm' })));
    await vi.advanceTimersByTimeAsync(250);
    expect(watching.frames[1]?.calls).toHaveLength(500);
    expect(watching.frames[1]?.skipped).toBe(300);
  });

  test('are few', () => {
    const live = new LiveCalls(new OnlyPeer());
    for (let index = 0; index < 20; index += 1) watch(live);
    expect(() => watch(live)).toThrow(expect.objectContaining({ code: 'server_is_overloaded' }));
  });

  test('are all let go of at the end', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const responses = [watch(live), watch(live)];
    live.close();
    await soon();
    expect(responses.map(({ isOpen }) => isOpen)).toEqual([false, false]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('one busy user leaves room for others who watch', async () => {
  const live = new LiveCalls(new OnlyPeer());
  onTestFinished(() => live.close());
  const open = (actor?: string, organisation?: string) =>
    live.watch(undefined, () => Promise.resolve(true), { actor, organisation });
  const first = open('user 0', 'org_a');
  for (let index = 0; index < 4; index += 1) open('user 0', 'org_a');
  expect(() => open('user 0', 'org_a')).toThrow('You already watch 5 live streams. Close one.');
  for (let index = 0; index < 5; index += 1) open(`user ${index + 1}`, 'org_a');
  expect(() => open('user 9', 'org_a')).toThrow(
    'Your organisation already watches 10 live streams. Close one.',
  );
  for (let index = 0; index < 10; index += 1) open();
  expect(() => open()).toThrow('At most 20');
  first.destroy();
  await once(first, 'close');
  expect(() => open('user 0', 'org_b')).not.toThrow();
});
