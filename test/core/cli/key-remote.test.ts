import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import { adminPassword, logIn, type Admin } from '../../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { shell } from './_shell.ts';

const sluice = shell();
const config = `
  import { defineConfig } from 'sluice';
  import demo from '../../../channels/demo/index.ts';
  export default defineConfig({ channels: [demo()] });`;

let gateway: TestGateway;
let page: Admin;
let token: string;
beforeAll(async () => {
  gateway = await startGateway({ adminPassword, channels: [demo()] });
  page = await logIn(gateway.url);
  ({ value: token } = await page.request('createToken', { body: { name: 'cli', scopes: ['keys:write'] } }));
});
afterAll(() => gateway.close());

const remote = (...args: string[]) =>
  sluice(['key', ...args], { SLUICE_GATEWAY: gateway.url, SLUICE_TOKEN: token });

describe.each([
  [
    'the database of the config',
    () => {
      const file = join(operatorFolder({ 'gateway.config.ts': config }), 'gateway.config.ts');
      return (...args: string[]) => sluice(['key', ...args, '--config', file]);
    },
  ],
  ['the admin API of a gateway', () => remote],
] as const)('sluice key on %s', (_name, open) => {
  test('makes, lists, rotates with a grace period, and revokes', async () => {
    const key = open();
    const made = await key('create', '--name', 'cli-key', '--budget', '5usd/month', '--json');
    expect(made).toMatchObject({ code: 0, stderr: '' });
    const { key: record, value } = JSON.parse(made.stdout) as { key: { id: string }; value: string };
    expect(record).toMatchObject({
      name: 'cli-key',
      budgets: [{ unit: 'micro-dollar', period: 'month', amount: 5_000_000 }],
    });
    expect(record).not.toHaveProperty('hash');
    const listed = await key('list');
    expect(listed.stdout).toContain(record.id);
    expect(listed.stdout).not.toContain(value);

    const rotated = await key('rotate', 'cli-key', '--grace', '7d');
    expect(rotated).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sk-\w{48}\n$/) });
    expect(rotated.stderr).toContain('Rotated the key "cli-key"');
    expect((await key('end-grace', record.id)).stdout).toBe('The old value is invalid from now on.\n');
    expect((await key('end-grace', record.id, '--json')).stdout).toBe('{"ended":false}\n');
    expect((await key('revoke', 'cli-key')).stdout).toBe(`Revoked the key "cli-key" (${record.id}).\n`);
    expect(await key('revoke', 'cli-key')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no key "cli-key".'),
    });
  });

  test('refuses a grace that is too long before it does anything', async () => {
    expect(await open()('rotate', 'any', '--grace', '31d')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Maximum: 30d'),
    });
  });
});

describe('sluice key at a gateway', () => {
  test('says what the gateway says, without the token', async () => {
    const { value: weak } = await page.request('createToken', {
      body: { name: 'weak', scopes: ['keys:read'] },
    });
    const result = await sluice(['key', 'create', '--name', 'x'], {
      SLUICE_GATEWAY: gateway.url,
      SLUICE_TOKEN: weak,
    });
    expect(result).toMatchObject({
      code: 3,
      stdout: '',
      stderr: expect.stringContaining('needs the scope keys:write'),
    });
    const gone = await sluice(['key', 'list', '--gateway', 'http://127.0.0.1:9', '--token', weak]);
    expect(gone.code).toBe(1);
    const notOne = await sluice(['key', 'list', '--gateway', gateway.url, '--token', gateway.key]);
    expect(notOne).toMatchObject({ code: 2, stderr: expect.stringContaining('begin with sla_') });
    for (const { stdout, stderr } of [result, gone, notOne])
      for (const secret of [weak, gateway.key]) expect(stdout + stderr).not.toContain(secret);
  });
});
