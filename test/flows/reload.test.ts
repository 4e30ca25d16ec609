import { setTimeout as delay } from 'node:timers/promises';
import { Agent, request as send, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { configWith, key, logIn, operate, type Line, type OperatedGateway } from '../reload/gateway.ts';
import { SocketClient } from '../support/websocket.ts';
import { freePort } from '../support/free-port.ts';

let gateway: OperatedGateway | undefined;
afterEach(async () => {
  await gateway?.end();
  gateway = undefined;
});

const config = (models: string, more = ''): string =>
  configWith(`channels: [demo({ models: [${models}] })], ${more}`);

/** A plugin that says of itself which one it is. */
const marker = (mark: string): string => `
  import { addReplyHeaders, definePlugin } from 'sluice';
  export default definePlugin({
    name: 'marker',
    stage: 'shape',
    setup: () => (call, next) => {
      addReplyHeaders(call, { 'x-mark': '${mark}' });
      return next(call);
    },
  });`;

const start = async (
  files: Readonly<Record<string, string>>,
  args: readonly string[] = [],
): Promise<OperatedGateway> => {
  gateway = await operate(files, args);
  return gateway;
};

/** A stream, or a whole answer, from a model. */
function ask(
  door: OperatedGateway,
  { model = 'demo', words = 'hello', stream = false, agent = false as Agent | false } = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    send(`${door.url}/v1/chat/completions`, { method: 'POST', headers, agent }, resolve)
      .once('error', reject)
      .end(JSON.stringify({ model, stream, messages: [{ role: 'user', content: words }] }));
  });
}

const status = async (door: OperatedGateway, model: string): Promise<number> => {
  const answer = await ask(door, { model });
  await text(answer);
  return answer.statusCode ?? 0;
};

const reloaded = 'reloaded: the workers before finish what they have';
const failed = 'the reload failed: what ran before goes on';

/** Waits for the next line of the log with this sentence, counted from when it was made. */
function nextLine(door: OperatedGateway, sentence: string): () => Promise<Line> {
  const before = door.lines(sentence).length;
  return () => door.logged(sentence, before + 1);
}

describe('a reload', () => {
  test('follows a changed file by itself with --watch: the config, a plugin, .env', async () => {
    const files = {
      'gateway.config.ts': configWith(
        `channels: [demo({ models: ['demo', process.env.EXTRA_MODEL ?? 'demo-one'] })]`,
      ),
    };
    const door = await start(files, ['--watch']);
    expect(await status(door, 'demo-two')).toBe(503);
    door.write('.env', 'EXTRA_MODEL=demo-two\n');
    await door.logged(reloaded, 1);
    expect(await status(door, 'demo-two')).toBe(200);
    // A folder that was not there before.
    door.write('plugins/marker.ts', marker('one'));
    await expect
      .poll(
        async () => {
          const answer = await ask(door);
          await text(answer);
          return answer.headers['x-mark'];
        },
        { interval: 100 },
      )
      .toBe('one');
    door.write('gateway.config.ts', 'export default nonsense;');
    await door.logged(failed);
    expect(await status(door, 'demo-two')).toBe(200);
  });

  test('ends calls in the process before with an error in their format when their time is over', async () => {
    const door = await start({ 'gateway.config.ts': config(`'demo'`, 'timeouts: { reload: 800 },') });
    const open = await ask(door, { words: 'hello !silence=30k', stream: true });
    door.signal('SIGHUP');
    expect(await text(open)).toContain('shutting down');
    await expect.poll(() => door.workers().length).toBe(1);
  });
});

describe('a reload of two workers', () => {
  let door: OperatedGateway;
  beforeAll(async () => {
    door = await operate({
      'gateway.config.ts': config(`'demo'`, 'workers: 2'),
      'plugins/marker.ts': marker('one'),
    });
  });
  afterAll(() => door.end());

  test('during which files change again puts the same in force in all workers', async () => {
    // The first worker that finds the order reads one text of its marker, and leaves another one for those that start after it.
    const changing = (mark: string): string => `
      import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
      const order = new URL('order.txt', import.meta.url);
      if (existsSync(order)) {
        rmSync(order);
        const own = new URL(import.meta.url);
        writeFileSync(own, readFileSync(own, 'utf8').replaceAll("'x-mark': '${mark}'", "'x-mark': 'last'"));
      }
      ${marker(mark)}`;
    door.write('plugins/marker.ts', changing('two'));
    door.write('plugins/order.txt', '');
    door.signal('SIGHUP');
    await door.logged(reloaded);
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(door)));
    await Promise.all(answers.map((answer) => text(answer)));
    expect(new Set(answers.map(({ headers }) => headers['x-mark']))).toEqual(new Set(['last']));
    expect(door.lines('files changed while workers read them: they are started again')).toHaveLength(1);
  });

  test('follows by itself where files had changed when a worker took the place of another', async () => {
    await expect.poll(() => door.workers().length).toBe(2);
    const next = nextLine(door, reloaded);
    door.write('plugins/marker.ts', marker('two'));
    const [worker = 0] = door.workers();
    process.kill(worker, 'SIGKILL');
    await next();
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(door)));
    await Promise.all(answers.map((answer) => text(answer)));
    expect(new Set(answers.map(({ headers }) => headers['x-mark']))).toEqual(new Set(['two']));
  });
});

describe('a reload, the first one and those after it,', () => {
  let door: OperatedGateway;
  beforeAll(async () => {
    door = await operate({ 'gateway.config.ts': config(`'demo'`), 'plugins/marker.ts': marker('one') });
  });
  afterAll(() => door.end());

  test('puts a changed config and a changed plugin in force, while an open stream goes on', async () => {
    const first = await ask(door);
    await text(first);
    expect(first.headers['x-mark']).toBe('one');
    const open = await ask(door, { words: 'a b c d !silence=4000', stream: true });
    door.write('gateway.config.ts', config(`'demo', 'other'`));
    door.write('plugins/marker.ts', marker('two'));
    expect(await status(door, 'other')).toBe(503);
    door.signal('SIGHUP');
    await door.logged(reloaded);
    expect(await status(door, 'other')).toBe(200);
    const second = await ask(door);
    await text(second);
    expect(second.headers['x-mark']).toBe('two');
    expect(await text(open)).toMatch(/data: \[DONE\]\n\n$/);
    // The process before has nothing left, and ends.
    await expect.poll(() => door.workers().length).toBe(1);
    expect(door.output().match(/listens on/g)).toHaveLength(1);
  });

  test('with a config that is wrong changes nothing, and says every problem', async () => {
    const [before] = door.workers();
    const { ask: admin } = await logIn(door);
    door.write('gateway.config.ts', config(`'demo'`, `lisen: 1, limits: { body: 1 },`));
    door.write('plugins/broken.ts', `throw new Error('half written');`);
    const outcome = await admin('POST', 'reload');
    expect(outcome).toEqual({
      ok: false,
      problems: [
        expect.stringContaining('option "limits.body"'),
        'gateway.config.ts: unknown option "lisen". Check the spelling, or remove it.',
        'plugins/broken.ts: does not load: half written',
      ],
    });
    await expect.poll(() => door.workers()).toEqual([before]);
    expect(await status(door, 'demo')).toBe(200);
    await door.logged(failed, 3);
    expect(await admin('GET', 'status')).toMatchObject({
      reloads: true,
      lastReload: { ok: false, problems: outcome['problems'] },
      workers: [{ worker: 1, state: 'serving' }],
    });
    door.write('gateway.config.ts', config(`'demo'`));
    door.remove('plugins/broken.ts');
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
    const one = await ask(door, { agent });
    const { socket } = one;
    await text(one);
    const sockets = await SocketClient.open(`${door.url}/v1/responses`, {
      headers: { authorization: `Bearer ${key}` },
    });
    sockets.send({ type: 'response.create', model: 'demo', input: 'hello' });
    await sockets.until(({ type }) => type === 'response.completed');
    const next = nextLine(door, reloaded);
    door.signal('SIGHUP');
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
      const two = await ask(door, { agent });
      expect(two.socket === socket).toBe(true);
      expect(two.statusCode).toBe(200);
      last = two.headers.connection ?? '';
      // oxlint-disable-next-line no-await-in-loop -- as above
      await text(two);
    }
    // Quiet for a while, it is closed as the protocol has it.
    expect((await sockets.closed).code).toBe(1001);
    await expect.poll(() => door.workers().length).toBe(1);
  });

  test('lets a response that is made in the background be finished', async () => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const begun = await fetch(`${door.url}/v1/responses`, {
      method: 'POST',
      headers: { ...headers, connection: 'close' },
      body: JSON.stringify({ model: 'demo', input: 'hello !silence=20k', background: true }),
    });
    const { id } = (await begun.json()) as { id: string };
    const next = nextLine(door, reloaded);
    door.signal('SIGHUP');
    await next();
    const stateOf = async (): Promise<unknown> =>
      ((await (await fetch(`${door.url}/v1/responses/${id}`, { headers })).json()) as { status: unknown })
        .status;
    expect(await stateOf()).toBe('in_progress');
    await expect.poll(stateOf, { interval: 200 }).toBe('completed');
    await expect.poll(() => door.workers().length).toBe(1);
  });

  test('asked for by many at once is done once more, not once for each', async () => {
    const { ask: admin } = await logIn(door);
    const before = door.lines('reloading').length;
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => admin('POST', 'reload')));
    for (const outcome of outcomes) expect(outcome).toEqual({ ok: true, problems: [] });
    expect(door.lines('reloading').length - before).toBeLessThanOrEqual(2);
  });

  test('refuses what only a restart can change, and takes another port and number of workers', async () => {
    door.write('gateway.config.ts', config(`'demo'`, `database: 'sqlite:other.db',`));
    const refused = nextLine(door, failed);
    door.signal('SIGHUP');
    const { problem } = await refused();
    expect(problem).toContain('cannot change the database');
    door.write('gateway.config.ts', config(`'demo'`, 'workers: 2,'));
    const first = nextLine(door, reloaded);
    door.signal('SIGHUP');
    await first();
    await expect.poll(() => door.workers().length).toBe(2);
    expect(await status(door, 'demo')).toBe(200);
    const port = await freePort();
    door.write('gateway.config.ts', config(`'demo'`, `listen: { port: ${port} },`));
    const second = nextLine(door, reloaded);
    door.signal('SIGHUP');
    await second();
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
    await expect.poll(() => fetch(door.url).then(String, () => 'refused')).toBe('refused');
  });
});
