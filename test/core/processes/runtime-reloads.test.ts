import { expect, onTestFinished, test, vi } from 'vitest';
import { Follower } from '../../../core/config/runtime-config/follow.ts';
import { createLog } from '../../../core/log.ts';
import { RuntimeReloads, type LeavingWorker } from '../../../core/processes/runtime-reloads.ts';
import { alone, type ReloadOutcome } from '../../../core/state/links/processes.ts';
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
    reloads.ask({ runtimeRevision: 2 }, never),
    reloads.ask({ runtimeRevision: 1 }, never),
  ];
  expect(await isSettled(change)).toBe(false);
  // A revision that runs already may have been put in force a moment ago.
  expect(await isSettled(again)).toBe(false);
  retire();
  expect(await Promise.all([change, again])).toEqual([applied, applied]);
});

test('a change is answered when the gateway stops', async () => {
  const { reloads, stop } = reloadsWith();
  const change = reloads.ask({ runtimeRevision: 2 }, never);
  expect(await isSettled(change)).toBe(false);
  stop();
  expect(await change).toEqual(applied);
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
