import { describe, expect, onTestFinished, test } from 'vitest';
import { startPgBouncer, withoutPgBouncer } from '../support/pgbouncer.ts';
import { startPostgres, withoutPostgres } from '../support/postgres.ts';
import { sentinelPassword, startRedisCluster, startSentinels } from '../support/redis-topologies.ts';
import { withoutRedis } from '../support/redis.ts';
import { raceForRates } from './rates.ts';
import { race } from './run.ts';

const noBouncer = withoutPostgres() ?? withoutPgBouncer();
const noRedis = withoutRedis();

test.skipIf(noBouncer !== undefined)(
  `gateways behind PgBouncer spend what is recorded and no more, one of them killed${noBouncer === undefined ? '' : ` (${noBouncer})`}`,
  async () => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.close());
    const database = await postgres.createDatabase();
    const bouncer = await startPgBouncer(database.replace(/\?.*/, ''));
    onTestFinished(() => bouncer.close());
    const outcome = await race({
      gateways: 2,
      calls: 40,
      database: bouncer.through(database),
      levelsOnly: true,
    });
    expect(outcome).toEqual({ overshoot: 0, unsettled: 0, unrecorded: 0, unfair: 0 });
  },
);

describe.skipIf(noRedis !== undefined)(
  `gateways that share limits${noRedis === undefined ? '' : ` (${noRedis})`}`,
  () => {
    const nothing = { overshoot: 0, unfair: 0, left: 0 };

    test('in a Redis Cluster answer as many calls as a key may make, and leave no permit', async () => {
      const cluster = await startRedisCluster();
      onTestFinished(() => cluster.close());
      expect(await raceForRates({ gateways: 2, calls: 60, redis: { url: cluster.url } })).toEqual(nothing);
    });

    test('behind Sentinels answer as many calls as a key may make, and leave no permit', async () => {
      const servers = await startSentinels();
      onTestFinished(() => servers.close());
      const redis = { url: servers.url, sentinelPassword };
      expect(await raceForRates({ gateways: 2, calls: 60, redis })).toEqual(nothing);
    });
  },
);
