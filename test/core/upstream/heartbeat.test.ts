import { beforeEach, describe, expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { Heartbeat } from '../../../core/upstream/heartbeat.ts';

const silence = 1_000;
let pings: number;
let isPaused: boolean;
let heartbeat: Heartbeat;
/** Time of the last message at the first heartbeat. */
const start = 10_000_000;

beforeEach(() => {
  pings = 0;
  isPaused = false;
  const socket = {
    get isPaused() {
      return isPaused;
    },
    ping: () => void (pings += 1),
  };
  heartbeat = new Heartbeat(socket as unknown as WebSocket, silence);
  heartbeat.beat(start);
});

describe('the other side of a socket', () => {
  test('is asked once after a silence, again after another, and given up after a third', () => {
    expect([heartbeat.beat(start + silence - 1), pings]).toEqual([true, 0]);
    expect([heartbeat.beat(start + silence), pings]).toEqual([true, 1]);
    expect([heartbeat.beat(start + 2 * silence - 1), pings]).toEqual([true, 1]);
    expect([heartbeat.beat(start + 2 * silence), pings]).toEqual([true, 2]);
    expect([heartbeat.beat(start + 3 * silence - 1), pings]).toEqual([true, 2]);
    expect([heartbeat.beat(start + 3 * silence), pings]).toEqual([false, 2]);
  });

  test('is there again when anything is heard of it, and all begins anew', () => {
    heartbeat.beat(start + silence);
    heartbeat.beat(start + 2 * silence);
    heartbeat.received();
    const again = start + 2 * silence + 10;
    expect([heartbeat.beat(again), pings]).toEqual([true, 2]);
    expect([heartbeat.beat(again + silence - 1), pings]).toEqual([true, 2]);
    expect([heartbeat.beat(again + silence), pings]).toEqual([true, 3]);
    expect(heartbeat.beat(again + 2 * silence)).toBe(true);
    expect(heartbeat.beat(again + 3 * silence)).toBe(false);
  });

  test('is not asked while its answer would not be read', () => {
    isPaused = true;
    expect([heartbeat.beat(start + 9 * silence), pings]).toEqual([true, 0]);
    isPaused = false;
    expect([heartbeat.beat(start + 9 * silence), pings]).toEqual([true, 1]);
  });
});
