import { spawn, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pass } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { definePlugin } from 'sluice';
import demo from '../../channels/demo/index.ts';
import { freePort } from '../support/free-port.ts';
import { childrenOf, configWith, key as operatedKey, operate } from '../reload/gateway.ts';
import { startGateway } from '../support/gateway.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { everything } from '../support/tries.ts';
import { sluiceProgram } from '../support/program.ts';

const key = `sk-${'S'.repeat(48)}`;

/** Milliseconds for open calls when the gateway stops, and the length of a call that needs more. */
const drain = 1_500;
const slow = 120_000;

/** Both in JavaScript, so that no worker has to load the compiler of TypeScript for them alone. */
const config = `
  import { defineConfig } from 'sluice';
  import demo from '../../../channels/demo/index.ts';
  export default defineConfig({
    timeouts: { drain: ${drain}, reload: ${drain} },
    overload: { lag: 600_000 },
    channels: [demo({ models: ['demo'] }), demo({ id: 'slow', models: { slow: 'demo' }, delay: ${slow} })],
  });`;

/** A worker that starts does what the file beside it says, and leaves a mark. */
const plugin = `
  import { appendFileSync, readFileSync } from 'node:fs';
  import { definePlugin } from 'sluice';
  const folder = new URL('..', import.meta.url);
  export default definePlugin({
    name: 'starter',
    stage: 'observe',
    async setup() {
      const what = readFileSync(new URL('what.txt', folder), 'utf8');
      appendFileSync(new URL('marks.txt', folder), what + '\\n');
      if (what === 'die') process.exit(7);
      if (what === 'hang') await new Promise((resolve) => setTimeout(resolve, ${slow}));
      return (call, next) => next(call);
    },
  });`;

interface Gateway {
  readonly folder: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | string>;
  signal(name: NodeJS.Signals): void;
  /** Sets the behaviour of workers that start later. */
  next(what: 'serve' | 'die' | 'hang'): void;
  /** Resolves when a worker that starts has come to do it. */
  marked(what: string, times?: number): Promise<void>;
  /** Resolves when it has so many. */
  workers(count: number): Promise<void>;
  post(path: string, body: object): Promise<Response>;
  serves(): Promise<void>;
}

async function until(isTrue: () => boolean | Promise<boolean>, interval = 20): Promise<void> {
  while (!(await isTrue())) await pass(interval);
}

async function begin(what: 'serve' | 'hang'): Promise<Gateway> {
  const folder = operatorFolder({ 'gateway.config.mjs': config, 'plugins/starter.mjs': plugin });
  const next = (word: string): void => writeFileSync(join(folder, 'what.txt'), word);
  next(what);
  const port = await freePort();
  const child = spawn(
    process.execPath,
    [...sluiceProgram, 'start', '--config', join(folder, 'gateway.config.mjs')],
    {
      env: {
        PATH: process.env.PATH,
        SLUICE_PORT: String(port),
        SLUICE_HOST: '127.0.0.1',
        SLUICE_BOOTSTRAP_KEY: key,
        SLUICE_ADMIN_PASSWORD: 'correct horse battery',
        // By this a test finds all processes of this gateway.
        MARK: folder,
      },
      // Nobody reads it: what fits into the pipe is all that is taken.
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  onTestFinished(() => {
    for (const pid of processesOf(folder)) process.kill(pid, 'SIGKILL');
  });
  const exited = new Promise<number | string>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  );
  const post: Gateway['post'] = (path, body) =>
    fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  return {
    folder,
    child,
    exited,
    signal: (name) => void child.kill(name),
    next,
    marked: (word, times = 1) => until(() => marksIn(folder).filter((mark) => mark === word).length >= times),
    workers: (count) => until(() => childrenOf(child.pid ?? 0).length === count),
    post,
    serves: () =>
      until(async () => {
        if (child.exitCode !== null) throw new Error(`The gateway ended with ${child.exitCode}.`);
        const reply = await post('/v1/chat/completions', bodyFor('demo')).catch(() => undefined);
        await reply?.text();
        return reply?.status === 200;
      }, 150),
  };
}

function marksIn(folder: string): readonly string[] {
  try {
    return readFileSync(join(folder, 'marks.txt'), 'utf8').split('\n');
  } catch {
    return [];
  }
}

function bodyFor(model: string, stream = false): object {
  return { model, stream, messages: [{ role: 'user', content: 'hello' }] };
}

/** Every process of a gateway that is alive. */
function processesOf(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`MARK=${folder}`) &&
          !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** In which state a gateway may be when it is told to end. */
const phases: Readonly<Record<string, () => Promise<Gateway>>> = {
  'while it starts': async () => {
    const gateway = await begin('hang');
    await gateway.marked('hang');
    return gateway;
  },
  'while it serves': async () => {
    const gateway = await begin('serve');
    await gateway.serves();
    return gateway;
  },
  'while a reload waits for its workers': async () => {
    const gateway = await begin('serve');
    await gateway.serves();
    gateway.next('hang');
    gateway.signal('SIGHUP');
    await gateway.marked('hang');
    return gateway;
  },
  'while a reload tries a worker again that crashed': async () => {
    const gateway = await begin('serve');
    await gateway.serves();
    gateway.next('die');
    gateway.signal('SIGHUP');
    await gateway.marked('die', 2);
    await gateway.workers(1);
    // The next one would serve, if there were one.
    gateway.next('serve');
    return gateway;
  },
  'while a worker that crashed is tried again': async () => {
    const gateway = await begin('serve');
    await gateway.serves();
    gateway.next('die');
    const [worker = 0] = childrenOf(gateway.child.pid ?? 0);
    process.kill(worker, 'SIGKILL');
    await gateway.marked('die');
    await gateway.workers(0);
    gateway.next('serve');
    return gateway;
  },
  'while calls and streams are open': async () => {
    const gateway = await begin('serve');
    await gateway.serves();
    for (const stream of [true, false])
      void gateway.post('/v1/chat/completions', bodyFor('slow', stream)).then(
        (reply) => reply.text(),
        () => {},
      );
    await pass(200);
    return gateway;
  },
  'while a background response is made': async () => {
    const gateway = await begin('serve');
    await gateway.serves();
    const reply = await gateway.post('/v1/responses', { model: 'slow', input: 'hello', background: true });
    expect(await reply.json()).toMatchObject({ status: 'queued' });
    return gateway;
  },
  'while nobody reads its log': async () => {
    const gateway = await begin('serve');
    await gateway.serves();
    for (let calls = 0; calls < 10; calls += 1)
      await Promise.all(
        Array.from({ length: 20 }, async () =>
          (await gateway.post('/v1/chat/completions', bodyFor('demo'))).text(),
        ),
      );
    return gateway;
  },
  'while another process has locked its database': async () => {
    const gateway = await begin('serve');
    await gateway.serves();
    const other = new DatabaseSync(join(gateway.folder, 'data/sluice.db'), { timeout: 5_000 });
    onTestFinished(() => other.close());
    other.exec('BEGIN IMMEDIATE');
    for (let calls = 0; calls < 20; calls += 1)
      expect((await gateway.post('/v1/chat/completions', bodyFor('demo'))).status).toBe(200);
    return gateway;
  },
};

/** Longer than the time in which two signals are one key press. */
const between = 700;

/**
 * What it is told, and in which phases: SIGINT is heard by the same listener as SIGTERM, and a reload says something new only where
 * processes come and go. `npm run fuzz` tries each in every phase.
 */
const endings: readonly {
  readonly signals: readonly NodeJS.Signals[];
  readonly phases?: readonly string[];
}[] = [
  { signals: ['SIGTERM'] },
  { signals: ['SIGINT'], phases: ['while it serves'] },
  {
    signals: ['SIGHUP', 'SIGTERM'],
    phases: ['while it serves', 'while a worker that crashed is tried again'],
  },
];

const endingsIn = (phase: string) =>
  endings.filter(({ phases: some }) => everything || some === undefined || some.includes(phase));

describe('a gateway that is told to end does so, and leaves no process behind', () => {
  /** Much like others: tried by `npm run fuzz`. */
  const rarer = new Set([
    'while a reload tries a worker again that crashed',
    'while a worker that crashed is tried again',
  ]);

  test.each(Object.keys(phases).filter((phase) => everything || !rarer.has(phase)))('%s', async (phase) => {
    const ended = endingsIn(phase).map(async ({ signals }) => {
      const gateway = await phases[phase]?.();
      if (gateway === undefined) throw new Error(`There is no phase "${phase}".`);
      for (const signal of signals) {
        gateway.signal(signal);
        await pass(100);
      }
      expect([phase, signals, await gateway.exited]).toEqual([phase, signals, 0]);
      expect([phase, signals, processesOf(gateway.folder)]).toEqual([phase, signals, []]);
    });
    await Promise.all(ended);
  });

  test('at once when it is told so again, whatever it is doing', async () => {
    const slowPhases = [
      'while it starts',
      'while calls and streams are open',
      ...(everything ? ['while a reload waits for its workers', 'while a background response is made'] : []),
    ];
    const ended = slowPhases.map(async (phase) => {
      const gateway = await phases[phase]?.();
      if (gateway === undefined) throw new Error(`There is no phase "${phase}".`);
      gateway.signal('SIGTERM');
      await pass(between);
      gateway.signal('SIGTERM');
      // What had nothing to wait for has ended by then.
      expect([0, 1]).toContain(await gateway.exited);
      expect([phase, processesOf(gateway.folder)]).toEqual([phase, []]);
    });
    await Promise.all(ended);
  });
});

describe('a response that is made in the background when the gateway is told to end', () => {
  /** Returns the state of a slow response, as a later gateway on the same database reports it. */
  const reportLater = async (time: number, delay: number): Promise<unknown> => {
    const database = `sqlite:${operatorFolder()}/sluice.db`;
    const text = configWith(
      `database: '${database}', timeouts: { drain: ${time}, drainDelay: 0 }, channels: [demo({ models: ['demo'], delay: ${delay} })]`,
    );
    const headers = { authorization: `Bearer ${operatedKey}`, 'content-type': 'application/json' };
    const gateway = await operate({ 'gateway.config.mjs': text });
    onTestFinished(() => gateway.end());
    const begun = await fetch(`${gateway.url}/v1/responses`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'demo', input: 'hello', background: true }),
    });
    const { id } = (await begun.json()) as { id: string };
    gateway.signal('SIGTERM');
    expect(await gateway.exited).toBe(0);
    const later = await startGateway({ database, bootstrapKey: operatedKey, channels: [demo()] });
    onTestFinished(() => later.close());
    return (await fetch(`${later.url}/v1/responses/${id}`, { headers })).json();
  };

  test('is finished where the time for open calls is enough', async () => {
    expect(await reportLater(90_000, 2_000)).toMatchObject({ status: 'completed', error: null });
  });

  test('has failed otherwise, and says so to whoever asks later', async () => {
    expect(await reportLater(300, 600_000)).toMatchObject({
      status: 'failed',
      error: { code: 'server_error', message: 'The gateway was stopped while it made this response.' },
    });
  });
});

test('a gateway that took long to start takes the first call', async () => {
  const slowStart = definePlugin({
    name: 'slow-start',
    stage: 'observe',
    async setup() {
      for (let step = 0; step < 3; step += 1) {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 4_400);
        await pass(1);
      }
      return (call, next) => next(call);
    },
  });
  const gateway = await startGateway({
    overload: { lag: 4_000 },
    plugins: [slowStart()],
    channels: [demo({ models: ['demo'] })],
  });
  onTestFinished(() => gateway.close());
  const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(bodyFor('demo')),
  });
  expect([reply.status, gateway.lines.filter(({ strain }) => strain !== undefined)]).toEqual([200, []]);
});
