import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import demo from '../../../channels/demo/index.ts';
import { ownModels } from '../../../plugins/admin/access/own-models.ts';
import { eventually } from '../../support/eventually.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { adminPassword, logIn, signIn, type Admin } from './_client.ts';

const password = 'correct horse battery';
const email = 'grace@example.com';

let gateway: TestGateway;
let root: Admin;
let team = '';
let organisation = '';
let member = '';

beforeAll(async () => {
  gateway = await startGateway({
    adminPassword,
    channels: [demo()],
    prices: { 'demo*': { input: 500, output: 1000 } },
  });
  root = await logIn(gateway.url);
  const owner = async (body: object): Promise<string> => (await root.request('createOwner', { body })).id;
  organisation = await owner({ kind: 'organisation', name: 'Acme', models: ['demo*'] });
  team = await owner({ kind: 'team', name: 'red', organisation, pricing: { factor: 2 } });
  const { user, invitation } = await root.request('createUser', {
    body: { email, name: 'Grace', organisation, teams: [{ team, lead: true }] },
  });
  member = user.member;
  await root.request('acceptInvitation', { body: { token: invitation.token, password } });
});
afterAll(() => gateway.close());

async function keyOf(body: object): Promise<{ readonly id: string; readonly value: string }> {
  const { key, value } = await root.request('createKey', { body: { name: 'k', ...body } });
  return { id: key.id, value };
}

/** Makes calls with a key, and waits until the last of them is recorded. */
async function call(secret: string, times: number): Promise<void> {
  let id = '';
  for (let made = 0; made < times; made += 1) {
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'hi' }] }),
    });
    // oxlint-disable-next-line no-await-in-loop
    await response.text();
    id = response.headers.get('x-request-id') ?? '';
  }
  await eventually(async () => {
    await root.request('findUsage', { id });
  });
}

describe('a user', () => {
  test('sees itself and changes its name, and nothing else', async () => {
    const grace = await signIn(gateway.url, email, password);
    expect(await grace.request('ownUser')).toMatchObject({ email, name: 'Grace', hasPassword: true });
    expect(await grace.request('updateOwnUser', { body: { name: ' Grace Hopper ' } })).toMatchObject({
      name: 'Grace Hopper',
    });
    expect((await grace.refused('updateOwnUser', { body: { name: '' } })).body.error.param).toBe('name');
    expect((await grace.refused('updateOwnUser', { body: { name: 'G', role: 'admin' } })).status).toBe(400);
    expect((await root.refused('ownUser')).status).toBe(403);
    expect((await root.refused('updateOwnUser', { body: { name: 'X' } })).status).toBe(403);
    const [entry] = (await root.request('listAudit')).entries;
    expect(entry).toMatchObject({ action: 'user-update', before: { name: 'Grace' } });
  });

  test('signs out everywhere', async () => {
    const [one, other] = [
      await signIn(gateway.url, email, password),
      await signIn(gateway.url, email, password),
    ];
    expect((await one.request('listOwnSessions')).sessions.length).toBeGreaterThanOrEqual(2);
    await one.request('endOwnSessions');
    expect((await one.refused('session')).status).toBe(401);
    expect((await other.refused('session')).status).toBe(401);
    expect((await root.request('session')).session).toBeTruthy();
    expect((await root.refused('endOwnSessions')).status).toBe(403);
  });

  test('finds the models that its keys may call, without the channels', async () => {
    const grace = await signIn(gateway.url, email, password);
    const names = async (): Promise<readonly string[]> =>
      (await grace.request('listModels')).models.map(({ id }) => id);
    expect(await names()).toEqual([]);
    const own = await keyOf({ member, models: ['demo-thinking', 'not-of-the-organisation'] });
    expect(await names()).toEqual(['demo-thinking']);
    const ofTeam = await keyOf({ team });
    const all = (await root.request('listModels')).models;
    const { models } = await grace.request('listModels');
    expect(models.map(({ id }) => id)).toEqual(all.map(({ id }) => id));
    expect(models.every(({ channels }) => channels.length === 0)).toBe(true);
    expect(all.every(({ channels }) => channels.length > 0)).toBe(true);
    await root.request('disableKey', { id: ofTeam.id, body: {} });
    expect(await names()).toEqual(['demo-thinking']);
    await root.request('deleteKey', { id: own.id });
    expect(await names()).toEqual([]);
  });
});

describe('spend', () => {
  test('of keys is listed with them, and orders them for whoever may see them', async () => {
    const cheap = await keyOf({ member });
    const dear = await keyOf({ team });
    const foreign = await keyOf({});
    const unused = await keyOf({ member });
    await call(cheap.value, 1);
    await call(dear.value, 3);
    await call(foreign.value, 2);
    const listed = async (
      admin: Admin,
      query: Readonly<Record<string, string | number>>,
    ): Promise<readonly (readonly [string, number | undefined])[]> =>
      (await admin.request('listKeys', { query })).keys.map(({ id, spent }) => [id, spent?.calls]);
    expect(await listed(root, { spend: 'true' })).toEqual(
      expect.arrayContaining([
        [cheap.id, 1],
        [dear.id, 3],
        [unused.id, 0],
      ]),
    );
    expect((await listed(root, {}))[0]?.[1]).toBeUndefined();
    expect((await listed(root, { sort: 'spend' })).slice(0, 3)).toEqual([
      [dear.id, 3],
      [foreign.id, 2],
      [cheap.id, 1],
    ]);
    expect(await listed(root, { sort: 'spend', limit: 1 })).toHaveLength(1);
    expect(await listed(root, { sort: 'spend', owner: team })).toEqual([[dear.id, 3]]);
    expect(await listed(root, { sort: 'spend', owner: 'nobody' })).toEqual([]);
    const grace = await signIn(gateway.url, email, password);
    expect(await listed(grace, { sort: 'spend' })).toEqual([
      [dear.id, 3],
      [cheap.id, 1],
    ]);
    expect((await root.refused('listKeys', { query: { sort: 'spend', search: 'k' } })).body.error.param).toBe(
      'search',
    );
    await root.request('deleteKey', { id: dear.id });
    expect((await listed(root, { sort: 'spend' })).map(([id]) => id)).not.toContain(dear.id);
  });

  test('is told beside what was charged by the price rule of the time of each call, whatever the rule is later', async () => {
    const since = 0;
    const sumOf = async (query: Readonly<Record<string, string | number>>) => {
      const { sums, totals } = await root.request('sumUsage', { query: { since, ...query } });
      return { all: sums, one: sums[0], totals };
    };
    const { microDollars: cost, chargedMicroDollars: charged } = (await sumOf({ by: 'team' })).one ?? {};
    expect(cost).toBeGreaterThan(0);
    expect(charged).toBe(2 * (cost ?? 0));
    const { id, value } = await keyOf({ team });
    const row = { model: '*', price: { input: 1_000, output: 1_000 } };
    await root.request('updateOwner', { id: team, body: { pricing: { models: [row] } } });
    await call(value, 1);
    await root.request('updateOwner', { id: team, body: { pricing: null } });
    const { records } = await root.request('listUsage', { query: { keyId: id } });
    const { microDollars: added = 0, chargedMicroDollars: byRow = 0 } = records[0] ?? {};
    expect(byRow).toBeGreaterThan(added);
    const expected = { microDollars: (cost ?? 0) + added, chargedMicroDollars: (charged ?? 0) + byRow };
    expect((await sumOf({ by: 'team' })).one).toMatchObject(expected);
    expect((await sumOf({ by: 'model', team })).one).toMatchObject(expected);
    expect((await sumOf({ by: 'day', team, since: Date.now() - 3_600_000 })).totals).toMatchObject(expected);
    const ofKey = (await sumOf({ by: 'keyId' })).all.find(({ group }) => group === id);
    expect(ofKey).toMatchObject({ microDollars: added, chargedMicroDollars: byRow });
    await call(value, 1);
    expect((await sumOf({ by: 'keyId', keyId: id })).one).toMatchObject({
      microDollars: 2 * added,
      chargedMicroDollars: byRow + added,
    });
    await root.request('deleteKey', { id });
  });
});

test('a key that is given to somebody else meanwhile is not changed', async () => {
  const { id } = await keyOf({ team });
  const grace = await signIn(gateway.url, email, password);
  const { apiKeys } = gateway;
  const update = apiKeys.update.bind(apiKeys);
  const slow = vi.spyOn(apiKeys, 'update').mockImplementationOnce(async (...given) => {
    await update(id, { team: undefined });
    return update(...given);
  });
  expect((await grace.send('updateKey', { id, body: { note: 'mine' } })).status).toBe(404);
  slow.mockRestore();
  expect(await root.request('findKey', { id })).not.toHaveProperty('note', 'mine');
  await root.request('deleteKey', { id });
});

test.each([
  ['rotate', 'rotateKey', { body: { graceSeconds: 0 } }],
  ['endOldSecret', 'endOldSecret', {}],
  ['revoke', 'deleteKey', {}],
] as const)(
  'a key that is given to somebody else meanwhile is not for %s',
  async (method, route, request) => {
    const { id } = await keyOf({ team });
    await root.request('rotateKey', { id, body: { graceSeconds: 60 } });
    const grace = await signIn(gateway.url, email, password);
    const { apiKeys } = gateway;
    const work = apiKeys[method].bind(apiKeys) as (...given: unknown[]) => Promise<never>;
    const slow = vi.spyOn(apiKeys, method).mockImplementationOnce(async (...given: unknown[]) => {
      await apiKeys.update(id, { team: undefined });
      return work(...given);
    });
    const before = await apiKeys.byId(id);
    expect((await grace.send(route, { id, ...request } as never)).status).toBe(404);
    slow.mockRestore();
    const { team: _, ...rest } = before ?? {};
    expect(await apiKeys.byId(id)).toEqual(rest);
    expect((await root.request('findKey', { id })).oldSecret).toBeDefined();
    await root.request('deleteKey', { id });
  },
);

test('a key that somebody changes meanwhile is not deleted by its old version', async () => {
  const { id } = await keyOf({ team });
  const { version } = await root.request('findKey', { id });
  const { apiKeys } = gateway;
  const revoke = apiKeys.revoke.bind(apiKeys);
  vi.spyOn(apiKeys, 'revoke').mockImplementationOnce(async (...given) => {
    await apiKeys.update(id, { note: 'newer' });
    return revoke(...given);
  });
  const headers = { 'if-match': `"${version}"` };
  expect((await root.send('deleteKey', { id, headers })).status).toBe(412);
  expect(await root.request('findKey', { id })).toMatchObject({ note: 'newer' });
  await root.request('deleteKey', { id });
});

test('an owner that is given to another organisation meanwhile is not changed', async () => {
  const { invitation } = await root.request('createUser', {
    body: { email: 'ada@example.com', name: 'Ada', role: 'admin', organisation },
  });
  await root.request('acceptInvitation', { body: { token: invitation.token, password } });
  const { id } = await root.request('createOwner', { body: { kind: 'team', name: 'blue', organisation } });
  const ada = await signIn(gateway.url, 'ada@example.com', password);
  const { owners } = gateway.apiKeys;
  const update = owners.update.bind(owners);
  const slow = vi.spyOn(owners, 'update').mockImplementationOnce(async (...given) => {
    await update(id, { organisation: undefined });
    return update(...given);
  });
  expect((await ada.send('updateOwner', { id, body: { note: 'mine' } })).status).toBe(404);
  slow.mockRestore();
  expect(await root.request('findOwner', { id })).not.toHaveProperty('note', 'mine');
  await root.request('deleteOwner', { id });
});

test("the models of an organization that is gone are nobody's, and those of keys are those that one of them may call", async () => {
  const page = async () => ({
    keys: [['a', 'b*'], ['a', 'b*'], ['c']].map((models) => ({ models, enabled: true })),
  });
  const effective = vi.fn<(key: object) => object>((key) => ({ ...key, enabled: true }));
  const owners = { find: () => undefined, effective };
  const own = (role: string) =>
    ownModels({ role, organisation: 'org_gone' } as never, { keys: {} } as never, { owners, page } as never);
  expect((await own('admin'))('a')).toBe(false);
  const mine = await own('member');
  expect(['a', 'b1', 'b*', 'c', 'd', 'd*'].filter((model) => mine(model))).toEqual(['a', 'b1', 'b*', 'c']);
  expect(effective).toHaveBeenCalledTimes(2);
});
