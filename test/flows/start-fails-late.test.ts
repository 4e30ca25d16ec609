import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pass } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { configWith, logIn, operate, type OperatedGateway } from '../reload/gateway.ts';
import { hasLimits, limitFiles } from '../support/file-limit.ts';
import { freePort } from '../support/free-port.ts';
import { patience } from '../support/patience.ts';
import { sendChat, failed, nextLine, reloaded } from './_reload.ts';
import { everything } from '../support/tries.ts';

/** Asks for `/healthz` over a connection of its own. Returns the status, or why there was none. */
function health(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setTimeout(patience.wait, () => socket.destroy());
    socket.once('connect', () =>
      socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'),
    );
    socket.on('data', (chunk) => (text += chunk.toString()));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    socket.on('close', () => resolve(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 'no response'));
  });
}

/** Connects again and again from the first 200 on. `stop` returns everything but 200 that came after it. */
function knock(port: number): { readonly open: Promise<void>; stop(): Promise<readonly string[]> } {
  const open = Promise.withResolvers<void>();
  const wrong: string[] = [];
  let isOpen = false;
  const stopping = new AbortController();
  const over = (async () => {
    while (!stopping.signal.aborted) {
      // oxlint-disable-next-line no-await-in-loop -- one connection at a time
      const status = await health(port);
      if (status === '200' && !isOpen) open.resolve();
      isOpen ||= status === '200';
      if (isOpen && status !== '200') wrong.push(status);
      // oxlint-disable-next-line no-await-in-loop -- as above
      await pass(5);
    }
  })();
  return {
    open: open.promise,
    async stop() {
      stopping.abort();
      await over;
      return wrong;
    },
  };
}

interface Started {
  readonly gateway: OperatedGateway;
  /** Responses other than 200 since the first 200. */
  readonly wrong: () => Promise<readonly string[]>;
}

/** Starts a gateway on a fixed port, with connections to it as soon as it listens. */
async function start(
  config: (port: number) => string,
  files: Readonly<Record<string, string>> = {},
): Promise<Started> {
  const port = await freePort();
  const knocking = knock(port);
  const gateway = await operate({ 'gateway.config.mjs': config(port), ...files });
  onTestFinished(() => gateway.end());
  await knocking.open;
  return { gateway, wrong: knocking.stop };
}

const serving = async (gateway: OperatedGateway): Promise<unknown> => {
  const { sendRequest: admin } = await logIn(gateway);
  const { workers } = (await admin('GET', 'status')) as { workers: { worker: number; state: string }[] };
  return workers.map(({ worker, state }) => `${worker} ${state}`).toSorted();
};

const plain = (port: number, more = ''): string =>
  configWith(`listen: { port: ${port} }, channels: [demo()], ${more}`);

/** The first worker that loads the config gets it whole, each one after that a file which throws. */
const brokenForOthers = (port: number): string => `
  import { existsSync, writeFileSync } from 'node:fs';
  const seen = new URL('seen.txt', import.meta.url);
  if (existsSync(seen)) throw new Error('half written');
  writeFileSync(seen, '');
  ${plain(port, 'workers: 2')}`;

const retried = 'a worker cannot start: retrying';

describe('a gateway that already serves goes on while', () => {
  test('a file beside its config changes during the start, which it follows', async () => {
    const notes = `
      import { existsSync, writeFileSync } from 'node:fs';
      import { definePlugin } from 'sluice';
      const file = new URL('../notes.json', import.meta.url);
      export default definePlugin({
        name: 'notes',
        stage: 'observe',
        setup() {
          if (!existsSync(file)) writeFileSync(file, '{}');
          return (call, next) => next(call);
        },
      });`;
    const { gateway, wrong } = await start(plain, { 'plugins/notes.mjs': notes });
    await gateway.logged(reloaded);
    expect(await wrong()).toEqual([]);
    expect(gateway.lines('reloading')).toMatchObject([{ reason: 'files changed while workers read them' }]);
  });

  test('its config breaks before all workers have started: it logs why, and starts them when the config is whole', async () => {
    const { gateway, wrong } = await start(brokenForOthers);
    const line = await gateway.logged(retried);
    expect(line).toMatchObject({ level: 'error', worker: 2 });
    expect(String(line['problems'])).toContain('half written');
    expect(await serving(gateway)).toContain('1 serving');
    const port = Number(new URL(gateway.url).port);
    gateway.write('gateway.config.mjs', plain(port, 'workers: 2'));
    await gateway.logged(reloaded);
    await expect.poll(() => serving(gateway)).toEqual(['1 serving', '2 serving']);
    expect(await wrong()).toEqual([]);
  });

  test.skipIf(!everything)(
    'a worker that was killed cannot be replaced, however often it is tried',
    async () => {
      const { gateway, wrong } = await start((port) => plain(port, 'workers: 2'));
      const port = Number(new URL(gateway.url).port);
      await expect.poll(() => serving(gateway)).toEqual(['1 serving', '2 serving']);
      // Connections that the killed worker holds end with it.
      expect(await wrong()).toEqual([]);
      gateway.write('gateway.config.mjs', 'export default nonsense;');
      process.kill(gateway.workers()[1] ?? 0, 'SIGKILL');
      await gateway.logged(retried, 4);
      const knocking = knock(port);
      await knocking.open;
      gateway.write('gateway.config.mjs', plain(port, 'workers: 2'));
      await expect.poll(() => serving(gateway)).toEqual(['1 serving', '2 serving']);
      expect(await knocking.stop()).toEqual([]);
    },
  );
});

/** A worker that starts does what the file beside its config says. */
const starter = `
  import cluster from 'node:cluster';
  import { appendFileSync, existsSync, readFileSync } from 'node:fs';
  import { definePlugin } from 'sluice';
  const at = (name) => new URL('../' + name, import.meta.url);
  const wants = () => existsSync(at('wish.txt')) ? readFileSync(at('wish.txt'), 'utf8') : '';
  export default definePlugin({
    name: 'starter',
    stage: 'observe',
    async setup() {
      appendFileSync(at('starts.txt'), wants() + '\\n');
      if (wants() === 'throw soon')
        setInterval(() => { if (cluster.worker.state === 'listening') throw new Error('thrown by a timer'); }, 100);
      while (wants() === 'wait') await new Promise((resolve) => setTimeout(resolve, 20));
      return (call, next) => next(call);
    },
  });`;

describe('a reload that fails keeps the workers that serve:', () => {
  test('new workers throw just after their start, a plugin is gone, the new port is taken', async () => {
    const { gateway, wrong: before } = await start(plain, { 'plugins/starter.mjs': starter });
    const port = Number(new URL(gateway.url).port);
    const [worker] = gateway.workers();
    // A worker that ends takes its connections along.
    expect(await before()).toEqual([]);
    const reload = async (): Promise<string> => {
      const line = nextLine(gateway, failed);
      gateway.signal('SIGHUP');
      return String((await line())['problem']);
    };
    gateway.write('wish.txt', 'throw soon');
    expect(await reload()).toMatch(
      // Under load the timer may be first.
      /^A worker process exited just after its start \(1\)|^Worker processes exited before it could serve/,
    );
    gateway.write('wish.txt', '');
    const knocking = knock(port);
    await knocking.open;
    gateway.write(
      'gateway.config.mjs',
      `import gone from './gone.mjs';\n${plain(port)}`.replace('channels:', 'plugins: [gone()], channels:'),
    );
    expect(await reload()).toContain('gone.mjs');
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const taken = (other.address() as AddressInfo).port;
    gateway.write('gateway.config.mjs', plain(taken));
    expect(await reload()).toContain(`Port ${taken} on 127.0.0.1 is taken.`);
    await expect.poll(() => gateway.workers()).toEqual([worker]);
    expect(await knocking.stop()).toEqual([]);
  });

  test.skipIf(!hasLimits)('the system starts no more processes', async () => {
    const { gateway, wrong } = await start(plain);
    const [worker] = gateway.workers();
    expect(await wrong()).toEqual([]);
    const line = nextLine(gateway, failed);
    // Descriptors 0 to 2 are open, so that there are no others.
    const lift = limitFiles(gateway.pid, 3);
    gateway.signal('SIGHUP');
    expect(String((await line())['problem'])).toContain('EMFILE');
    lift();
    expect((await sendChat(gateway)).statusCode).toBe(200);
    expect(gateway.workers()).toEqual([worker]);
    gateway.signal('SIGHUP');
    await gateway.logged(reloaded);
  });

  test('and a worker that was replaced during a reload that works leaves with the others of its time', async () => {
    const { gateway } = await start(plain, { 'plugins/starter.mjs': starter });
    const starts = (): number =>
      readFileSync(join(gateway.folder, 'starts.txt'), 'utf8')
        .split('\n')
        .filter((mode) => mode === 'wait').length;
    gateway.write('wish.txt', 'wait');
    const [old = 0] = gateway.workers();
    gateway.signal('SIGHUP');
    await expect.poll(starts).toBe(1);
    process.kill(old, 'SIGKILL');
    await expect.poll(starts).toBe(2);
    gateway.write('wish.txt', '');
    await gateway.logged(reloaded);
    await expect.poll(() => gateway.workers().length).toBe(1);
    expect((await sendChat(gateway)).statusCode).toBe(200);
  });

  test.skipIf(!everything)(
    'and one that is asked for while the first workers still start follows that start',
    async () => {
      // The second worker that starts asks for it.
      const asking = starter.replace(
        'while (wants()',
        `if (readFileSync(at('starts.txt'), 'utf8').length === 2) process.kill(process.ppid, 'SIGHUP');
      while (wants()`,
      );
      const { gateway, wrong } = await start((port) => plain(port, 'workers: 2'), {
        'plugins/starter.mjs': asking,
      });
      await gateway.logged(reloaded);
      await expect.poll(() => serving(gateway)).toEqual(['1 serving', '2 serving']);
      expect(await wrong()).toEqual([]);
    },
  );
});
