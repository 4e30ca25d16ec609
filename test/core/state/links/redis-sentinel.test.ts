import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Rates } from '../../../../core/money/rates/index.ts';
import type { SharedStoreSettings } from '../../../../core/settings/shared.ts';
import { checkSharedStore } from '../../../../core/state/links/shared-link.ts';
import { eventually } from '../../../support/eventually.ts';
import { patience } from '../../../support/patience.ts';
import { withoutRedis } from '../../../support/redis.ts';
import { sentinelPassword, startSentinels } from '../../../support/redis-topologies.ts';
import { newSubject, one, ratesSuite } from '../../../suites/rates-suite.ts';
import { OpenedRates } from './_rates.ts';

const missing = withoutRedis();

describe.skipIf(missing !== undefined)(
  `behind Sentinels${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let servers: Awaited<ReturnType<typeof startSentinels>>;
    const opened = new OpenedRates();
    const settings = (): SharedStoreSettings => ({ url: servers.url, sentinelPassword });
    const open = (): Rates => opened.open({ ...settings(), whenDown: 'local' });

    beforeAll(async () => {
      servers = await startSentinels();
    }, patience.test);
    afterAll(async () => {
      await opened.close();
      await servers?.close();
    });

    ratesSuite(open);

    test('a start refuses a wrong password of the Sentinels, of the servers, and a name that they do not know', async () => {
      await checkSharedStore(settings());
      await expect(checkSharedStore({ url: servers.url })).rejects.toThrow(/shared\.sentinelPassword/);
      await expect(checkSharedStore({ ...settings(), password: 'wrong' })).rejects.toThrow(
        /shared\.password/,
      );
      const named = servers.url.replace('mymaster', 'another');
      await expect(checkSharedStore({ url: named, sentinelPassword })).rejects.toThrow(/no master "another"/);
      const direct = servers.url.replace('+sentinel', '').replace(/@.*/, `@127.0.0.1:${servers.ports[3]}`);
      await expect(checkSharedStore({ url: direct, password: sentinelPassword })).rejects.toThrow(
        /redis\+sentinel/,
      );
    });

    test('a master that dies is followed by another: calls go on meanwhile, and count together again', async () => {
      const gateways = [open(), open()];
      await Promise.all(gateways.map((rates) => rates.take([one(newSubject(), 10)])));
      const before = servers.master();
      await servers.kill(before);
      // A Sentinel that is gone as well changes nothing.
      await servers.kill(servers.ports[5] ?? 0);
      const meanwhile = await gateways[0]?.take([one(newSubject(), 10)]);
      expect(meanwhile).toMatchObject({ allowed: true, degraded: true });
      await eventually(() => gateways.every((rates) => rates.state === 'ok'));
      expect(servers.master()).not.toBe(before);
      const subject = newSubject();
      const verdicts = await Promise.all(
        Array.from({ length: 40 }, (_, index) => gateways[index % 2]?.take([one(subject, 10)])),
      );
      expect(verdicts.filter((verdict) => verdict?.allowed === true)).toHaveLength(10);
    });
  },
);
