import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { openStores } from '../../core/state/stores.ts';
import { configWith, key, logIn, operate, type OperatedGateway } from '../reload/gateway.ts';
import { hasLimits, limitFiles } from '../support/file-limit.ts';
import { everything } from '../support/tries.ts';

let started: OperatedGateway | undefined;
afterEach(async () => {
  await started?.end();
  started = undefined;
});

const start = async (members: string, args: readonly string[] = []): Promise<OperatedGateway> => {
  started = await operate({ 'gateway.config.mjs': configWith(members) }, args);
  return started;
};

const two = `workers: 2, timeouts: { drainDelay: 0 }, channels: [demo()]`;

/** A call over a connection of its own, so that it may reach any worker. */
async function sendChat(gateway: OperatedGateway, secret = key, words = 'hello'): Promise<number> {
  const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: words }] }),
  });
  await answer.arrayBuffer();
  return answer.status;
}

const many = (count: number, gateway: OperatedGateway, secret?: string, words?: string): Promise<number[]> =>
  Promise.all(Array.from({ length: count }, () => sendChat(gateway, secret, words)));

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);

describe('two workers', () => {
  let gateway: OperatedGateway;
  beforeAll(async () => {
    gateway = await operate({ 'gateway.config.mjs': configWith(two) });
  });
  afterAll(() => gateway.end());

  test('serve side by side: limits of keys are exact over both, and a key that is revoked is refused by both', async () => {
    expect(gateway.workers()).toHaveLength(2);
    const stores = openStores(`sqlite:${join(gateway.folder, 'data/sluice.db')}`);
    try {
      const apiKeys = createApiKeys(stores);
      const limited = await apiKeys.create({ name: 'limited', requestsPerMinute: 20 });
      const slots = await apiKeys.create({ name: 'slots', concurrency: 3 });
      for (const { value } of [limited, slots])
        await expect.poll(() => lists(gateway, value, 8)).toEqual([200]);
      const before = performance.now();
      const statuses = await many(60, gateway, limited.value);
      // A call comes back every three seconds: on a busy machine some do meanwhile.
      const most = 20 + Math.ceil((performance.now() - before) / 3000);
      const answered = statuses.filter((status) => status === 200).length;
      console.log(`60 calls at 2 workers, limit 20: ${answered} answered`);
      expect(answered).toBeGreaterThanOrEqual(20);
      expect(answered).toBeLessThanOrEqual(most);
      expect(statuses.filter((status) => status === 429)).toHaveLength(60 - answered);
      const running = await many(12, gateway, slots.value, 'hello !slow-headers=4000');
      expect(running.filter((status) => status === 200)).toHaveLength(3);
      expect(await sendChat(gateway, slots.value)).toBe(200);
      await apiKeys.revoke(slots.record.id);
      // Soon wrong keys from one address are answered 429.
      await expect
        .poll(async () =>
          (await lists(gateway, slots.value, 8)).filter((status) => status !== 401 && status !== 429),
        )
        .toEqual([]);
    } finally {
      await stores.close();
    }
    const workers = new Set<unknown>();
    const { sendRequest: admin } = await logIn(gateway);
    await expect.poll(async () => workers.add((await admin('GET', 'status'))['worker']).size).toBe(2);
  });

  test('one that is killed is replaced, while the other serves; all end with the gateway', async () => {
    const before = gateway.workers();
    process.kill(before[0] ?? 0, 'SIGKILL');
    await gateway.logged('a worker crashed: starting another one');
    await expect.poll(() => gateway.workers().length).toBe(2);
    const after = gateway.workers();
    expect(after).not.toContain(before[0]);
    const { sendRequest: admin } = await logIn(gateway);
    await expect
      .poll(async () => admin('GET', 'status'))
      .toMatchObject({ crashes: 1, workers: [{ state: 'serving' }, { state: 'serving' }] });
    expect(new Set(await many(20, gateway))).toEqual(new Set([200]));
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    for (const pid of after) expect(isAlive(pid)).toBe(false);
  });

  test('end when the process that started them is gone', async () => {
    const other = await start(two);
    const workers = other.workers();
    other.signal('SIGKILL');
    await expect.poll(() => workers.filter(isAlive)).toEqual([]);
    expect(await other.exited).toBe('SIGKILL');
  });

  test('cannot share a database in memory, and say so', async () => {
    await expect(start(`database: 'sqlite::memory:', ${two}`)).rejects.toThrow(
      'The gateway ended with 1: gateway.config.mjs: several workers cannot share a database in memory. Set "database" to a file or a server, or "workers" to 1.\n',
    );
  });
});

test('a single worker that is killed is replaced on the same port', async () => {
  const gateway = await start('channels: [demo()]');
  process.kill(gateway.workers()[0] ?? 0, 'SIGKILL');
  await gateway.logged('a worker crashed: starting another one');
  await expect.poll(() => sendChat(gateway).catch(() => 0), { interval: 100 }).toBe(200);
});

test.skipIf(!everything)(
  'connections that a worker was offered and never took are closed when it ends',
  async () => {
    const gateway = await start('channels: [demo()]');
    const { hostname, port } = new URL(gateway.url);
    const [worker = 0] = gateway.workers();
    // Stopped, it acknowledges nothing.
    process.kill(worker, 'SIGSTOP');
    const ends = Array.from({ length: 3 }, async () => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      await once(socket, 'connect');
      await new Promise((resolve) => socket.once('close', resolve));
    });
    // Time to be offered one. Those that were not are closed with the port.
    await new Promise((resolve) => setTimeout(resolve, 500));
    process.kill(worker, 'SIGKILL');
    await Promise.all(ends);
    await expect.poll(() => sendChat(gateway).catch(() => 0), { interval: 100 }).toBe(200);
  },
);

/** The status of a response to a request over a connection of its own; 0 where the connection ends without one. */
async function statusOf(url: string): Promise<number> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  socket.write('GET /healthz HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n');
  let text = '';
  socket.on('data', (piece: Buffer) => (text += piece.toString()));
  await once(socket, 'close');
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);
}

/** Opens connections while a worker takes none, and kills it. Resolves with their statuses. */
async function statusesAround(gateway: OperatedGateway, worker: number): Promise<ReadonlySet<number>> {
  process.kill(worker, 'SIGSTOP');
  const statuses = Array.from({ length: 8 }, () => statusOf(gateway.url));
  // Time for the worker to be offered one.
  await new Promise((resolve) => setTimeout(resolve, 500));
  process.kill(worker, 'SIGKILL');
  return new Set(await Promise.all(statuses));
}

const admins = new WeakMap<OperatedGateway, ReturnType<typeof logIn>>();

const states = async (gateway: OperatedGateway): Promise<readonly string[]> => {
  // One session for all looks: a further login for each would end the session of the test itself.
  const session = admins.get(gateway) ?? logIn(gateway);
  admins.set(gateway, session);
  session.catch(() => admins.delete(gateway));
  const { sendRequest: admin } = await session;
  const { workers } = (await admin('GET', 'status')) as { workers: readonly { state: string }[] };
  return workers.map(({ state }) => state);
};

// A spare that takes them is below; `npm run fuzz` tries two workers.
test.skipIf(!everything)(
  'connections that a worker was offered and never took are answered by another one',
  async () => {
    const gateway = await start(two);
    for (const worker of gateway.workers()) {
      // oxlint-disable-next-line no-await-in-loop -- one death after the other
      expect(await statusesAround(gateway, worker)).toEqual(new Set([200]));
      // oxlint-disable-next-line no-await-in-loop -- as above
      await expect.poll(() => states(gateway).catch(() => [])).toEqual(['serving', 'serving']);
    }
  },
);

describe('a spare worker', () => {
  const withSpare = 'workers: 1, spareWorker: true, timeouts: { drainDelay: 0 }, channels: [demo()]';

  test('takes the connections of the only worker when that is killed, and none before', async () => {
    const gateway = await start(withSpare);
    await expect.poll(() => states(gateway)).toEqual(['serving', 'spare']);
    const [worker = 0, spare = 0] = gateway.workers();
    const { sendRequest: admin } = await logIn(gateway);
    const answered = async (): Promise<unknown> => (await admin('GET', 'status'))['worker'];
    const workers = await Promise.all(Array.from({ length: 20 }, answered));
    expect(new Set(workers)).toEqual(new Set([1]));
    expect(await statusesAround(gateway, worker)).toEqual(new Set([200]));
    // Until another one has taken its place not one connection is refused.
    while ((await states(gateway)).filter((state) => state === 'serving').length === 0)
      expect(await statusOf(gateway.url)).toBe(200);
    await expect.poll(async () => (await states(gateway)).toSorted()).toEqual(['serving', 'spare']);
    expect(gateway.workers()).toContain(spare);
    expect(new Set(await Promise.all(Array.from({ length: 20 }, answered)))).toEqual(new Set([1]));
  });

  test.skipIf(!everything)(
    'is replaced when it is killed and by a reload, and ends with the gateway',
    async () => {
      const gateway = await start(withSpare);
      await expect.poll(() => states(gateway)).toEqual(['serving', 'spare']);
      const [worker = 0, spare = 0] = gateway.workers();
      expect(await statusesAround(gateway, spare)).toEqual(new Set([200]));
      await expect.poll(() => states(gateway)).toEqual(['serving', 'spare']);
      expect(gateway.workers()).toContain(worker);
      gateway.signal('SIGHUP');
      await gateway.logged('reloaded: previous workers finish their calls');
      await expect.poll(() => states(gateway)).toEqual(['serving', 'spare']);
      expect(gateway.workers()).not.toContain(worker);
      const last = gateway.workers();
      gateway.signal('SIGTERM');
      expect(await gateway.exited).toBe(0);
      expect(last.filter(isAlive)).toEqual([]);
    },
  );

  test('is refused beside a database in memory, which belongs to one process', async () => {
    await expect(start(`database: 'sqlite::memory:', ${withSpare}`)).rejects.toThrow(
      'gateway.config.mjs: a spare worker cannot share a database in memory.',
    );
  });
});

test.skipIf(!hasLimits)(
  'a worker that could not take a connection serves again when it has file descriptors, and the log says why',
  async () => {
    const gateway = await start('channels: [demo()]');
    const { hostname, port } = new URL(gateway.url);
    const [worker = 0] = gateway.workers();
    // Descriptors 0 to 2 are open, so that there are no others.
    const lift = limitFiles(worker, 3);
    const closed = Array.from({ length: 3 }, async () => {
      const socket = connect(Number(port), hostname).on('error', () => {});
      await once(socket, 'close');
    });
    await Promise.all(closed);
    const line = await gateway.logged(
      'connections were closed before they reached the worker, which may have no file descriptors left. Raise the limit (ulimit -n)',
    );
    expect(line).toMatchObject({ level: 'error', worker: 1, pid: worker });
    lift();
    expect(await many(5, gateway)).toEqual([200, 200, 200, 200, 200]);
    expect(gateway.workers()).toEqual([worker]);
  },
);

/** The statuses that several requests for the list of models get. */
async function lists(gateway: OperatedGateway, secret: string, count: number): Promise<number[]> {
  const statuses = await Promise.all(
    Array.from({ length: count }, async () => {
      const headers = { authorization: `Bearer ${secret}`, connection: 'close' };
      const answer = await fetch(`${gateway.url}/v1/models`, { headers });
      await answer.arrayBuffer();
      return answer.status;
    }),
  );
  return [...new Set(statuses)];
}
