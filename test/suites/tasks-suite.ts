import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openLedger } from '../../core/money/ledger/open.ts';
import { type Ledger, type Settlement } from '../../core/money/ledger/index.ts';
import { rows, sqlOf } from '../../core/state/database/sql.ts';
import { openStores, type Stores } from '../../core/state/stores.ts';
import { openTaskStore, type TaskStore } from '../../core/money/tasks.ts';
import { openUsageLog } from '../../core/money/usage-log/open.ts';
import { abandon, advance, type Task } from '../../core/model/tasks.ts';
import { settlementOf } from './ledger-suite.ts';

const budgets = [{ unit: 'micro-dollar', period: 'total', amount: 1e12 }] as const;
let count = 0;

/** Contract of every task store. Several stores on one database stand for several gateways. */
export function tasksSuite(newUrl: () => string | Promise<string>): void {
  let opened: Stores[];
  let closers: (() => void)[];
  let url: string;
  let first: TaskStore;
  let second: TaskStore;
  let ledger: Ledger;
  const reports: Error[] = [];

  const open = (): { readonly store: TaskStore; readonly ledger: Ledger; readonly stores: Stores } => {
    const stores = openStores(url);
    opened.push(stores);
    const own = openLedger(stores);
    const store = openTaskStore(
      { stores, ledger: own },
      (error) => reports.push(error),
      (job) => closers.push(job),
    );
    return { store, ledger: own, stores };
  };
  beforeEach(async () => {
    opened = [];
    closers = [];
    url = await newUrl();
    ({ store: first, ledger } = open());
    ({ store: second } = open());
  });
  afterEach(async () => {
    for (const close of closers) close();
    await Promise.all(opened.map((stores) => stores.close()));
    expect(reports).toEqual([]);
  });

  const newTask = (given: Partial<Task> = {}): Task => {
    count += 1;
    const now = Date.now();
    return {
      id: `video_${count}`,
      owner: `key_${count}`,
      format: 'videos',
      createdAt: now,
      updatedAt: now,
      expiresAt: now + 1e9,
      deadline: now + 1e8,
      state: 'queued',
      progress: 0,
      model: 'm',
      upstreamModel: 'theirs',
      channel: 'c',
      key: 'k',
      upstreamFormat: 'videos',
      upstreamId: 'up',
      handle: { deep: { er: [1, null, 'x'] } },
      images: 2,
      prompt: 'the \u{1F315} moon\0',
      charged: { microDollars: 500, tokens: 3 },
      chargedAt: now,
      chargeId: `req_${count}`,
      polledAt: now,
      asks: 0,
      refusals: 0,
      ...given,
    };
  };
  const lease = (name: string, milliseconds = 600_000) => ({ name, milliseconds });
  const charge = ({ owner }: Task): Settlement => settlementOf(owner, undefined, 500, 3);
  const refund = (task: Task): Settlement => {
    const settlement = settlementOf(task.owner, undefined, 500, 3);
    return {
      ...settlement,
      refundOf: task.chargedAt,
      record: { ...settlement.record, id: `refund_${task.id}`, microDollars: -500 },
    };
  };
  const spent = async (owner: string): Promise<number | undefined> =>
    (await ledger.states(owner, budgets))[0]?.spent;

  describe('a task', () => {
    test('is kept with its charge, both or neither', async () => {
      const task = newTask();
      const settlement = charge(task);
      await first.create(task, task.createdAt, settlement);
      expect(await second.find(task.owner, task.id)).toEqual(task);
      expect(await spent(task.owner)).toBe(500);
      // The same id again: neither another task nor another charge.
      await expect(first.create(task, 0, charge(task))).rejects.toThrow(/unique/i);
      expect(await spent(task.owner)).toBe(500);
      const other = newTask({ owner: task.owner });
      const wrong = { ...charge(other), charged: { microDollars: 0.5, tokens: 0 } };
      await expect(first.create(other, 0, wrong)).rejects.toThrow('whole number');
      expect(await first.find(other.owner, other.id)).toBeUndefined();
    });

    test('tells when it was finished, and cannot be finished while it goes on', async () => {
      const task = newTask();
      await first.create(task, 0, undefined);
      await expect(first.finish(task, [])).rejects.toThrow('A task that goes on was to be finished.');
      expect((await second.find(task.owner, task.id))?.finishedAt).toBeUndefined();
      const end = advance(task, { id: 'up', state: 'completed' }, task.createdAt + 5_000);
      expect(await first.finish(end, [])).toBe(true);
      expect(await second.find(task.owner, task.id)).toEqual(end);
      expect(end.finishedAt).toBe(task.createdAt + 5_000);
    });

    test('that is damaged in the database counts as missing, and is reported', async () => {
      const tasks = [newTask(), newTask()];
      for (const task of tasks) await first.create(task, 0, undefined);
      for (const [index, details] of ['{', '{"charged":1}'].entries())
        await sqlOf(opened[0]!.database).run(() =>
          rows('UPDATE tasks SET details = ? WHERE id = ? RETURNING id', details, tasks[index]!.id),
        );
      for (const { owner, id } of tasks) expect(await second.find(owner, id)).toBeUndefined();
      expect(reports.splice(0).map(({ message }) => message)).toEqual(
        tasks.map(({ id }) => `The task ${id} is damaged in the database and counts as missing.`),
      );
    });

    test('does not exist for somebody else', async () => {
      const task = newTask();
      await first.create(task, 0, undefined);
      expect(await first.find('key_other', task.id)).toBeUndefined();
      expect(await first.claimOne(lease('a'), 'key_other', task.id)).toBeUndefined();
      expect(await first.remove('key_other', task.id)).toBe(false);
      expect(await first.list('key_other', { order: 'asc', limit: 5 })).toEqual({
        tasks: [],
        hasMore: false,
      });
      expect(await first.list('key_other', { order: 'asc', limit: 5, after: task.id })).toBeUndefined();
      expect(await first.remove(task.owner, task.id)).toBe(true);
      expect(await first.remove(task.owner, task.id)).toBe(false);
    });

    test('comes to its end once, however many say so, and gives back once', async () => {
      const task = newTask();
      await first.create(task, 0, charge(task));
      const ends = await Promise.all(
        Array.from({ length: 8 }, (_, index) => {
          const end =
            index % 2 === 0
              ? abandon(task, 'task_timeout', 'late', Date.now())
              : advance(task, { id: 'up', state: 'failed' }, Date.now());
          return (index % 3 === 0 ? first : second).finish(end, [refund(task)]);
        }),
      );
      expect(ends.filter(Boolean)).toHaveLength(1);
      expect(await spent(task.owner)).toBe(0);
      const { records } = await openUsageLog(opened[0] as Stores).page({ keyId: task.owner }, 10);
      expect(records.reduce((sum, { microDollars }) => sum + (microDollars ?? 0), 0)).toBe(0);
      expect((await first.find(task.owner, task.id))?.state).toBe('failed');
      expect(await first.update(lease('a'), task, 0)).toBe(false);
      expect(await first.finish(advance(task, { id: 'up', state: 'completed' }, Date.now()), [])).toBe(false);
    });
  });

  describe('a question about a task', () => {
    test('is for one gateway at a time', async () => {
      const task = newTask();
      await first.create(task, Date.now() - 1, undefined);
      const claims = await Promise.all(
        [first, second, first, second].map((store, index) => store.claim(lease(`owner ${index}`), 5)),
      );
      const mine = claims.flat().filter(({ id }) => id === task.id);
      expect(mine).toEqual([task]);
      expect(await second.claimOne(lease('late'), task.owner, task.id)).toBeUndefined();
    });

    test('is taken over by another when its lease is over', async () => {
      const task = newTask();
      await first.create(task, Date.now() - 1, undefined);
      expect(await first.claimOne(lease('slow', 200), task.owner, task.id)).toEqual(task);
      await expect.poll(() => second.claimOne(lease('next'), task.owner, task.id)).toEqual(task);
      // The first owner is late: what it says does not count any more.
      expect(await first.update(lease('slow'), { ...task, progress: 77 }, 0)).toBe(false);
      expect(
        await second.update(lease('next'), { ...task, progress: 50, asks: 1 }, Date.now() + 50_000),
      ).toBe(true);
      expect(await first.find(task.owner, task.id)).toMatchObject({ progress: 50, asks: 1 });
      expect((await first.claim(lease('b'), 5)).map(({ id }) => id)).not.toContain(task.id);
    });

    test('is due in the order of its time, and never later than the deadline', async () => {
      const now = Date.now();
      const owner = 'key_order';
      const soon = newTask({ owner, deadline: now - 5_000 });
      const due = newTask({ owner });
      const later = newTask({ owner });
      await first.create(later, now + 60_000, undefined);
      await first.create(due, now - 100, undefined);
      await first.create(soon, now - 2_000, undefined);
      const claimed = await first.claim(lease('a'), 1);
      expect(claimed.map(({ id }) => id)).toEqual([soon.id]);
      expect(await first.update(lease('a'), soon, now + 60_000)).toBe(true);
      expect((await first.claim(lease('a'), 10)).map(({ id }) => id).toSorted()).toEqual(
        [soon.id, due.id].toSorted(),
      );
    });
  });

  test('a list goes through all of an owner, page by page, in either direction', async () => {
    const owner = 'key_list';
    const at = Date.now();
    const made = Array.from({ length: 7 }, (_, index) =>
      newTask({ owner, createdAt: at + Math.floor(index / 2), format: index % 2 === 0 ? 'ark' : 'kling' }),
    );
    for (const task of made) await first.create(task, 0, undefined);
    for (const order of ['asc', 'desc'] as const) {
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const page = await second.list(owner, { order, limit: 3, ...(after === undefined ? {} : { after }) });
        seen.push(...(page?.tasks ?? []).map(({ id }) => id));
        after = page?.hasMore === true ? seen.at(-1) : undefined;
      } while (after !== undefined);
      const sorted = made
        .toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
        .map(({ id }) => id);
      expect(seen).toEqual(order === 'asc' ? sorted : sorted.toReversed());
    }
    const ark = await first.list(owner, { order: 'asc', limit: 2, skip: 2, format: 'ark' });
    expect(ark?.tasks).toHaveLength(2);
    expect(ark?.tasks.every(({ format }) => format === 'ark')).toBe(true);
  });
}
