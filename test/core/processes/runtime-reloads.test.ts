import { expect, onTestFinished, test, vi } from 'vitest';
import { Follower } from '../../../core/config/runtime-config/follow.ts';
import { createLog } from '../../../core/log.ts';
import { RuntimeReloads, type LeavingWorker } from '../../../core/processes/runtime-reloads.ts';
import { alone, type Processes, type ReloadOutcome } from '../../../core/state/links/processes.ts';
import type { RuntimeConfigStore } from '../../../core/state/runtime-config/index.ts';
import { Upkeep } from '../../../core/state/upkeep.ts';

const applied: ReloadOutcome = { ok: true, problems: [] };

/** Reloads of a primary process with one replaced worker that still listens. */
function reloadsWith() {
  const [retired, ended, stopped] = [
    Promise.withResolvers<void>(),
    Promise.withResolvers<string | number>(),
    Promise.withResolvers<void>(),
  ];
  let revision = 1;
  const worker: LeavingWorker = {
    generation: 1,
    letGo: () => {},
    retired: retired.promise,
    ended: ended.promise,
  };
  const reloads = new RuntimeReloads({
    revision: () => revision,
    reload: async () => {
      revision += 1;
      return applied;
    },
    leaving: () => [worker],
    maxLeaving: 4,
    stopped: stopped.promise,
  });
  return { reloads, retire: () => retired.resolve(), stop: () => stopped.resolve() };
}

/** Says whether a promise is settled after everything else that is due has run. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const later = new Promise((resolve) => setImmediate(resolve, 'later'));
  return (await Promise.race([promise.then(() => 'settled'), later])) === 'settled';
}

const never = (): Promise<ReloadOutcome> => Promise.reject(new Error('it is about the run-time part'));

test('a change is applied when no replaced worker takes connections, not before', async () => {
  const { reloads, retire } = reloadsWith();
  const [change, again] = [
    reloads.reload({ runtimeRevision: 2 }, never),
    reloads.reload({ runtimeRevision: 1 }, never),
  ];
  expect(await isSettled(change)).toBe(false);
  // A revision that runs already may have been put in force a moment ago.
  expect(await isSettled(again)).toBe(false);
  retire();
  expect(await Promise.all([change, again])).toEqual([applied, applied]);
});

test('a change is answered when the gateway stops', async () => {
  const { reloads, stop } = reloadsWith();
  const change = reloads.reload({ runtimeRevision: 2 }, never);
  expect(await isSettled(change)).toBe(false);
  stop();
  expect(await change).toEqual(applied);
});

test('a database that was restored to an older revision is followed, by one reload for all workers', async () => {
  let [running, reloads] = [5, 0];
  const primary = new RuntimeReloads({
    revision: () => running,
    reload: async () => {
      reloads += 1;
      running = 3;
      return applied;
    },
    leaving: () => [],
    maxLeaving: 4,
    stopped: Promise.withResolvers<void>().promise,
  });
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const processes: Processes = { ...alone(), reload: (request = {}) => primary.reload(request, never) };
  const store = { revision: async () => 3 } as unknown as RuntimeConfigStore;
  const parts = { store, processes, upkeep: new Upkeep(), log: createLog('silent') };
  // A change of before the restoration was applied by each of them.
  const followers = [1, 2].map(() => new Follower(parts, () => ({ revision: 5, problems: [] })));
  for (const follower of followers) {
    follower.start();
    onTestFinished(() => follower.stop());
  }
  await followers[0]?.apply(5);
  await vi.advanceTimersByTimeAsync(1_000);
  expect([running, reloads]).toEqual([3, 1]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(reloads).toBe(1);
});

test('a change that is made after a restoration is applied, though its revision was in force before', async () => {
  let [running, reloads] = [5, 0];
  const primary = new RuntimeReloads({
    revision: () => running,
    reload: async () => {
      reloads += 1;
      running = 4;
      return applied;
    },
    leaving: () => [],
    maxLeaving: 4,
    stopped: Promise.withResolvers<void>().promise,
  });
  const processes: Processes = { ...alone(), reload: (request = {}) => primary.reload(request, never) };
  const store = { revision: async () => 4 } as unknown as RuntimeConfigStore;
  const parts = { store, processes, upkeep: new Upkeep(), log: createLog('silent') };
  const follower = new Follower(parts, () => ({ revision: 5, problems: [] }));
  expect(await follower.apply(4)).toEqual(applied);
  expect(reloads).toBe(1);
});

test('a database that does not answer is asked for the revision once, and again when it has answered', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const questions: (() => void)[] = [];
  const store = {
    revision: () => new Promise((resolve) => questions.push(() => resolve(1))),
  } as unknown as RuntimeConfigStore;
  const parts = { store, processes: alone(), upkeep: new Upkeep(), log: createLog('silent') };
  const follower = new Follower(parts, () => ({ revision: 1, problems: [] }));
  follower.start();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(questions.length).toBe(1);
  questions[0]?.();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(questions.length).toBe(2);
  follower.stop();
  questions[1]?.();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(questions.length).toBe(2);
});
