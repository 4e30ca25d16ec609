import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RedisRates } from '../../../../core/money/rates/redis.ts';
import { giveBackScript, renewScript, takeScript } from '../../../../core/money/rates/scripts.ts';
import type { Clock } from '../../../../core/money/ledger/clock.ts';
import type { RatesStore } from '../../../../core/money/rates/store.ts';
import { MemoryRedis } from '../../../simulate/redis.ts';

const lease = 15_000;

/** Workers before one store. The time of all of them is set by the test. */
function world() {
  let now = 1_800_000_000_000;
  const redis = new MemoryRedis(() => now * 1_000);
  const timers = new Map<string, (() => void)[]>();
  const start = (
    process: string,
    afterTake: () => Promise<void> = async () => {},
    afterRenewal: () => void = () => {},
    before?: (script: Parameters<RatesStore['run']>[0]) => Promise<void>,
  ): RedisRates => {
    const own: (() => void)[] = [];
    timers.set(process, own);
    const clock: Clock = {
      now: () => now,
      wall: () => now,
      after: (_, job) => {
        own.push(job);
        return () => {};
      },
    };
    const store: RatesStore = {
      isUp: true,
      async run(script, keys, values) {
        if (before !== undefined) await before(script);
        const reply = redis.run(script.text, keys, values);
        if (script === takeScript) await afterTake();
        if (script === renewScript && keys.length > 0) afterRenewal();
        return reply;
      },
      receive: () => new Promise(() => {}),
      close: async () => {},
    };
    return new RedisRates({ whenDown: 'refuse', times: { lease }, clock, process, connect: () => store });
  };
  return {
    redis,
    start,
    pass: (milliseconds: number) => void (now += milliseconds),
    /** Runs what the process waits to do. */
    tick: (process: string) => {
      for (const job of timers.get(process)?.splice(0) ?? []) job();
    },
  };
}

const slots = [{ subject: 'key:calls', limit: 1 }];
const requests = [{ subject: 'key:requests', limit: 1, cost: 1 }];

test('a call is refused when its process stood still and its slot was given to another call', async () => {
  const { start, pass } = world();
  const other = start('other');
  let stops = 1;
  const stopped = start('stopped', async () => {
    if ((stops -= 1) < 0) return;
    pass(lease + 1);
    expect(await other.take([], slots)).toMatchObject({ allowed: true });
  });
  expect(await stopped.take([], slots)).toMatchObject({ allowed: false, exceeded: 'key:calls' });
});

test('a call is counted once when its process stood still and its slot is free', async () => {
  const { start, pass } = world();
  let stops = 1;
  const stopped = start('stopped', async () => {
    if ((stops -= 1) >= 0) pass(lease + 1);
  });
  const verdict = await stopped.take(requests, slots);
  expect(verdict.allowed).toBe(true);
  expect(await start('other').take([], slots)).toMatchObject({ allowed: false });
  verdict.grant?.release();
  expect(await start('other').take([], slots)).toMatchObject({ allowed: true });
});

test('a call keeps its slot when its process stood still for less than a lease while it renewed the slot', async () => {
  const { start, pass, tick } = world();
  let stops = 1;
  const stopped = start('stopped', undefined, () => {
    if ((stops -= 1) < 0) return;
    pass(0.9 * lease);
    // The timers come before the answer.
    tick('stopped');
  });
  expect(await stopped.take([], slots)).toMatchObject({ allowed: true });
  tick('stopped');
  await setImmediate();
  pass(0.2 * lease);
  expect(await start('other').take([], slots)).toMatchObject({ allowed: false, exceeded: 'key:calls' });
});

test('slots that could not be given back are free only when those that the store has lost are there again', async () => {
  const { redis, start, tick } = world();
  const two = [{ subject: 'key:calls', limit: 2 }];
  const taken: boolean[] = [];
  let cannotGiveBack = false;
  const other = start('other');
  const failed = start('failed', undefined, undefined, async (script) => {
    if (cannotGiveBack && script === giveBackScript) throw new Error('The store cannot be reached.');
    if (script !== renewScript || taken.length > 0) return;
    taken.push((await other.take([], two)).allowed);
    taken.push((await other.take([], two)).allowed);
  });
  const ended = await failed.take([], two);
  const copy = redis.snapshot();
  cannotGiveBack = true;
  ended.grant?.release();
  await setImmediate();
  cannotGiveBack = false;
  expect(await failed.take([], two)).toMatchObject({ allowed: true });
  // Another server takes over, and lacks the latest writes: it knows the call that has ended, and not the one that runs.
  redis.restore(copy);
  tick('failed');
  await setImmediate();
  expect(taken).toEqual([true, false]);
  expect(await other.take([], two)).toMatchObject({ allowed: false });
});
