import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
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

/** A response whose reader may stop reading. */
class FakeResponse extends EventEmitter {
  text = '';
  writable = true;
  writableLength = 0;
  reads = true;

  writeHead(): void {}

  write(text: string): void {
    this.text += text;
    if (!this.reads) this.writableLength += text.length;
  }

  end(): void {
    this.destroy();
  }

  destroy(): void {
    if (!this.writable) return;
    this.writable = false;
    this.emit('close');
  }

  get frames(): LiveFrame[] {
    return [...this.text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) =>
      liveFrame.parse(JSON.parse(data)),
    );
  }
}

const allowed = () => Promise.resolve(true);

function watching(live: LiveCalls, mayWatch = allowed): FakeResponse {
  const response = new FakeResponse();
  live.watch(response as unknown as ServerResponse, mayWatch);
  return response;
}

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
    const response = watching(live);
    expect(vi.getTimerCount()).toBe(2);
    response.destroy();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('are told of a call when it changes, and not again when it does not', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const response = watching(live);
    await soon();
    const { call, exchange } = testCall({ model: 'm' });
    void live.follow(call, waiting);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(response.frames).toMatchObject([
      { running: 0, calls: [] },
      { running: 1, calls: [{ id: 'req_test', phase: 'waiting', model: 'm' }] },
    ]);
    exchange.end();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(response.frames).toHaveLength(3);
    expect(response.frames[2]).toMatchObject({
      running: 0,
      calls: [{ phase: 'ended', ended: 'left', status: 499 }],
    });
  });

  test('hear something in a silence, and nothing once their login is over', async () => {
    const live = new LiveCalls(new OnlyPeer());
    let loggedIn = true;
    const response = watching(live, () => Promise.resolve(loggedIn));
    await vi.advanceTimersByTimeAsync(15_000);
    expect(response.text).toMatch(/\n\n: ping\n\n$/);
    expect(response.writable).toBe(true);
    loggedIn = false;
    await vi.advanceTimersByTimeAsync(15_000);
    expect(response.writable).toBe(false);
  });

  test('are let go of when they read too slowly; others see everything', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const slow = watching(live);
    const quick = watching(live);
    await soon();
    slow.reads = false;
    for (let round = 0; round < 400; round += 1) {
      for (let index = 0; index < 20; index += 1) {
        const { call, exchange } = testCall({ model: `m${round}` });
        void live.follow(call, answering());
        exchange.end();
      }
      // oxlint-disable-next-line no-await-in-loop
      await vi.advanceTimersByTimeAsync(250);
    }
    expect(slow.writable).toBe(false);
    expect(slow.writableLength).toBeLessThan(2 * 1024 * 1024);
    expect(quick.writable).toBe(true);
    expect(quick.frames.flatMap(({ calls }) => calls)).toHaveLength(8_000);
  });

  test('are told how much was left out when there was too much at once', async () => {
    const live = new LiveCalls(new OnlyPeer());
    const response = watching(live);
    await soon();
    for (let index = 0; index < 800; index += 1) {
      const { call, exchange } = testCall({ model: 'm' });
      void live.follow(call, answering());
      exchange.end();
    }
    await vi.advanceTimersByTimeAsync(250);
    expect(response.frames[1]?.calls).toHaveLength(500);
    expect(response.frames[1]?.skipped).toBe(300);
  });

  test('are few', () => {
    const live = new LiveCalls(new OnlyPeer());
    for (let index = 0; index < 20; index += 1) watching(live);
    expect(() => watching(live)).toThrow(expect.objectContaining({ code: 'server_is_overloaded' }));
  });

  test('are all let go of at the end', () => {
    const live = new LiveCalls(new OnlyPeer());
    const responses = [watching(live), watching(live)];
    live.close();
    expect(responses.map(({ writable }) => writable)).toEqual([false, false]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
