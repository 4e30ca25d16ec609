import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import { openStores } from '../../core/state/stores.ts';
import { openAdminTokens } from '../../core/state/admin-tokens/open.ts';
import { scopes } from '../../plugins/admin/access/needs.ts';
import { routes, type RouteName } from '../../plugins/admin/routes.ts';
import { adminPassword, logIn, type Admin } from '../plugins/admin/_client.ts';
import { sendWithToken } from '../plugins/admin/_token-client.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { newDatabases, twoGateways } from './_one-database.ts';

const tokenOf = async (page: Admin, body: object): Promise<string> =>
  (await page.request('createToken', { body: { name: 'ci', ...body } })).value;

describe('a token of the admin API', () => {
  let gateway: TestGateway;
  let page: Admin;
  beforeAll(async () => {
    gateway = await startGateway({ adminPassword, channels: [demo()] });
    page = await logIn(gateway.url);
  });
  afterAll(() => gateway.close());

  test('is shown once, and works without a cookie and a CSRF token', async () => {
    const { token, value } = await page.request('createToken', {
      body: { name: 'ci', scopes: ['keys:write'] },
    });
    expect(value).toMatch(/^sla_[0-9A-Za-z]{40}$/);
    expect(token).toMatchObject({ name: 'ci', state: 'valid', createdBy: { kind: 'password' } });
    expect(token.expiresAt - token.createdAt).toBe(90 * 86_400_000);
    const made = await sendWithToken(gateway.url, value, 'createKey', { body: { name: 'from ci' } });
    expect(made.status).toBe(201);
    const listed = await page.request('listTokens');
    expect(JSON.stringify(listed)).not.toContain(value);
    await eventually(async () => {
      const { tokens } = await page.request('listTokens');
      expect(tokens.find(({ id }) => id === token.id)?.lastUsedAt).toBeGreaterThan(0);
    });
    const { entries } = await page.request('listAudit');
    expect(entries[0]).toMatchObject({
      action: 'key-create',
      actor: { kind: 'token', id: token.id, name: 'ci' },
    });
  });

  const judged = (Object.keys(routes) as RouteName[]).filter(
    (name) => routes[name].needs.who !== 'open' && (routes[name].needs.group as string) !== 'self',
  );
  test.each(judged)('needs the scope of the group of %s', async (name) => {
    const { group, act } = routes[name].needs;
    const enough: string[] = act === 'read' ? [`${group}:read`, `${group}:write`] : [`${group}:write`];
    const others = await tokenOf(page, { scopes: scopes.filter((one) => !enough.includes(one)) });
    const refused = await sendWithToken(gateway.url, others, name);
    expect(refused).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } });
    expect(refused.text).toContain(`needs the scope ${group}:${act}`);
    const own = await tokenOf(page, { scopes: [`${group}:${act}`] });
    const allowed = await sendWithToken(gateway.url, own, name);
    expect(allowed.text).not.toContain('needs the scope');
    expect([401, 403, 500]).not.toContain(allowed.status);
  });

  test('of an auditor changes nothing, whatever its scopes', async () => {
    const value = await tokenOf(page, { role: 'auditor', scopes: ['keys:write'] });
    expect((await sendWithToken(gateway.url, value, 'listKeys')).status).toBe(200);
    expect(await sendWithToken(gateway.url, value, 'createKey', { body: { name: 'x' } })).toMatchObject({
      status: 403,
    });
  });

  test('cannot make a token that may do more than itself', async () => {
    const value = await tokenOf(page, { scopes: ['tokens:write', 'keys:read'], days: 10 });
    const mint = (body: object) =>
      sendWithToken(gateway.url, value, 'createToken', { body: { name: 'child', ...body } });
    expect(await mint({ scopes: ['keys:write'] })).toMatchObject({
      status: 403,
      body: { error: { param: 'scopes' } },
    });
    expect(await mint({ scopes: ['keys:read'], days: 11 })).toMatchObject({
      status: 400,
      body: { error: { param: 'days' } },
    });
    const { status, body } = await mint({ scopes: ['keys:read', 'tokens:read'] });
    expect(status).toBe(201);
    const child = body['token'] as { expiresAt: number };
    const { tokens } = await page.request('listTokens');
    expect(tokens.some(({ id, expiresAt }) => expiresAt === child.expiresAt && id !== 'none')).toBe(true);
  });

  test('makes and invites no users who may do more than itself', async () => {
    const invited = await page.request('createUser', { body: { email: 'admin@example.com', role: 'admin' } });
    const { id } = invited.user;
    const value = await tokenOf(page, { scopes: scopes.filter((one) => one !== 'keys:write') });
    const send = (name: RouteName, words: object) => sendWithToken(gateway.url, value, name, words);
    for (const [name, words] of [
      ['createUser', { body: { email: 'new@example.com', role: 'admin' } }],
      ['createUser', { body: { email: 'new@example.com', role: 'auditor' } }],
      ['inviteUser', { id }],
      ['resetSecondFactor', { id }],
      ['updateUser', { id, body: { role: 'member' } }],
      ['updateUser', { id, body: { email: 'mine@example.com' } }],
    ] as const) {
      const refused = await send(name, words);
      expect(refused).toMatchObject({ status: 403, body: { error: { param: 'role' } } });
    }
    const member = await send('createUser', { body: { email: 'new@example.com' } });
    expect(member.status).toBe(201);
    const { id: memberId } = member.body['user'] as { id: string };
    const raised = await send('updateUser', { id: memberId, body: { role: 'admin' } });
    expect(raised.status).toBe(403);
    expect((await send('inviteUser', { id: memberId })).status).toBe(200);
    expect((await send('updateUser', { id, body: { name: 'A', enabled: false } })).status).toBe(200);
    const all = await tokenOf(page, { scopes });
    expect((await sendWithToken(gateway.url, all, 'inviteUser', { id })).status).toBe(200);
  });

  test('of an organisation makes tokens of that organisation alone', async () => {
    const [acme, other] = await Promise.all(
      ['Acme', 'Other'].map((name) => page.request('createOwner', { body: { kind: 'organisation', name } })),
    );
    const value = await tokenOf(page, { scopes: ['tokens:write'], organisation: acme?.id });
    const mint = (body: object) =>
      sendWithToken(gateway.url, value, 'createToken', {
        body: { name: 'child', scopes: ['tokens:read'], ...body },
      });
    expect(await mint({ organisation: other?.id })).toMatchObject({ status: 403 });
    expect((await mint({})).body['token']).toMatchObject({ organisation: acme?.id });
    const { tokens } = (await sendWithToken(gateway.url, value, 'listTokens')).body as {
      tokens: { organisation?: string }[];
    };
    expect(new Set(tokens.map(({ organisation }) => organisation))).toEqual(new Set([acme?.id]));
    expect(
      await page.refused('createToken', {
        body: { name: 'x', scopes: ['keys:read'], organisation: 'org_nobody' },
      }),
    ).toMatchObject({ status: 400, body: { error: { param: 'organisation' } } });
  });

  test('decides beside a cookie, whatever that allows', async () => {
    const value = await tokenOf(page, { scopes: ['usage:read'] });
    const headers = { cookie: page.cookie, 'x-csrf-token': page.csrfToken };
    expect((await sendWithToken(gateway.url, value, 'listKeys', { headers })).status).toBe(403);
    const wrong = await sendWithToken(gateway.url, `sla_${'a'.repeat(40)}`, 'listKeys', { headers });
    expect(wrong).toMatchObject({ status: 401, body: { error: { code: 'invalid_api_key' } } });
    const inCookie = await fetch(`${gateway.url}/api/admin/usage`, {
      headers: { cookie: `sluice-session=${value}` },
    });
    expect(inCookie.status).toBe(401);
  });

  test('is no key for models, and a key for models is no token', async () => {
    const value = await tokenOf(page, { scopes: ['keys:write'] });
    const call = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${value}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'demo', messages: [] }),
    });
    expect(call.status).toBe(401);
    const text = await call.text();
    expect(text).toContain('token of the admin API');
    expect(text).not.toContain(value);
    const response = await sendWithToken(gateway.url, gateway.key, 'listKeys');
    expect(response.status).toBe(401);
    expect(response.text).toContain('begin with sla_');
    expect(response.text).not.toContain(gateway.key);
  });

  test('is refused for what is no scope, no time and no role', async () => {
    for (const body of [
      { scopes: [] },
      { scopes: ['self:read'] },
      { scopes: ['keys:everything'] },
      { scopes: ['keys:read'], days: 0 },
      { scopes: ['keys:read'], days: 366 },
      { scopes: ['keys:read'], role: 'member' },
    ])
      // oxlint-disable-next-line no-await-in-loop -- one after the other
      expect(await page.refused('createToken', { body: { name: 'x', ...body } })).toMatchObject({
        status: 400,
      });
  });

  test('guesses from one address are refused without a look, and a token that was right goes on', async () => {
    const value = await tokenOf(page, { scopes: ['keys:read'] });
    expect((await sendWithToken(gateway.url, value, 'listKeys')).status).toBe(200);
    const guess = () => sendWithToken(gateway.url, `sla_${'g'.repeat(40)}`, 'listKeys');
    const answers: number[] = [];
    // oxlint-disable-next-line no-await-in-loop -- one after the other
    while (answers.length < 25) answers.push((await guess()).status);
    expect(answers.at(-1)).toBe(429);
    expect((await sendWithToken(gateway.url, value, 'listKeys')).status).toBe(200);
    const fresh = await tokenOf(page, { scopes: ['keys:read'] });
    expect((await sendWithToken(gateway.url, fresh, 'listKeys')).status).toBe(429);
  });
});

describe.each(newDatabases())('tokens of gateways on one database: $kind', ({ url, skip }) => {
  test.skipIf(skip !== undefined)('work on all gateways, and end on all at once', async () => {
    const [one, other] = await twoGateways(await url());
    const page = await logIn(one.url);
    const { token, value } = await page.request('createToken', {
      body: { name: 'ci', scopes: ['keys:read'] },
    });
    expect((await sendWithToken(other.url, value, 'listKeys')).status).toBe(200);
    await page.request('revokeToken', { id: token.id });
    expect((await sendWithToken(other.url, value, 'listKeys')).status).toBe(401);
    expect(await page.refused('revokeToken', { id: token.id })).toMatchObject({ status: 404 });
    const { entries } = await page.request('listAudit');
    expect(entries.slice(0, 2)).toMatchObject([
      { action: 'token-revoke', target: token.id, before: { name: 'ci' } },
      { action: 'token-create', target: token.id, after: { scopes: ['keys:read'] } },
    ]);
  });

  test.skipIf(skip !== undefined)('say when they have expired', async () => {
    const database = await url();
    const gateway = await startGateway({ adminPassword, database, channels: [demo()] });
    onTestFinished(() => gateway.close());
    const stores = openStores(database);
    onTestFinished(() => stores.close());
    const createdBy = { kind: 'password', id: 'password', name: 'admin password' };
    const { value } = await openAdminTokens(stores).create({
      name: 'short',
      role: 'admin',
      scopes: ['keys:read'],
      createdBy,
      createdAt: Date.now(),
      expiresAt: Date.now() + 50,
    });
    await eventually(async () => {
      const answer = await sendWithToken(gateway.url, value, 'listKeys');
      expect(answer).toMatchObject({ status: 401, body: { error: { code: 'expired_api_key' } } });
      expect(answer.text).toContain('expired on');
    });
  });
});
