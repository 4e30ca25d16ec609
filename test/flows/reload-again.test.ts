import { Agent } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { key, logIn, operate, type OperatedGateway } from '../reload/gateway.ts';
import { freePort } from '../support/free-port.ts';
import { SocketClient } from '../support/websocket.ts';
import { sendChat, config, failed, marker, nextLine, reloaded, status } from './_reload.ts';
import { everything } from '../support/tries.ts';

describe('a reload, the first one and those after it,', () => {
  let gateway: OperatedGateway;
  beforeAll(async () => {
    gateway = await operate({ 'gateway.config.ts': config(`'demo'`), 'plugins/marker.ts': marker('one') });
  });
  afterAll(() => gateway.end());

  test('puts a changed config and a changed plugin in force, while an open stream goes on', async () => {
    const first = await sendChat(gateway);
    await text(first);
    expect(first.headers['x-mark']).toBe('one');
    const open = await sendChat(gateway, { words: 'a b c d !silence=4000', stream: true });
    gateway.write('gateway.config.ts', config(`'demo', 'other'`));
    gateway.write('plugins/marker.ts', marker('two'));
    expect(await status(gateway, 'other')).toBe(503);
    gateway.signal('SIGHUP');
    await gateway.logged(reloaded);
    expect(await status(gateway, 'other')).toBe(200);
    const second = await sendChat(gateway);
    await text(second);
    expect(second.headers['x-mark']).toBe('two');
    expect(await text(open)).toMatch(/data: \[DONE\]\n\n$/);
    // The process before has nothing left, and ends.
    await expect.poll(() => gateway.workers().length).toBe(1);
    expect(gateway.output().match(/listens on/g)).toHaveLength(1);
  });

  test('with a config that is wrong changes nothing, and says every problem', async () => {
    const [before] = gateway.workers();
    const { sendRequest: admin } = await logIn(gateway);
    gateway.write('gateway.config.ts', config(`'demo'`, `lisen: 1, limits: { body: 1 },`));
    gateway.write('plugins/broken.ts', `throw new Error('half written');`);
    const outcome = await admin('POST', 'reload');
    expect(outcome).toEqual({
      ok: false,
      problems: [
        expect.stringContaining('option "limits.body"'),
        'gateway.config.ts: unknown option "lisen". Check the spelling, or remove it.',
        'plugins/broken.ts:1:7: cannot be loaded: half written',
      ],
    });
    await expect.poll(() => gateway.workers()).toEqual([before]);
    expect(await status(gateway, 'demo')).toBe(200);
    await gateway.logged(failed, 3);
    expect(await admin('GET', 'status')).toMatchObject({
      reloads: true,
      lastReload: { ok: false, problems: outcome['problems'] },
      workers: [{ worker: 1, state: 'serving' }],
    });
    gateway.write('gateway.config.ts', config(`'demo'`));
    gateway.remove('plugins/broken.ts');
    expect(await admin('POST', 'reload')).toEqual({ ok: true, problems: [] });
    expect(await admin('GET', 'status')).toMatchObject({ lastReload: { ok: true, problems: [] } });
    const { entries } = (await admin('GET', 'audit')) as { entries: { action: string; after: object }[] };
    expect(entries.filter(({ action }) => action === 'reload').map(({ after }) => after)).toMatchObject([
      { ok: true },
      { ok: false },
    ]);
  });

  test('leaves connections that clients keep open: what comes over them is served, and closes them', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => void agent.destroy());
    const one = await sendChat(gateway, { agent });
    const { socket } = one;
    await text(one);
    const sockets = await SocketClient.open(`${gateway.url}/v1/responses`, {
      headers: { authorization: `Bearer ${key}` },
    });
    sockets.send({ type: 'response.create', model: 'demo', input: 'hello' });
    await sockets.until(({ type }) => type === 'response.completed');
    const next = nextLine(gateway, reloaded);
    gateway.signal('SIGHUP');
    // A socket that says nothing for three seconds would be closed with the reload, however long that takes.
    const reloading = next().then(() => true);
    let answers = 1;
    for (let isOver = false; ;) {
      sockets.send({ type: 'response.create', model: 'demo', input: 'hello' });
      answers += 1;
      await sockets.until(({ type }) => type === 'response.completed', answers);
      if (isOver) break;
      isOver = await Promise.race([reloading, delay(500, false)]);
    }
    // The old process learns of it in its own time, and says so with the next answer.
    for (let last = ''; last !== 'close';) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other, over one connection
      const two = await sendChat(gateway, { agent });
      expect(two.socket === socket).toBe(true);
      expect(two.statusCode).toBe(200);
      last = two.headers.connection ?? '';
      // oxlint-disable-next-line no-await-in-loop -- as above
      await text(two);
    }
    // Quiet for a while, it is closed as the protocol has it.
    expect((await sockets.closed).code).toBe(1001);
    await expect.poll(() => gateway.workers().length).toBe(1);
  });

  test('lets a response that is made in the background be finished', async () => {
    // Longer than a reload takes on a busy machine.
    const silence = 20_000;
    // A replaced process ends with its last connection.
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      connection: 'close',
    };
    const begun = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'demo', input: `hello !silence=${silence}`, background: true }),
    });
    const { id } = (await begun.json()) as { id: string };
    const next = nextLine(gateway, reloaded);
    gateway.signal('SIGHUP');
    await next();
    const stateOf = async (): Promise<unknown> =>
      ((await (await fetch(`${gateway.url}/v1/responses/${id}`, { headers })).json()) as { status: unknown })
        .status;
    expect(await stateOf()).toBe('in_progress');
    await delay(silence / 2);
    await expect.poll(stateOf, { interval: 200 }).toBe('completed');
    await expect.poll(() => gateway.workers().length).toBe(1);
  });

  test.skipIf(!everything)('asked for by many at once is done once more, not once for each', async () => {
    const { sendRequest: admin } = await logIn(gateway);
    const before = gateway.lines('reloading').length;
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => admin('POST', 'reload')));
    for (const outcome of outcomes) expect(outcome).toEqual({ ok: true, problems: [] });
    expect(gateway.lines('reloading').length - before).toBeLessThanOrEqual(2);
  });

  test('refuses what only a restart can change, and takes another port and number of workers', async () => {
    gateway.write('gateway.config.ts', config(`'demo'`, `database: 'sqlite:other.db',`));
    const refused = nextLine(gateway, failed);
    gateway.signal('SIGHUP');
    const { problem } = await refused();
    expect(problem).toContain('cannot change the database');
    gateway.write('gateway.config.ts', config(`'demo'`, 'workers: 2,'));
    const first = nextLine(gateway, reloaded);
    gateway.signal('SIGHUP');
    await first();
    await expect.poll(() => gateway.workers().length).toBe(2);
    expect(await status(gateway, 'demo')).toBe(200);
    const port = await freePort();
    gateway.write('gateway.config.ts', config(`'demo'`, `listen: { port: ${port} },`));
    const second = nextLine(gateway, reloaded);
    gateway.signal('SIGHUP');
    await second();
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
    await expect.poll(() => fetch(gateway.url).then(String, () => 'refused')).toBe('refused');
  });
});
