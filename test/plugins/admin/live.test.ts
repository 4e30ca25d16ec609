import type { PassThrough, Readable } from 'node:stream';
import { NEVER } from 'rxjs';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { OnlyPeer } from '../../../core/state/links/peers.ts';
import { LiveCalls } from '../../../plugins/admin/live.ts';
import { liveFrame, type LiveFrame } from '../../../plugins/admin/schemas.ts';
import { answering, testCall } from '../_call.ts';

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
    this.#stream = live.watch(mayWatch);
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

/** What is on its way arrives. */
const soon = () => vi.advanceTimersByTimeAsync(1);

const waiting = () => Promise.resolve(NEVER);

describe('those who watch', () => {
  test('cost nothing while there are none: no timer runs, and calls are only counted', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const { call, exchange } = testCall({ model: 'm' });
    void live.follow(call, waiting);
    expect(await live.running()).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
    exchange.end();
    expect(await live.running()).toBe(0);
    const watching = watch(live);
    expect(vi.getTimerCount()).toBe(2);
    watching.leave();
    await soon();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('are told of a call when it changes, and not again when it does not', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const watching = watch(live);
    await soon();
    const { call, exchange } = testCall({ model: 'm' });
    void live.follow(call, waiting);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(watching.frames).toMatchObject([
      { running: 0, calls: [] },
      { running: 1, calls: [{ id: 'req_test', phase: 'waiting', model: 'm' }] },
    ]);
    exchange.end();
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
    const slow = watch(live);
    const quick = watch(live);
    await soon();
    slow.stopReading();
    for (let round = 0; round < 400; round += 1) {
      for (let index = 0; index < 20; index += 1) {
        const { call, exchange } = testCall({ model: `m${round}` });
        void live.follow(call, answering());
        exchange.end();
      }
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
    const watching = watch(live);
    await soon();
    for (let index = 0; index < 800; index += 1) {
      const { call, exchange } = testCall({ model: 'm' });
      void live.follow(call, answering());
      exchange.end();
    }
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
