import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import { groupSummaries, rows, type Group } from '../../../core/cli/admin/rows.ts';
import { openAdminTokens } from '../../../core/state/admin-tokens/open.ts';
import { openStores } from '../../../core/state/stores.ts';
import { openapiDocument } from '../../../plugins/admin/openapi.ts';
import { adminPassword, logIn, type Admin } from '../../plugins/admin/_client.ts';
import { scopes } from '../../../plugins/admin/access/needs.ts';
import { compiled } from '../../support/compiled.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { operatorFolder } from '../../support/operator-folder.ts';
import { start as startProcess } from './_process.ts';
import { shell } from './_shell.ts';

const sluice = shell();
let gateway: TestGateway;
let page: Admin;
let token: string;
beforeAll(async () => {
  gateway = await startGateway({ adminPassword, channels: [demo()] });
  page = await logIn(gateway.url);
  ({ value: token } = await page.request('createToken', { body: { name: 'cli', scopes: [...scopes] } }));
});
afterAll(() => gateway.close());

const at = (...args: string[]) => sluice(args, { SLUICE_GATEWAY: gateway.url, SLUICE_TOKEN: token });
const json = async <T>(...args: string[]): Promise<T> => {
  const result = await at(...args, '--json');
  expect(result).toMatchObject({ code: 0, stderr: '' });
  return JSON.parse(result.stdout) as T;
};
const id = async (...args: string[]): Promise<string> => {
  const result = await at(...args);
  expect(result).toMatchObject({ code: 0 });
  return result.stdout.trim();
};

/** A gateway in a test's process cannot reload: whether a change was applied is not waited for. */
const now = ['--wait', 'false'];

describe('sluice on top of the admin API', () => {
  test('makes, shows, changes, switches and deletes an organization, a team and a member by their names', async () => {
    const organization = await id('organization', 'create', 'Acme', '--budget', '500usd/month');
    expect(organization).toMatch(/^org_\w{16}$/);
    const team = await id(
      'team',
      'create',
      'red',
      '--organization',
      'Acme',
      '--models',
      'demo,gpt-*',
      '--rpm',
      '60',
    );
    const member = await id('member', 'create', 'Ada', '--organisation', organization);
    expect(await json('team', 'show', 'red')).toMatchObject({
      id: team,
      kind: 'team',
      organisation: organization,
      models: ['demo', 'gpt-*'],
      requestsPerMinute: 60,
    });
    const listed = await at('organization', 'list');
    expect(listed.stdout).toMatch(/^ID +NAME +BUDGETS +ENABLED\n/);
    expect(listed.stdout).toContain('$0 of $500/month');
    expect(await at('team', 'update', 'red', '--clear-models', '--name', 'crimson')).toMatchObject({
      code: 0,
      stdout: `${team}\n`,
      stderr: 'Changed the team "crimson":\n',
    });
    expect(await json('team', 'show', team)).not.toHaveProperty('models');
    await at('team', 'disable', 'crimson');
    expect(await json('team', 'show', team)).toMatchObject({ enabled: false });

    expect(await at('team', 'delete', 'crimson')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('To confirm add --yes'),
    });
    expect(await at('team', 'delete', 'crimson', '--yes')).toMatchObject({
      code: 0,
      stderr: `Deleted the team "crimson" (${team}).\n`,
    });
    expect(await at('team', 'show', 'crimson')).toMatchObject({
      code: 4,
      stderr: 'There is no team "crimson".\n',
    });
    expect(await at('organization', 'delete', 'Acme', '--yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('"Ada" belongs to "Acme"'),
    });
    await at('member', 'delete', member, '--yes');
    await at('organization', 'delete', 'Acme', '--yes');
  });

  test('lists page by page, as JSON and CSV', async () => {
    await Promise.all(
      Array.from({ length: 7 }, (_, index) =>
        page.request('createOwner', {
          body: { kind: 'service-account', name: index === 0 ? '=1+1' : `bot ${index}` },
        }),
      ),
    );
    const some = await at('service-account', 'list', '--limit', '3');
    expect(some.stdout.trim().split('\n')).toHaveLength(4);
    expect(some.stderr).toContain('There are more');
    expect(await json<unknown[]>('service-account', 'list', '--all')).toHaveLength(7);
    const csv = await at('service-account', 'list', '--csv', '--search', '=1');
    expect(csv.stdout).toMatch(/^id,name,.*\r\nsvc_\w{16},'=1\+1,/);
  });

  test('lists more than one page of the API', async () => {
    const { owners } = gateway.apiKeys;
    for (let index = 0; index < 501; index += 1)
      // oxlint-disable-next-line no-await-in-loop -- one write after the other
      await owners.create({ kind: 'member', name: `many ${index}` });
    expect(await json<unknown[]>('member', 'list', '--search', 'many', '--all')).toHaveLength(501);
    expect(await json<unknown[]>('member', 'list', '--search', 'many', '--limit', '501')).toHaveLength(501);
  });

  test('invites a user, and gives and takes a role and teams', async () => {
    const team = await id('team', 'create', 'blue');
    const invited = await at('user', 'create', 'ada@example.com', '--teams', 'blue:lead', '--role', 'member');
    expect(invited).toMatchObject({ code: 0, stderr: expect.stringContaining('shown only this once') });
    expect(invited.stdout).toMatch(new RegExp(`^${gateway.url}/dashboard/#/invitation/\\S+\\n$`));
    expect(await json('user', 'show', 'ada@example.com')).toMatchObject({ teams: [{ team, lead: true }] });
    await at('user', 'update', 'ada@example.com', '--role', 'auditor', '--teams', 'blue');
    expect(await json('user', 'list', '--team', 'blue')).toEqual([
      expect.objectContaining({ role: 'auditor', teams: [{ team, lead: false }] }),
    ]);
    expect((await at('user', 'invite', 'ada@example.com')).stdout).toContain('/invitation/');
    await at('user', 'delete', 'ada@example.com', '--yes');
    expect(await json('user', 'list')).toEqual([]);
  });

  test('tells of two who change one thing the second', async () => {
    const team = await id('team', 'create', 'edited');
    const { version } = await json<{ version: string }>('team', 'show', 'edited');
    await at('team', 'update', 'edited', '--note', 'first');
    expect(await at('team', 'update', team, '--note', 'second', '--if-match', version)).toMatchObject({
      code: 5,
      stderr: 'This was changed since you read it. Read it again, and retry.\n',
    });
  });

  test('creates one thing with one idempotency key', async () => {
    const create = (): Promise<string> => id('team', 'create', 'once', '--idempotency-key', 'deploy-17');
    expect(await create()).toBe(await create());
  });

  test('shows and sets budgets of an owner, of a key and of end users', async () => {
    const team = await id('team', 'create', 'spender');
    await page.request('createKey', { body: { name: 'laptop' } });
    expect((await at('budget', 'set', 'spender', '25usd/month', '2usd/5h')).stdout).toContain(
      '$0 of $25/month, $0 of $2/5h',
    );
    await at('budget', 'set', 'laptop', '2000000tokens/total', '--end-user-budget', '1usd/day');
    expect(await json('budget', 'show', 'laptop')).toMatchObject({
      budgets: [{ unit: 'token', amount: 2_000_000, period: 'total' }],
      endUserBudget: { unit: 'micro-dollar', amount: 1_000_000, period: 'day' },
    });
    // The budgets stay where only those of end users are set.
    await at('budget', 'set', 'laptop', '--end-user-budget', '2usd/day');
    expect((await at('budget', 'keys')).stdout).toMatch(/0 tokens of 2000000 tokens\/total +\$2\/day/);
    expect((await at('budget', 'list', '--kind', 'team')).stdout).toContain(team);
    await at('budget', 'clear', 'spender', '--yes');
    expect(await json('budget', 'list', '--kind', 'team')).toEqual([]);
    expect(await at('budget', 'set', 'laptop', '5eur/month')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Invalid --budget'),
    });
  });

  test('adds a channel whose key comes from a file, never from an argument', async () => {
    const file = join(operatorFolder({ 'key.txt': 'sk-a-secret-of-a-provider\n' }), 'key.txt');
    const refused = await at(
      'channel',
      'create',
      'eu',
      '--type',
      'openai',
      '--set',
      'key=sk-a-secret-of-a-provider',
    );
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--secret key=FILE') });
    const create = ['channel', 'create', 'eu', '--type', 'openai', '--secret', `key=${file}`];
    const made = await at(...create, '--set', 'models=gpt-a,gpt-b', '--set', 'priority=2', ...now);
    expect(made).toMatchObject({ code: 0, stderr: 'Created the channel "eu".\n' });
    const entry = await json('channel', 'show', 'eu');
    expect(entry).toMatchObject({
      origin: 'run-time',
      value: { type: 'openai', options: { models: ['gpt-a', 'gpt-b'], key: { last4: 'ider' } } },
    });
    // The key stays sealed where only another option is changed.
    expect(await at('channel', 'update', 'eu', '--set', 'models=gpt-c', ...now)).toMatchObject({ code: 0 });
    expect(await json('channel', 'show', 'eu')).toMatchObject({
      value: { options: { models: ['gpt-c'], key: { last4: 'ider' } } },
    });
    await at('channel', 'disable', 'eu');
    expect(await json('channel', 'show', 'eu')).toMatchObject({ state: 'disabled' });
    const history = await json<{ revision: number }[]>('channel', 'history');
    expect(history).toHaveLength(3);
    await at('channel', 'undo', String(history[0]?.revision), ...now);
    expect(await json('channel', 'show', 'eu')).toMatchObject({ state: 'active' });

    await at('channel', 'create', 'us', '--type', 'demo', ...now);
    expect(await at('channel', 'order', 'us', 'eu', ...now)).toMatchObject({ code: 0 });
    const { entries } = await page.request('listConfig', { query: { kind: 'channel', origin: 'run-time' } });
    expect(entries.map(({ name }) => name)).toEqual(['us', 'eu']);
    await at('channel', 'delete', 'us', '--yes', ...now);
    await at('channel', 'delete', 'eu', '--yes', ...now);
  });

  test('tests, switches off and on and resets a channel of the config file, which it does not change', async () => {
    expect(await at('channel', 'test', 'demo')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^ok +true/),
    });
    expect(await at('channel', 'disable', 'demo')).toMatchObject({ code: 0 });
    expect(await json('channel', 'list')).toEqual([expect.objectContaining({ id: 'demo', enabled: false })]);
    await at('channel', 'enable', 'demo');
    expect(await at('channel', 'reset', 'demo')).toMatchObject({ code: 0 });
    expect(await at('channel', 'delete', 'demo', '--yes')).toMatchObject({
      code: 1,
      stderr: 'channel:demo is defined in gateway.config.ts. Change it there.\n',
    });
  });

  test('names a model anew, and sets a price', async () => {
    expect(await at('alias', 'create', 'fast', 'demo', ...now)).toMatchObject({
      code: 0,
      stderr: 'Created the alias "fast".\n',
    });
    expect((await at('alias', 'list')).stdout).toMatch(/fast +run-time +active +demo/);
    expect(
      await at('price', 'create', 'demo', '--set', 'input=1.5', '--set', 'output=3', ...now),
    ).toMatchObject({
      code: 0,
    });
    expect(await json('price', 'show', 'demo')).toMatchObject({ value: { input: 1.5, output: 3 } });
    const [latest] = await json<{ revision: number }[]>('alias', 'history');
    expect(await at('price', 'undo', String(latest?.revision), ...now)).toMatchObject({
      code: 1,
      stderr: `Change ${latest?.revision} is not in the list of "sluice price history". Use a revision from that list.\n`,
    });
    expect(await at('price', 'undo', '999', ...now)).toMatchObject({ code: 4 });
    await at('alias', 'delete', 'fast', '--yes', ...now);
    await at('price', 'delete', 'demo', '--yes');
  });

  test('sums usage by team as CSV, lists it and exports it', async () => {
    const team = await id('team', 'create', 'caller');
    const { value } = await page.request('createKey', { body: { name: 'calls', team } });
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }] }),
    });
    await response.arrayBuffer();
    await expect
      .poll(async () => (await at('usage', '--by', 'team', '--since', '30d', '--csv')).stdout)
      .toMatch(
        new RegExp(`^group,name,calls,.*,dollars,chargedDollars\\r\\n${team},caller,1,0,0,\\d+,\\d+,`),
      );
    expect((await at('usage', 'list', '--team', 'caller')).stdout).toContain('demo');
    expect((await at('usage', 'export', '--team', 'caller')).stdout.split('\n').length).toBeGreaterThan(1);
    expect(await at('usage', '--since', 'yesterday')).toMatchObject({ code: 2 });
  });

  test('makes a token with few scopes, which may then do little', async () => {
    const weak = await id('token', 'create', 'weak', '--scopes', 'owners:read', '--days', '1');
    expect(weak).toMatch(/^sla_\w{40}$/);
    const as = (...args: string[]) => sluice(args, { SLUICE_GATEWAY: gateway.url, SLUICE_TOKEN: weak });
    expect(await as('team', 'list')).toMatchObject({ code: 0 });
    expect(await as('team', 'create', 'x')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('needs the scope owners:write'),
    });
    await at('token', 'revoke', 'weak', '--yes');
    const ended = await as('team', 'list');
    expect(ended).toMatchObject({ code: 3, stderr: expect.stringContaining('was revoked') });
    expect(ended.stderr).not.toContain(weak);
    expect((await at('audit', '--limit', '5')).stdout).toContain('token-revoke');
  });

  test('says what is wrong with a command line before it asks anybody', async () => {
    expect(await at('team')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Name a subcommand: list, show'),
    });
    expect(await at('team', 'destroy')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Unknown subcommand "destroy". Use one of: list'),
    });
    expect(await at('team', 'show')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('TEAM is missing'),
    });
    expect(await at('team', 'list', '--colour')).toMatchObject({ code: 2 });
    expect(await at('team', 'create', 'x', '--rpm', 'many')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--rpm must be a number'),
    });
    expect(await at('team', 'create', 'x', '--rpm', '0')).toMatchObject({
      code: 1,
      stderr: 'requestsPerMinute must be at least 1.\n',
    });
    const { url } = gateway;
    const gone = await sluice(['team', 'list'], {
      SLUICE_GATEWAY: 'http://127.0.0.1:9',
      SLUICE_TOKEN: token,
    });
    expect(gone).toMatchObject({ code: 1, stderr: expect.stringContaining('could not be reached') });
    expect(await sluice(['team', 'list'], { SLUICE_GATEWAY: url })).toMatchObject({ code: 2 });
  });

  test.each(Object.keys(groupSummaries) as Group[])(
    'explains sluice %s, and each of its commands',
    async (group) => {
      expect((await sluice(['help', group])).stdout).toContain(`Usage: sluice ${group} COMMAND`);
      const first = rows.find((row) => row.group === group && row.verb !== '');
      const result = await at(group, first?.verb ?? '', '--help');
      expect(result.stdout).toMatch(new RegExp(`^Usage: sluice ${group} ${first?.verb}`));
    },
  );
});

describe('sluice without --gateway', () => {
  test('asks the gateway of the config, with a token for the one command', async () => {
    const folder = operatorFolder({});
    const database = `sqlite:${join(folder, 'sluice.db')}`;
    const own = await startGateway({ adminPassword, database, channels: [demo()] });
    try {
      const port = new URL(own.url).port;
      const config = join(folder, 'gateway.config.ts');
      writeFileSync(
        config,
        `import demo from 'sluice/channels/demo';
export default { listen: { port: ${port} }, database: ${JSON.stringify(database)}, channels: [demo()] };`,
      );
      const made = await sluice(['team', 'create', 'here', '--config', config]);
      expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^team_/) });
      const { value } = JSON.parse(
        (
          await sluice(
            'token create ci --scopes owners:read --days 300 --json'.split(' ').concat('--config', config),
          )
        ).stdout,
      ) as { value: string };
      expect(await sluice(['team', 'list'], { SLUICE_GATEWAY: own.url, SLUICE_TOKEN: value })).toMatchObject({
        code: 0,
      });
      const admin = await logIn(own.url);
      expect((await admin.request('listTokens')).tokens.map(({ name }) => name)).toEqual(['ci']);
      const { entries } = await admin.request('listAudit');
      expect(entries.find(({ action }) => action === 'owner-create')?.actor).toMatchObject({
        kind: 'token',
        name: expect.stringMatching(/^command line of \S+@\S+$/),
      });
      await own.close();
      expect(await sluice(['team', 'list', '--config', config])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('No gateway is running at http://127.0.0.1:'),
      });
    } finally {
      await own.close();
    }
  });

  test('leaves no token behind when it is ended', async () => {
    const requested = Promise.withResolvers<void>();
    // Answers what the command asks first, and keeps it waiting for the rest.
    const silent = createServer((request, response) => {
      if (request.url === '/api/admin/openapi.json') response.end(JSON.stringify(openapiDocument()));
      else requested.resolve();
    });
    onTestFinished(() => {
      silent.closeAllConnections();
      silent.close();
    });
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const { port } = silent.address() as AddressInfo;
    const folder = operatorFolder();
    const database = `sqlite:${join(folder, 'sluice.db')}`;
    const config = join(folder, 'gateway.config.ts');
    writeFileSync(
      config,
      `export default { listen: { port: ${port} }, database: ${JSON.stringify(database)}, channels: [] };`,
    );
    const { child, ended } = startProcess(
      process.execPath,
      [
        fileURLToPath(new URL('../../../core/cli/sluice.js', import.meta.url)),
        'team',
        'list',
        '--config',
        config,
      ],
      compiled,
    );
    await Promise.race([
      requested.promise,
      ended.then((outcome) => Promise.reject(new Error(JSON.stringify(outcome)))),
    ]);
    const stores = openStores(database);
    onTestFinished(() => stores.close());
    const tokens = openAdminTokens(stores);
    const [made] = await tokens.list();
    expect(made?.expiresAt).toBeLessThanOrEqual(Date.now() + 3_600_000);
    child.kill('SIGTERM');
    expect(await ended).toEqual({ code: null, signal: 'SIGTERM', stdout: '', stderr: '' });
    expect(await tokens.list()).toEqual([]);
  });
});
