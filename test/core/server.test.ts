import { execFileSync } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { compiled } from '../support/compiled.ts';
import { startGateway } from '../support/gateway.ts';
import { operatorFolder } from '../support/operator-folder.ts';

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
