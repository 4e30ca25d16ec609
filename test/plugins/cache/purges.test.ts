import { testPlugins, virtualClock } from 'sluice/testing';
import type { PluginTools } from 'sluice';
import { expect, onTestFinished, test } from 'vitest';
import cache from '../../../plugins/cache/index.ts';
import { Purges } from '../../../plugins/cache/purges.ts';

const lifetime = 100_000;

/** Stores of a gateway, and a clock that the test moves. */
async function surroundings(): Promise<{
  readonly stores: PluginTools['stores'];
  readonly clock: ReturnType<typeof virtualClock>;
}> {
  const clock = virtualClock();
  onTestFinished(() => clock.restore());
  const { tools, close } = await testPlugins(cache());
  onTestFinished(() => close());
  return { stores: tools.stores, clock };
}

/** Has a worker read what others have purged. */
async function refreshed(purges: Purges, clock: ReturnType<typeof virtualClock>): Promise<void> {
  await clock.advance(1_100);
  purges.covers({ at: 0, scope: '' });
  await clock.advance(0);
}

const entry = (scope = 'key:a', at = Date.now()) => ({ scope, at });

test('marks that were read before a purge do not undo it', async () => {
  const { stores, clock } = await surroundings();
  await new Purges(lifetime, stores).note('key:b');
  const late = Promise.withResolvers<void>();
  let isLate = false;
  const slow: PluginTools['stores'] = {
    ...stores,
    namespace: (name) => {
      const kept = stores.namespace<never>(name);
      return Object.assign(Object.create(kept) as typeof kept, {
        async get(key: string) {
          const value = await kept.get(key);
          if (isLate) await late.promise;
          return value;
        },
      });
    },
  };
  const purges = new Purges(lifetime, slow);
  await refreshed(purges, clock);
  isLate = true;
  const old = entry();
  await refreshed(purges, clock);
  await purges.note('key:a');
  late.resolve();
  await clock.advance(10);
  expect(purges.covers(old)).toBe(true);
});

test('purges of several workers at once are all kept, and those of everything stay', async () => {
  const { stores, clock } = await surroundings();
  const workers = Array.from({ length: 4 }, () => new Purges(lifetime, stores));
  await clock.advance(10);
  const olds = workers.map((_, index) => entry(`key:${index}`));
  await Promise.all(workers.map((worker, index) => worker.note(`key:${index}`)));
  for (const worker of workers) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await refreshed(worker, clock);
    expect(olds.map((old) => worker.covers(old))).toEqual(olds.map(() => true));
    expect(worker.covers(entry())).toBe(false);
  }
});

test('the purge of a worker whose clock is behind takes nothing back', async () => {
  const { stores, clock } = await surroundings();
  const [one, other] = [new Purges(lifetime, stores), new Purges(lifetime, stores)];
  await clock.advance(60_000);
  const old = entry();
  await one.note(undefined);
  const now = Date.now;
  Date.now = () => now() - 30_000;
  await other.note(undefined).finally(() => (Date.now = now));
  await refreshed(one, clock);
  for (const purges of [one, other, new Purges(lifetime, stores)]) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await refreshed(purges, clock);
    expect(purges.covers(old)).toBe(true);
  }
});

test('with more scopes than are remembered everything is purged', async () => {
  const { stores } = await surroundings();
  const purges = new Purges(lifetime, stores);
  const old = entry('key:other');
  for (let index = 0; index < 1_000; index += 1)
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    await purges.note(`key:${index}`);
  expect(purges.covers(old)).toBe(false);
  await purges.note('key:last');
  expect(purges.covers(old)).toBe(true);
});
