import { execFileSync } from 'node:child_process';
import { Server } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import demo from '../../channels/demo/index.ts';
import openai from '../../channels/openai.ts';
import { readWithSecrets } from '../../core/config/load-config.ts';
import { createLog } from '../../core/log.ts';
import { defineSecrets } from '../../core/sdk/author/define-secrets.ts';
import { startServer } from '../../core/server.ts';
import { secretFrom } from '../../core/settings/secret-reference.ts';
import { compiled } from '../support/compiled.ts';
import { startGateway } from '../support/gateway.ts';
import { operatorFolder } from '../support/operator-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('a gateway that starts leaves out the HTTP client that Node would bring', () => {
  const script = `
    await import('./core/server.ts');
    console.log(process.moduleLoadList.filter((name) => /undici|node:http$|NativeModule http$/.test(name)).join());
  `;
  const loaded = execFileSync(
    process.execPath,
    ['--conditions=sluice-source', '--input-type=module', '--eval', script],
    { encoding: 'utf8', env: { PATH: process.env.PATH, ...compiled } },
  );
  expect(loaded.trim()).toBe('NativeModule http');
});

test('a start does not count as a use of the bootstrap key', async () => {
  const database = `sqlite:${operatorFolder()}/sluice.db`;
  const bootstrapKey = `sk-${'b'.repeat(48)}`;
  for (let starts = 0; starts < 2; starts += 1) {
    // oxlint-disable-next-line no-await-in-loop -- the second start finds the key
    const gateway = await startGateway({ database, bootstrapKey, channels: [demo()] });
    onTestFinished(() => gateway.close());
    // oxlint-disable-next-line no-await-in-loop -- as above
    const keys = await gateway.apiKeys.list();
    const named = keys.find(({ name }) => name === 'bootstrap');
    expect(named).toBeDefined();
    expect(named?.lastUsedAt).toBeUndefined();
    // oxlint-disable-next-line no-await-in-loop -- as above
    await gateway.close();
  }
});

test('a gateway that cannot accept a connection says so in its log and goes on', async () => {
  const servers: Server[] = [];
  const listen = Server.prototype.listen;
  vi.spyOn(Server.prototype, 'listen').mockImplementation(function note(this: Server, ...words) {
    servers.push(this);
    return Reflect.apply(listen, this, words) as Server;
  });
  onTestFinished(() => void vi.restoreAllMocks());
  const gateway = await startGateway({ channels: [demo()] });
  onTestFinished(() => gateway.close());
  const [server] = servers;
  // As Node does where the process has no file descriptors left.
  for (let count = 0; count < 3; count += 1) server?.emit('error', new Error('accept EMFILE'));
  expect(servers).toHaveLength(1);
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
});

test('a gateway whose database cannot be closed closes its sources of secrets all the same', async () => {
  let closed = 0;
  const own = defineSecrets({
    name: 'secrets-own',
    source: 'own',
    open: (_, { onClose }) => {
      onClose(() => void (closed += 1));
      return { read: async () => 'key-of-the-own-source' };
    },
  });
  const folder = temporaryFolder();
  const log = createLog('silent');
  const exported = {
    listen: { port: 0, host: '127.0.0.1' },
    database: 'sqlite::memory:',
    data: folder,
    plugins: [own()],
    channels: [openai({ key: secretFrom('own:key'), models: ['m'] })],
  };
  const config = await readWithSecrets(exported, join(folder, 'gateway.config.ts'), { log });
  const server = await startServer(config, log);
  const close = server.stores.close.bind(server.stores);
  vi.spyOn(server.stores, 'close').mockImplementationOnce(async () => {
    await close();
    throw new Error('the disk is full');
  });
  await expect(server.close()).rejects.toThrow('the disk is full');
  expect(closed).toBe(1);
});
