import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openRates } from '../../../../core/money/rates/open.ts';
import type { Rates } from '../../../../core/money/rates/index.ts';
import { checkSharedStore } from '../../../../core/state/links/shared-link.ts';
import { eventually } from '../../../support/eventually.ts';
import { patience } from '../../../support/patience.ts';
import { withoutRedis } from '../../../support/redis.ts';
import { startRedisCluster, type RedisTopology } from '../../../support/redis-topologies.ts';
import { newSubject, one, ratesSuite } from '../../../suites/rates-suite.ts';
import { OpenedRates, times } from './_rates.ts';

const missing = withoutRedis();

describe.skipIf(missing !== undefined)(
  `in a Redis Cluster${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    let cluster: RedisTopology;
    const opened = new OpenedRates();
    const open = (whenDown: 'local' | 'refuse' = 'local', url = cluster.url, long = times): Rates =>
      opened.open({ url, whenDown }, long);
    /** The port of the node that has the counters. */
    const owner = (): number => {
      const [port = 0] = cluster.ports;
      const { node } = ownerIn(cluster, port);
      return node;
    };

    beforeAll(async () => {
      cluster = await startRedisCluster();
    }, patience.test);
    afterAll(async () => {
      await opened.close();
      await cluster?.close();
    });

    ratesSuite(open);

    test('a start takes it by any of its nodes, and says so where it is written as one server', async () => {
      await checkSharedStore({ url: cluster.url });
      const single = cluster.ports.map((port) =>
        checkSharedStore({
          url: cluster.url.replace('+cluster', '').replace(/@.*/, `@127.0.0.1:${port}`),
        }).then(
          () => 'taken',
          (error: unknown) => String(error),
        ),
      );
      const outcomes = await Promise.all(single);
      expect(outcomes.filter((text) => /write redis\+cluster:\/\//.test(text)).length).toBeGreaterThan(3);
    });

    test('nodes whose addresses the gateway cannot reach are reached where nodeAddressMap says', async () => {
      let connections = 0;
      const forwarder = createServer((socket) => {
        connections += 1;
        const onward = connect(owner(), '127.0.0.1');
        for (const end of [socket, onward]) end.on('error', () => {});
        socket.pipe(onward).pipe(socket);
      });
      forwarder.listen(0, '127.0.0.1');
      await once(forwarder, 'listening');
      onTestFinished(() => void forwarder.close());
      const { port } = forwarder.address() as AddressInfo;
      const nodeAddressMap = { [`127.0.0.1:${owner()}`]: `localhost:${port}` };
      const rates = openRates({ url: cluster.url, nodeAddressMap, whenDown: 'refuse' }, () => {}, times);
      onTestFinished(() => rates.close());
      expect(await rates.take([one(newSubject(), 10)])).toMatchObject({ allowed: true });
      expect(connections).toBe(1);
    });

    test('a user of the ACL needs no more than the documented permissions', async () => {
      for (const port of cluster.ports)
        cluster.cli(port, ...'ACL SETUSER sluice on >pass ~sluice:* +@all -@dangerous -@admin'.split(' '));
      const store = { url: cluster.url, username: 'sluice', password: 'pass' };
      await checkSharedStore(store);
      const rates = opened.open({ ...store, whenDown: 'refuse' });
      const verdict = await rates.take([one(newSubject(), 10)]);
      expect(verdict).toMatchObject({ allowed: true });
      await expect(checkSharedStore({ ...store, password: 'wrong' })).rejects.toThrow(
        /refuses the user or the password/,
      );
    });

    test('several gateways count together, and while the counters move to another node', async () => {
      const gateways = [
        open('refuse', cluster.url, { minute: 60_000, lease: 600 }),
        open('refuse', cluster.url, { minute: 60_000, lease: 600 }),
      ];
      const subject = newSubject();
      const take = (index: number) => gateways[index % 2]?.take([one(subject, 30)]);
      const before = await Promise.all(Array.from({ length: 20 }, (_, index) => take(index)));
      const from = owner();
      moveCounters(cluster, from);
      const after = await Promise.all(Array.from({ length: 40 }, (_, index) => take(index)));
      expect(owner()).not.toBe(from);
      const verdicts = [...before, ...after];
      expect(verdicts.filter((verdict) => verdict?.degraded === true)).toEqual([]);
      expect(verdicts.filter((verdict) => verdict?.allowed === true)).toHaveLength(30);
    });

    test('a node that dies is followed by its replica: calls go on meanwhile, and count together again', async () => {
      const rates = open('local');
      await rates.take([one(newSubject(), 10)]);
      expect(rates.state).toBe('ok');
      await cluster.kill(owner());
      const meanwhile = await rates.take([one(newSubject(), 10)]);
      expect(meanwhile).toMatchObject({ allowed: true, degraded: true });
      await eventually(async () => {
        const { degraded } = await rates.take([one(newSubject(), 10)]);
        expect(degraded).toBeUndefined();
      });
      const late = open('local');
      onTestFinished(() => late.close());
      expect((await late.take([one(newSubject(), 10)])).degraded).toBeUndefined();
    });
  },
);

function ownerIn(cluster: RedisTopology, port: number): { readonly node: number; readonly slot: string } {
  const slot = cluster.cli(port, 'CLUSTER', 'KEYSLOT', 'sluice:{rates}:').trim();
  const lines = cluster.cli(port, 'CLUSTER', 'NODES').split('\n');
  for (const line of lines) {
    const [, address = '', flags = '', , , , , , ...ranges] = line.split(' ');
    if (!flags.includes('master')) continue;
    const has = ranges.some((range) => {
      const [from, to = from] = range.split('-').map(Number);
      return Number(slot) >= (from ?? 0) && Number(slot) <= (to ?? -1);
    });
    if (has) return { node: Number(/:(\d+)@/.exec(address)?.[1]), slot };
  }
  throw new Error('No node has the counters.');
}

/** Moves the slot of the counters to another master, as `redis-cli --cluster reshard` does. */
function moveCounters(cluster: RedisTopology, from: number): void {
  const { slot } = ownerIn(cluster, from);
  const ids = new Map(
    cluster
      .cli(from, 'CLUSTER', 'NODES')
      .split('\n')
      .filter((line) => line.includes('master'))
      .map((line) => [Number(/:(\d+)@/.exec(line)?.[1]), line.split(' ')[0] ?? ''] as const),
  );
  const to = [...ids.keys()].find((port) => port !== from) ?? 0;
  const [source = '', target = ''] = [ids.get(from), ids.get(to)];
  cluster.cli(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', source);
  cluster.cli(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', target);
  const keys = cluster.cli(from, 'CLUSTER', 'GETKEYSINSLOT', slot, '1000').split('\n').filter(Boolean);
  if (keys.length > 0)
    cluster.cli(
      from,
      'MIGRATE',
      '127.0.0.1',
      String(to),
      '',
      '0',
      '5000',
      'AUTH',
      'a secret: 100%/@',
      'KEYS',
      ...keys,
    );
  for (const port of [to, from]) cluster.cli(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', target);
}
