import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { budgetOf, expiryOf } from '../../../core/cli/keys/options.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { sluice, startGatewayIn } from './_process.ts';
import { shell, type CommandResult } from './_shell.ts';

const sluiceInShell = shell();

const config = `
  import { defineConfig } from 'sluice';
  import demo from '../../../channels/demo/index.ts';
  export default defineConfig({ channels: [demo({ models: ['a', 'b'] })] });`;

/** `sluice key …` on the database of a new folder. */
function keysIn(folder: string, run: (args: readonly string[]) => Promise<CommandResult> = sluiceInShell) {
  return (...args: string[]) => run(['key', ...args, '--config', join(folder, 'gateway.config.ts')]);
}

/** Each command in a process of its own. */
const processes = async (args: readonly string[]): Promise<CommandResult> => {
  const { code, ...written } = await sluice(args);
  return { code: code ?? -1, ...written };
};

describe('sluice key', () => {
  test('makes a key whose value alone goes to standard output', async () => {
    const key = keysIn(operatorFolder({ 'gateway.config.ts': config }), processes);
    const made = await key(
      'create',
      '--name',
      'ci',
      '--models',
      'a, b-*',
      '--models',
      'c',
      '--expires',
      '30d',
      '--note',
      'for the build',
    );
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^sk-[A-Za-z0-9]{48}\n$/) });
    expect(made.stderr).toMatch(
      /^Created the key "ci" \(key_\w{16}\)\. Its value is shown only this once:\n$/,
    );
    const { stdout } = await key('list');
    const until = new Date(Date.now() + 30 * 86_400_000).toISOString().slice(0, 10);
    expect(stdout).toMatch(/^key_\w{16} {2}ci {2}sk-\w{4}…\w{4} {2}a, b-\*, c {2}no limits {2}valid until /);
    expect(stdout).toContain(`valid until ${until}`);
    expect(stdout).toMatch(/never used {2}for the build\n$/);
    expect(stdout).not.toContain(made.stdout.trim());
  });

  test('lists nothing with a hint, and revokes by id, name or first characters', async () => {
    const key = keysIn(operatorFolder({ 'gateway.config.ts': config }));
    expect((await key('list')).stdout).toBe(
      'There are no keys. Create one with: sluice key create --name NAME\n',
    );
    const made = [
      await key('create', '--name', 'one'),
      await key('create', '--name', 'two'),
      await key('create', '--name', 'three'),
    ];
    const id = /key_\w+/.exec(made[0]?.stderr ?? '')?.[0] ?? '';
    expect((await key('revoke', id)).stdout).toBe(`Revoked the key "one" (${id}).\n`);
    expect((await key('revoke', 'two')).code).toBe(0);
    expect((await key('revoke', made[2]?.stdout.slice(0, 7) ?? '')).code).toBe(0);
    expect(await key('revoke', 'two')).toMatchObject({ code: 1, stderr: 'There is no key "two".\n' });
    expect((await key('list')).stdout).toMatch(/^There are no keys/);
  });

  test('does not guess between keys of one name', async () => {
    const key = keysIn(operatorFolder({ 'gateway.config.ts': config }));
    await key('create', '--name', 'twin');
    await key('create', '--name', 'twin');
    expect(await key('revoke', 'twin')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^"twin" matches 2 keys\. Use the id of one: key_/),
    });
  });

  test('refuses what makes no sense', async () => {
    const key = keysIn(operatorFolder({ 'gateway.config.ts': config }));
    expect(await key('create', '--name', 'x', '--expires', 'soon')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^Invalid time "soon"\./),
    });
    expect(await key('create', '--name', 'x', '--expires', '2020-01-01')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/must lie in the future/),
    });
    expect(await key('create', '--name', 'x', '--models', ' , ')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^--models must not be empty: leave it out to allow every model\./),
    });
    expect(await key('create', 'x')).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/Set the name of a key with --name/),
    });
    expect(await key('revoke')).toMatchObject({ code: 2 });
  });
});

test('a key is created with every limit that the dashboard can set, under the same rules', async () => {
  const key = keysIn(operatorFolder({ 'gateway.config.ts': config }));
  const limits =
    '--budget 25.5usd/month --budget 2000000tokens/day --budget 1usd/5h --budget 9usd/week@Asia/Tokyo --tags a,b --rpm 60 --tpm 90000 --concurrency 4 --addresses 10.0.0.0/8,192.0.2.1';
  expect(await key('create', '--name', 'ci', ...limits.split(' '))).toMatchObject({ code: 0 });
  expect((await key('list')).stdout).toContain(
    '25.5usd/month, 2000000tokens/day, 1usd/5h, 9usd/week@Asia/Tokyo, rpm 60, tpm 90000, concurrency 4, from 10.0.0.0/8 192.0.2.1',
  );
  for (const [option, value, sentence] of [
    ['--rpm', '0', '--rpm must be at least 1.'],
    ['--tpm', 'many', '--tpm must be a whole number.'],
    ['--concurrency', '1.5', '--concurrency must be a whole number.'],
    ['--addresses', '10.0.0.0/33', '--addresses must be an IP address or a range such as 192.0.2.0/24.'],
    ['--budget', '25/month', 'Invalid --budget "25/month". Use an amount, a unit and a period, such as'],
    ['--name', 'x'.repeat(201), '--name must be at most 200 characters.'],
  ] as const) {
    const { code, stderr } = await key('create', '--name', 'bad', option, value);
    expect({ code, sentence: stderr.slice(0, sentence.length) }).toEqual({ code: 2, sentence });
  }
  const twice = ['--budget', '1usd/day', '--budget', '2usd/day'];
  expect(await key('create', '--name', 'bad', ...twice)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^--budget must not limit the same unit twice for one period\./),
  });
  expect((await key('list')).stdout.trim().split('\n')).toHaveLength(1);
});

test.each([
  ['0.000001usd/total', { unit: 'micro-dollar', period: 'total', amount: 1 }],
  ['1234.5usd/month', { unit: 'micro-dollar', period: 'month', amount: 1_234_500_000 }],
  ['0usd/day', { unit: 'micro-dollar', period: 'day', amount: 0 }],
  ['2usd/5h', { unit: 'micro-dollar', period: 'hours', hours: 5, amount: 2_000_000 }],
  [
    '0.5usd/week@Europe/Berlin',
    { unit: 'micro-dollar', period: 'week', timeZone: 'Europe/Berlin', amount: 500_000 },
  ],
  ['7tokens/day', { unit: 'token', period: 'day', amount: 7 }],
])('--budget reads %s without a rounding error', (text, budget) => {
  expect(budgetOf(text)).toEqual(budget);
});

test.each([
  '',
  '1',
  'usd/day',
  '1.5tokens/day',
  '-1usd/day',
  '1usd/year',
  '1usd/0h',
  '1.0000001usd/day',
  '1e3usd/day',
])('--budget refuses "%s"', (text) => {
  expect(() => budgetOf(text)).toThrow('Invalid --budget');
});

test('--expires takes a time from now, or the end of a day', () => {
  const now = Date.parse('2027-01-01T12:00:00Z');
  expect(new Date(expiryOf('12h', now)).toISOString()).toBe('2027-01-02T00:00:00.000Z');
  expect(new Date(expiryOf('2w', now)).toISOString()).toBe('2027-01-15T12:00:00.000Z');
  expect(new Date(expiryOf('2027-01-31', now)).toISOString()).toBe('2027-01-31T23:59:59.999Z');
  for (const nonsense of ['', '3', '3m', '2027-13-01', '2027-02-30', 'tomorrow'])
    expect(() => expiryOf(nonsense, now)).toThrow('Invalid time');
});

describe('while the gateway runs', () => {
  test('a new key is accepted, and a revoked one refused, without a restart', async () => {
    const folder = operatorFolder({ 'gateway.config.ts': config });
    const gateway = await startGatewayIn(folder);
    const key = keysIn(folder, processes);
    const value = (await key('create', '--name', 'late', '--models', 'a')).stdout.trim();
    const sendChat = async (): Promise<Response> =>
      fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${value}` } });
    let status = 0;
    // Seldom enough that the address is not taken for one that guesses keys.
    const poll = setInterval(() => void sendChat().then((response) => (status = response.status)), 100);
    try {
      await expect.poll(() => status).toBe(200);
      expect(await (await sendChat()).json()).toMatchObject({ data: [{ id: 'a' }] });
      expect(await key('revoke', 'late')).toMatchObject({ code: 0 });
      await expect.poll(() => status).toBe(401);
    } finally {
      clearInterval(poll);
    }
    expect(await (await sendChat()).json()).toMatchObject({ error: { code: 'invalid_api_key' } });
    expect((await fetch(`${gateway.url}/v1/models`, { headers: { 'x-api-key': gateway.key } })).status).toBe(
      200,
    );
  });
});
