import { describe, expect, test } from 'vitest';
import { startPostgres, withoutPostgres } from '../support/postgres.ts';
import { startRedis, withoutRedis } from '../support/redis.ts';
import { everything } from '../support/tries.ts';
import { runLeavers } from './leavers.ts';
import { raceForObjects, type ObjectsOptions } from './objects.ts';
import { race } from './run.ts';

const nothing = { overshoot: 0, unsettled: 0, unrecorded: 0, unfair: 0 };
const missing = withoutPostgres();
/** Cases that are equal on each database run on PostgreSQL if there is one, and on all databases with `npm run fuzz`. */
const onPostgres = !everything && missing === undefined;

describe('gateways on one database, against one budget, one of them killed', () => {
  test.skipIf(onPostgres)('spend what is recorded and no more, on SQLite', async () => {
    expect(await race({ gateways: 2, calls: 40, levelsOnly: !everything })).toEqual(nothing);
  });

  test.skipIf(missing !== undefined)(
    `spend what is recorded and no more, on Postgres${missing === undefined ? '' : `, ${missing}`}`,
    async () => {
      const postgres = await startPostgres();
      try {
        const database = await postgres.createDatabase();
        expect(await race({ gateways: 2, calls: 40, database, levelsOnly: true })).toEqual(nothing);
      } finally {
        await postgres.close();
      }
    },
  );
});

describe('batches and what keys with budgets may not start, all at once', () => {
  const noFaults = {
    overshoot: 0,
    reservations: 0,
    uncharged: 0,
    difference: 0,
    reached: 0,
    unexpected: 0,
  };

  /** Faults of a small race, and the names of events that did not happen. */
  async function raced(more: Pick<ObjectsOptions, 'database'> = {}) {
    const { faults, events } = await raceForObjects({ gateways: 2, attempts: 10, ...more });
    return { faults, missed: Object.entries(events).flatMap(([name, count]) => (count > 0 ? [] : [name])) };
  }

  test.skipIf(onPostgres)(
    'keep to the budget, leave no reservation and reach no provider unreserved, on SQLite',
    async () => {
      expect(await raced()).toEqual({ faults: noFaults, missed: [] });
    },
  );

  // Reservations of batches are also in test/plugins/provider-objects; a race for them is tried by `npm run fuzz` and `npm run race`.
  test.skipIf(missing !== undefined || !everything)(
    `keep to the budget, leave no reservation and reach no provider unreserved, on Postgres${missing === undefined ? '' : `, ${missing}`}`,
    async () => {
      const postgres = await startPostgres();
      try {
        const database = await postgres.createDatabase();
        expect(await raced({ database })).toEqual({ faults: noFaults, missed: [] });
      } finally {
        await postgres.close();
      }
    },
  );
});

describe('clients that leave at random moments, with a reload in the middle', () => {
  const noFaults = {
    recorded: 0,
    counted: 0,
    logged: 0,
    errors: 0,
    refused: 0,
    reservations: 0,
    difference: 0,
  };

  test.skipIf(onPostgres)('are recorded as such, and leave no reservation behind, on SQLite', async () => {
    const { faults, events } = await runLeavers({ leavers: 300 });
    expect(faults).toEqual(noFaults);
    const { left } = events;
    expect(left).toBeGreaterThan(0);
    expect(events.reserved).toBeGreaterThan(0);
    expect(events).toMatchObject({ countedLeft: left, loggedLeft: left, reloads: 1 });
  });

  const without = missing ?? withoutRedis();
  test.skipIf(without !== undefined)(
    `are recorded as such, and leave no reservation behind, on Postgres and Redis${without === undefined ? '' : `, ${without}`}`,
    async () => {
      const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
      try {
        const database = await postgres.createDatabase();
        const { faults, events } = await runLeavers({ leavers: 300, database, redis: redis.url });
        expect(faults).toEqual(noFaults);
        const { left } = events;
        expect(left).toBeGreaterThan(0);
        expect(events).toMatchObject({ countedLeft: left, loggedLeft: left, reloads: 1 });
      } finally {
        await Promise.all([postgres.close(), redis.close()]);
      }
    },
  );

  // Calls and counts without Redis are tried in one process by other tests.
  test.skipIf(without !== undefined || !everything)(
    `are recorded as such also when Redis no longer answers, which is told as no fault${without === undefined ? '' : `, ${without}`}`,
    async () => {
      const redis = await startRedis();
      try {
        const atHalf = () => redis.pause();
        const { faults, events } = await runLeavers({ leavers: 300, redis: redis.url, atHalf });
        expect(faults).toEqual(noFaults);
        expect(events.redisLost).toBeGreaterThan(0);
      } finally {
        redis.resume();
        await redis.close();
      }
    },
  );
});
