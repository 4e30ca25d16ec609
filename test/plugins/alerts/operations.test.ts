import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { Operations, OperationsStatus } from 'sluice';
import { testPlugins } from 'sluice/testing';
import alerts from '../../../plugins/alerts/index.ts';
import { eventually } from '../../support/eventually.ts';
import { secret, startReceiver, type Receiver } from './_receiver.ts';

const sound: OperationsStatus = {
  database: 'up',
  sharedStore: 'up',
  targets: [],
  upkeep: [],
  isFirst: true,
};

/** Starts the plugin with a gateway that stands as `status` says. */
async function start(
  status: () => OperationsStatus,
  keys: Operations['keys'] = async () => ({ keys: [] }),
): Promise<Receiver & { close(): Promise<void> }> {
  const receiver = await startReceiver();
  const operations: Operations = {
    gateway: 'gw:1',
    status: async () => status(),
    figures: () => {
      throw new Error('Alerts look at the status.');
    },
    budgets: async () => [],
    keys,
  };
  const tested = await testPlugins(
    alerts({ interval: 100, destinations: { hook: { type: 'webhook', url: receiver.url, secret } } }),
    { tools: { operations } },
  );
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= tested.close());
  onTestFinished(close);
  return { ...receiver, close };
}

/** Lets several looks pass, in which nothing may be told again. */
const severalLooks = (): Promise<void> => wait(500);

const alertsOf = (receiver: Receiver) => receiver.alerts().map(({ kind, state }) => `${kind} ${state}`);

test('a database that is lost and comes back is told without it, each once', async () => {
  let database: OperationsStatus['database'] = 'down';
  const receiver = await start(() => ({ ...sound, database }));
  await eventually(() => expect(alertsOf(receiver)).toEqual(['database-lost firing']));
  database = 'up';
  const both = ['database-lost firing', 'database-lost resolved'];
  await eventually(() => expect(alertsOf(receiver)).toEqual(both));
  await severalLooks();
  expect(alertsOf(receiver)).toEqual(both);
});

test('a database that has come back is told also when the process ends at once', async () => {
  let database: OperationsStatus['database'] = 'down';
  const receiver = await start(() => ({ ...sound, database }));
  await eventually(() => expect(alertsOf(receiver)).toEqual(['database-lost firing']));
  database = 'up';
  await receiver.close();
  expect(alertsOf(receiver)).toEqual(['database-lost firing', 'database-lost resolved']);
});

test('only the first worker of a gateway tells that the database is lost', async () => {
  let looks = 0;
  const receiver = await start(() => {
    looks += 1;
    return { ...sound, database: 'down', isFirst: false };
  });
  await eventually(() => expect(looks).toBeGreaterThan(4));
  expect(receiver.seen).toEqual([]);
});

test('a refused reload, a worker that died, upkeep that is behind and a lost shared store are told together, and what is over is', async () => {
  let status: OperationsStatus = {
    ...sound,
    sharedStore: 'down',
    upkeep: [{ what: 'usage-records', warning: 'Old records could not be removed.' }, { what: 'sums' }],
    lastReload: { ok: false, problems: ['gateway.config.ts: unknown option "x".'], at: Date.now() },
    lastCrashAt: Date.now(),
  };
  const receiver = await start(() => status);
  const kinds = ['reload-refused', 'shared-store-lost', 'upkeep-behind', 'worker-died'];
  await eventually(() =>
    expect(alertsOf(receiver).toSorted()).toEqual(kinds.map((kind) => `${kind} firing`)),
  );
  expect(receiver.seen).toHaveLength(1);
  expect(receiver.alerts('reload-refused')[0]?.text).toContain('unknown option "x"');
  status = sound;
  await eventually(() =>
    expect(alertsOf(receiver).slice(4).toSorted()).toEqual([
      'reload-refused resolved',
      'shared-store-lost resolved',
      'upkeep-behind resolved',
      'worker-died resolved',
    ]),
  );
});

test('API keys that expire soon are told once, the most urgent level alone', async () => {
  const day = 86_400_000;
  const key = (id: string, days: number, enabled = true) =>
    ({ id, name: id, enabled, expiresAt: Date.now() + days * day }) as never;
  const receiver = await start(
    () => sound,
    async (_limit, after) =>
      after === undefined
        ? { keys: [key('key_a', 5), key('key_b', 40), key('key_c', -1)], next: 'x' }
        : { keys: [key('key_d', 0.5), key('key_e', 5, false)] },
  );
  await eventually(() => expect(receiver.alerts()).toHaveLength(2));
  await severalLooks();
  expect(
    receiver
      .alerts()
      .map(({ subject, severity }) => [subject, severity])
      .toSorted(),
  ).toEqual([
    ['key key_a', 'warning'],
    ['key key_d', 'critical'],
  ]);
});
