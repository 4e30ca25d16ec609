import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Connections } from '../../../core/front/connections.ts';
import { Ending } from '../../../core/front/ending.ts';
import { eventually } from '../../support/eventually.ts';
import { Bare, requestText } from '../../flows/_socket.ts';

interface Stage {
  readonly url: string;
  readonly ending: Ending;
  readonly connections: Connections;
  /** Responses that are open, in the order of their requests. */
  readonly open: ServerResponse[];
  /** Commands that the application received. */
  readonly commands: string[];
  /** Number of calls that go on without a client. */
  readonly detached: { running: number };
  /** Number of times that everything else was closed. */
  readonly closes: () => number;
}

const long = 3_600_000;

/** A server whose calls end when the test says so. `times`: milliseconds that open calls have. */
async function stage(times: { readonly drain?: number; readonly reload?: number } = {}): Promise<Stage> {
  const open: ServerResponse[] = [];
  const commands: string[] = [];
  const detached = { running: 0 };
  let closes = 0;
  const server = createServer((_request, response) => {
    if (commands.length > 0) response.setHeader('connection', 'close');
    open.push(response);
  });
  const connections = new Connections(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const ending = new Ending({
    app: {
      drain: (why: string) => void commands.push(why),
      endAll: () => void commands.push('end all'),
    } as unknown as ConstructorParameters<typeof Ending>[0]['app'],
    connections,
    drain: times.drain ?? long,
    reload: times.reload ?? long,
    detached,
    close: async () => void (closes += 1),
  });
  onTestFinished(async () => {
    detached.running = 0;
    connections.closeAll();
    await ending.stop();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    ending,
    connections,
    open,
    commands,
    detached,
    closes: () => closes,
  };
}

const request = requestText('GET', '/', {});

/** Opens a connection and a call on it. */
async function call({ url, open }: Stage): Promise<Bare> {
  const client = await Bare.to(url);
  const before = open.length;
  client.write(request);
  await eventually(() => open.length > before, 2);
  return client;
}

/** True for a promise that has resolved by now. */
async function hasEnded(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  const first = await Promise.race([promise, new Promise((resolve) => setImmediate(() => resolve(pending)))]);
  return first !== pending;
}

async function isRefused(url: string): Promise<boolean> {
  return Bare.to(url).then(
    ({ socket }) => {
      socket.destroy();
      return false;
    },
    () => true,
  );
}

describe('a gateway that stops', () => {
  test('takes no new connection, lets the open call end, and closes everything else once behind it', async () => {
    const one = await stage();
    const client = await call(one);
    const stopped = one.ending.stop();
    void one.ending.stop();
    expect(one.commands).toEqual(['stop']);
    await eventually(() => isRefused(one.url));
    expect([await hasEnded(stopped), one.closes()]).toEqual([false, 0]);
    one.open[0]?.end('whole');
    await client.until(/whole/);
    await stopped;
    expect([one.closes(), one.commands]).toEqual([1, ['stop']]);
  });

  test('closes the connection behind a call that ended after the stop, even if it was to be kept', async () => {
    const one = await stage();
    const client = await call(one);
    const stopped = one.ending.stop();
    one.open[0]?.end('whole');
    await client.closed;
    expect(client.text).toMatch(/connection: keep-alive/i);
    await stopped;
  });

  test('closes idle connections at once, and those that have never sent anything after a moment', async () => {
    const one = await stage();
    const idle = await call(one);
    one.open[0]?.end('whole');
    await idle.until(/whole/);
    const silent = await Bare.to(one.url);
    const stopped = one.ending.stop();
    await Promise.all([idle.closed, silent.closed, stopped]);
    expect(silent.text).toBe('');
  });

  test('serves a connection that was opened just before and asks now', async () => {
    const one = await stage();
    const fresh = await Bare.to(one.url);
    const stopped = one.ending.stop();
    fresh.write(request);
    await eventually(() => one.open.length === 1, 2);
    one.open[0]?.end('still served');
    expect(await fresh.until(/still served/)).toMatch(/^HTTP\/1\.1 200 /);
    await stopped;
  });

  test('closes everything else only after the last call has noticed that its client left', async () => {
    const one = await stage();
    const client = await call(one);
    let closesBefore = -1;
    one.open[0]?.once('close', () => (closesBefore = one.closes()));
    const stopped = one.ending.stop();
    client.socket.destroy();
    await stopped;
    expect([closesBefore, one.closes()]).toEqual([0, 1]);
  });

  test('tells open calls to end when their time is over, and cuts those that do not', async () => {
    const one = await stage({ drain: 5 });
    one.detached.running = 1;
    const client = await call(one);
    const stopped = one.ending.stop();
    await client.closed;
    await stopped;
    expect([one.commands, one.closes()]).toEqual([['stop', 'end all'], 1]);
  });

  test('waits for calls without a client, and closes when the last has ended', async () => {
    const one = await stage();
    one.detached.running = 1;
    const stopped = one.ending.stop();
    await eventually(() => isRefused(one.url));
    expect([await hasEnded(stopped), one.closes()]).toEqual([false, 0]);
    one.detached.running = 0;
    await stopped;
    expect([one.closes(), one.commands]).toEqual([1, ['stop']]);
  });
});

describe('a gateway that another process replaces', () => {
  test('serves connections that are open until they end', async () => {
    const one = await stage({ drain: 5 });
    const client = await call(one);
    const retired = one.ending.retire();
    void one.ending.retire();
    expect(one.commands).toEqual(['replaced']);
    await eventually(() => isRefused(one.url));
    one.open[0]?.end('first');
    await client.until(/first/);
    client.write(request);
    await eventually(() => one.open.length === 2, 2);
    expect(await hasEnded(retired)).toBe(false);
    one.open[1]?.end('second');
    await client.closed;
    await retired;
    expect([client.text.includes('second'), one.closes()]).toEqual([true, 1]);
  });

  test('gives open calls the time of a reload, and then cuts them', async () => {
    const one = await stage({ reload: 5 });
    const client = await call(one);
    const retired = one.ending.retire();
    await client.closed;
    await retired;
    expect([one.commands, one.closes()]).toEqual([['replaced', 'end all'], 1]);
  });

  test('and is stopped then gives open calls the time of a stop, and closes everything once', async () => {
    const one = await stage({ drain: 5 });
    const client = await call(one);
    const retired = one.ending.retire();
    const stopped = one.ending.stop();
    await client.closed;
    await Promise.all([retired, stopped]);
    expect([one.commands, one.closes()]).toEqual([['replaced', 'stop', 'end all'], 1]);
    expect(await hasEnded(one.ending.retire())).toBe(true);
  });
});
