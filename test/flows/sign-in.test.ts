import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import admin from '../../plugins/admin/index.ts';
import { adminPassword, logIn } from '../plugins/admin/_client.ts';
import { Visitor } from '../plugins/admin/sign-in/_browser.ts';
import {
  client,
  signedByPublicKey,
  signedByStranger,
  startLiar,
  unsigned,
  type Liar,
  type Lies,
} from '../plugins/admin/sign-in/_liar.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { newDatabases } from './_one-database.ts';

/** URL of the gateway for browsers. */
const publicUrl = 'https://gateway.test';

let liar: Liar;

beforeAll(async () => {
  liar = await startLiar();
});

beforeEach(() => {
  liar.lies = {};
  liar.refreshes = undefined;
  liar.person = {
    sub: randomUUID(),
    email: 'ann@example.com',
    email_verified: true,
    name: 'Ann',
    groups: ['staff'],
  };
});

afterAll(() => liar.close());

type Provider = NonNullable<NonNullable<Parameters<typeof admin>[0]>['signIn']>['providers'] extends
  | readonly (infer One)[]
  | undefined
  ? One
  : never;

async function startWith(
  provider: Partial<Provider> = {},
  more: { readonly database?: string } = {},
): Promise<TestGateway> {
  const gateway = await startGateway({
    adminPassword,
    ...more,
    channels: [demo()],
    plugins: [
      admin({
        signIn: {
          publicUrl,
          providers: [
            {
              id: 'corp',
              issuer: liar.url,
              clientId: client.id,
              clientSecret: client.secret,
              label: 'Sign in with Corp',
              ...provider,
            },
          ],
        },
      }),
    ],
  });
  onTestFinished(() => gateway.close());
  return gateway;
}

/** Signs in, and says where the browser ends. */
async function signIn(
  gateway: TestGateway,
  visitor = new Visitor(gateway.url),
  path = '/api/admin/sign-in/corp',
) {
  const location = await visitor.follow(path);
  const end = location.startsWith(liar.url) ? await visitor.follow(liar.authorize(location)) : location;
  return { visitor, end };
}

/** Status of the session. */
async function sessionOf(visitor: Visitor): Promise<number> {
  return (await visitor.send('/api/admin/session')).status;
}

describe('signing in at a provider', () => {
  test('leads to the page with a session, under PKCE, a state and a nonce', async () => {
    const gateway = await startWith();
    const visitor = new Visitor(gateway.url);
    const location = await visitor.follow(
      `/api/admin/sign-in/corp?returnTo=${encodeURIComponent('/dashboard/#/keys')}`,
    );
    expect(Object.fromEntries(new URL(location).searchParams)).toMatchObject({
      response_type: 'code',
      client_id: client.id,
      code_challenge_method: 'S256',
      scope: 'openid profile email',
      redirect_uri: `${publicUrl}/api/admin/sign-in/corp/callback`,
      state: expect.stringMatching(/^.{40,}$/),
      nonce: expect.stringMatching(/^.{40,}$/),
    });
    expect(await visitor.follow(liar.authorize(location))).toBe('/dashboard/#/keys');
    expect(await sessionOf(visitor)).toBe(200);
    const page = await logIn(gateway.url);
    const { entries } = await page.request('listAudit');
    // Entries of one millisecond stand in any order.
    expect(entries.map(({ action, actor }) => `${action} ${actor?.name}`).toSorted()).toEqual([
      'login admin password',
      'login ann@example.com',
      'user-create ann@example.com',
    ]);
    expect(await page.request('signInWays')).toMatchObject({
      providers: [{ id: 'corp', label: 'Sign in with Corp' }],
    });
  });

  test.each([
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example',
    '/api/admin/session',
    '/dashboard/#/keys\r\nset-cookie: a=b',
    'javascript:alert(1)',
    '/dashboard/../evil',
  ])('returns to the page alone, not to %j', async (returnTo) => {
    const gateway = await startWith();
    const { end } = await signIn(
      gateway,
      undefined,
      `/api/admin/sign-in/corp?returnTo=${encodeURIComponent(returnTo)}`,
    );
    expect(end).toBe('/dashboard/');
  });

  test('takes a response once, from the browser that began, for the same state', async () => {
    const gateway = await startWith();
    const visitor = new Visitor(gateway.url);
    const location = await visitor.follow('/api/admin/sign-in/corp');
    const back = liar.authorize(location);
    const kept = visitor.cookie('sluice-sign-in') ?? '';
    expect(await new Visitor(gateway.url).follow(back)).toBe('/dashboard/?problem=expired');
    const forged = new URL(back);
    forged.searchParams.set('state', 'another');
    const other = new Visitor(gateway.url);
    other.setCookie('sluice-sign-in', kept);
    expect(await other.follow(forged.href)).toBe('/dashboard/?problem=expired');
    expect(await visitor.follow(back)).toBe('/dashboard/');
    // The whole browser is copied, and the code is one that the provider would take.
    const thief = new Visitor(gateway.url);
    thief.setCookie('sluice-sign-in', kept);
    expect(await thief.follow(liar.authorize(location))).toBe('/dashboard/?problem=expired');
    expect(await sessionOf(thief)).toBe(401);
  });

  const now = Math.floor(Date.now() / 1000);
  const lies: Readonly<Record<string, Lies>> = {
    'an id_token of another issuer': { claims: { iss: 'https://other.example' } },
    'an id_token for another client': { claims: { aud: 'another' } },
    'an id_token for several clients that names another': { claims: { aud: [client.id, 'b'], azp: 'b' } },
    'an id_token with another nonce': { claims: { nonce: 'another' } },
    'an id_token without a nonce': { claims: { nonce: undefined } },
    'an id_token that has expired': { claims: { exp: now - 3_600, iat: now - 7_200 } },
    'an id_token without a subject': { claims: { sub: undefined } },
    'an id_token with a key that it does not publish': { sign: signedByStranger },
    'an id_token that is not signed': { sign: unsigned },
    'an id_token with its public key as a secret': { sign: signedByPublicKey },
    'an id_token that is none': { sign: () => 'no.jwt' },
  };
  test.each(Object.entries(lies))('refuses %s', async (_title, lie) => {
    const gateway = await startWith();
    liar.lies = lie;
    const { end, visitor } = await signIn(gateway);
    expect(end).toMatch(/^\/dashboard\/\?problem=(?:invalid|unavailable)$/);
    expect(await sessionOf(visitor)).toBe(401);
  });

  test('refuses a response that another issuer claims to have sent', async () => {
    const gateway = await startWith();
    const visitor = new Visitor(gateway.url);
    const back = liar.authorize(await visitor.follow('/api/admin/sign-in/corp'), {
      iss: 'https://other.example',
    });
    expect(await visitor.follow(back)).toBe('/dashboard/?problem=invalid');
  });

  test.each([
    ['a discovery document of another issuer', { metadata: { issuer: 'https://other.example' } }],
    [
      'a discovery document that is no JSON',
      { answer: { '/.well-known/openid-configuration': { body: '<html>' } } },
    ],
    [
      'an error as discovery document',
      { answer: { '/.well-known/openid-configuration': { status: 500, body: '' } } },
    ],
    [
      'a discovery document without end',
      { answer: { '/.well-known/openid-configuration': { body: `"${'x'.repeat(1_000_000)}"` } } },
    ],
  ] satisfies [string, Lies][])('says that the provider cannot be reached for %s', async (_title, lie) => {
    const gateway = await startWith();
    liar.lies = lie;
    const { end } = await signIn(gateway);
    expect(end).toBe('/dashboard/?problem=unavailable');
  });

  test.each([
    ['a token endpoint without end', { answer: { '/token': { body: `"${'x'.repeat(1_000_000)}"` } } }],
    ['a token endpoint that fails', { answer: { '/token': { status: 503, body: 'no' } } }],
    ['keys that fail', { answer: { '/jwks': { status: 500, body: 'no' } } }],
  ] satisfies [string, Lies][])('starts no session for %s', async (_title, lie) => {
    const gateway = await startWith();
    liar.lies = lie;
    const { end, visitor } = await signIn(gateway);
    expect(end).toMatch(/^\/dashboard\/\?problem=(?:invalid|unavailable)$/);
    expect(await sessionOf(visitor)).toBe(401);
  });

  test('says that the provider cannot be reached when nobody is there', async () => {
    const gateway = await startWith({ issuer: `http://127.0.0.1:${await freePort()}` });
    const { end } = await signIn(gateway);
    expect(end).toBe('/dashboard/?problem=unavailable');
  });

  test('says that it was cancelled when the person did not want to', async () => {
    const gateway = await startWith();
    const visitor = new Visitor(gateway.url);
    const back = new URL(
      liar.authorize(await visitor.follow('/api/admin/sign-in/corp'), { error: 'access_denied' }),
    );
    back.searchParams.delete('code');
    expect(await visitor.follow(back.href)).toBe('/dashboard/?problem=refused');
  });

  test('goes on when the provider changes its keys', async () => {
    const gateway = await startWith();
    expect((await signIn(gateway)).end).toBe('/dashboard/');
    await liar.rotate();
    expect((await signIn(gateway)).end).toBe('/dashboard/');
  });

  test('answers 404 for a provider that is not configured', async () => {
    const gateway = await startWith();
    expect((await new Visitor(gateway.url).send('/api/admin/sign-in/other')).status).toBe(404);
  });
});

describe('who signs in', () => {
  test.each([
    ['of another domain', { email: 'ann@evil.example' }, 'email'],
    ['with an email that is not verified', { email_verified: false }, 'email'],
    ['without an email', { email: undefined }, 'email'],
  ])('is nobody %s where domains are listed', async (_title, person, problem) => {
    const gateway = await startWith({ allowedDomains: ['example.com'] });
    Object.assign(liar.person, person);
    expect((await signIn(gateway)).end).toBe(`/dashboard/?problem=${problem}`);
  });

  test('is nobody new where the provider makes no users', async () => {
    const gateway = await startWith({ createsUsers: false });
    expect((await signIn(gateway)).end).toBe('/dashboard/?problem=unknown');
  });

  test('is nobody in whose groups no rule is interested', async () => {
    const gateway = await startWith({ rules: [{ group: 'admins', role: 'admin' }] });
    expect((await signIn(gateway)).end).toBe('/dashboard/?problem=group');
    liar.person['_claim_names'] = { groups: 'src1' };
    delete liar.person['groups'];
    expect((await signIn(gateway)).end).toBe('/dashboard/?problem=group');
  });

  test('is told that it failed, and not that the email is taken, where a rule gives what cannot be', async () => {
    const rule = { group: 'staff', organisation: 'Acme', team: 'Theirs' };
    const gateway = await startWith({ rules: [rule] });
    const page = await logIn(gateway.url);
    await page.request('createOwner', { body: { kind: 'organisation', name: 'Acme' } });
    const other = await page.request('createOwner', { body: { kind: 'organisation', name: 'Other' } });
    await page.request('createOwner', { body: { kind: 'team', name: 'Theirs', organisation: other.id } });
    expect((await signIn(gateway)).end).toBe('/dashboard/?problem=failed');
  });

  test('takes over the user of the same email only where the operator lets them', async () => {
    const strict = await startWith();
    expect((await signIn(strict)).end).toBe('/dashboard/');
    liar.person['sub'] = 'another';
    expect((await signIn(strict)).end).toBe('/dashboard/?problem=taken');

    const open = await startWith({ linksByEmail: true });
    expect((await signIn(open)).end).toBe('/dashboard/');
    liar.person['sub'] = 'a third';
    liar.person['email_verified'] = false;
    expect((await signIn(open)).end).toBe('/dashboard/?problem=taken');
    liar.person['email_verified'] = true;
    expect((await signIn(open)).end).toBe('/dashboard/');
  });
});

describe.each(newDatabases())('groups during a session on $kind', ({ url, skip }) => {
  const rules = [
    { group: 'admins', role: 'admin' as const },
    { group: 'staff', role: 'member' as const },
  ];

  test.skipIf(skip !== undefined)(
    'take effect at the other gateway too: a role that is gone ends the session',
    async () => {
      liar.refreshes = true;
      liar.person['groups'] = ['admins'];
      const database = await url();
      const gateway = await startWith({ rules, recheckMinutes: 0.01 }, { database });
      const other = await startWith({ rules, recheckMinutes: 0.01 }, { database });
      const { visitor } = await signIn(gateway);
      expect((await visitor.send('/api/admin/status')).status).toBe(200);
      liar.person['groups'] = ['staff'];
      await eventually(async () => expect(await sessionOf(visitor)).toBe(401));
      const again = await signIn(other);
      expect(again.end).toBe('/dashboard/');
      expect((await again.visitor.send('/api/admin/status')).status).toBe(403);
      liar.person['groups'] = [];
      await eventually(async () => expect(await sessionOf(again.visitor)).toBe(401));
      // Whoever loses all access, in a session or before one, is in the audit log.
      liar.person['groups'] = ['admins'];
      await signIn(other);
      liar.person['groups'] = [];
      expect((await signIn(other)).end).toBe('/dashboard/?problem=group');
      const page = await logIn(other.url);
      await eventually(async () => {
        const { entries } = await page.request('listAudit');
        expect(entries.find(({ action }) => action === 'user-update')).toMatchObject({
          before: { role: 'admin' },
          after: { role: 'member' },
        });
      });
    },
  );

  test.skipIf(skip !== undefined)(
    'end the session when the provider withdraws its token, and not when it is down',
    async () => {
      liar.refreshes = true;
      const gateway = await startWith({ rules, recheckMinutes: 0.01 }, { database: await url() });
      const { visitor } = await signIn(gateway);
      liar.lies = { answer: { '/token': { status: 503, body: '' } } };
      const before = liar.requests.length;
      await eventually(() => expect(liar.requests.length).toBeGreaterThan(before + 1));
      expect(await sessionOf(visitor)).toBe(200);
      liar.lies = {};
      liar.refreshes = false;
      await eventually(async () => expect(await sessionOf(visitor)).toBe(401));
    },
  );
});

describe('logout', () => {
  test('leads to the provider, which ends its session too', async () => {
    const gateway = await startWith();
    const { visitor } = await signIn(gateway);
    const session = (await (await visitor.send('/api/admin/session')).json()) as { csrfToken: string };
    const response = await visitor.send('/api/admin/logout', {
      method: 'POST',
      headers: { 'x-csrf-token': session.csrfToken },
    });
    const { location } = (await response.json()) as { location: string };
    const there = new URL(location);
    expect(`${there.origin}${there.pathname}`).toBe(`${liar.url}/logout`);
    expect(there.searchParams.get('post_logout_redirect_uri')).toBe(`${publicUrl}/dashboard/`);
    expect(there.searchParams.get('id_token_hint')).toMatch(/^ey/);
    expect(await sessionOf(visitor)).toBe(401);
  });

  test('by the provider ends the sessions of a person, once for each token', async () => {
    const gateway = await startWith();
    const send = async (token: string): Promise<number> => {
      const response = await fetch(`${gateway.url}/api/admin/sign-in/corp/logout`, {
        method: 'POST',
        body: new URLSearchParams({ logout_token: token }),
      });
      return response.status;
    };
    const now = Math.floor(Date.now() / 1000);
    const good = (): Record<string, unknown> => ({
      iss: liar.url,
      aud: client.id,
      iat: now,
      exp: now + 120,
      jti: randomUUID(),
      sub: liar.person['sub'] as string,
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    });
    const { visitor } = await signIn(gateway);
    const wrongs: readonly Record<string, unknown>[] = [
      { iss: 'https://other.example' },
      { aud: 'another' },
      { nonce: 'a' },
      { events: {} },
      { sub: undefined },
      { jti: undefined },
      { iat: now - 3_600, exp: now - 3_000 },
    ];
    const countKeyRequests = () => liar.requests.filter(({ url }) => url === '/jwks').length;
    const before = countKeyRequests();
    for (const wrong of wrongs.slice(0, 2))
      expect(await send(await liar.sign({ ...good(), ...wrong }))).toBe(400);
    expect(await send('no.jwt')).toBe(400);
    // What is meant for others makes the gateway ask nobody.
    expect(countKeyRequests()).toBe(before);
    for (const body of ['<html>', '{"keys":"none"}', 'null']) {
      liar.lies = { answer: { '/jwks': { body } } };
      expect(await send(await liar.sign(good()))).toBe(400);
    }
    liar.lies = {};
    for (const wrong of wrongs) expect(await send(await liar.sign({ ...good(), ...wrong }))).toBe(400);
    expect(await send(unsigned(good()))).toBe(400);
    expect(await send(await signedByPublicKey(good(), liar))).toBe(400);
    expect(await send(await signedByStranger(good(), liar))).toBe(400);
    expect(await send('')).toBe(400);
    expect(await sessionOf(visitor)).toBe(200);
    const token = await liar.sign(good(), { typ: 'logout+jwt' });
    expect(await send(token)).toBe(200);
    expect(await sessionOf(visitor)).toBe(401);
    expect(await send(token)).toBe(400);
  });

  test('by strangers who send many makes the gateway ask the provider no more, and others sign in', async () => {
    const gateway = await startWith();
    const countKeyRequests = () => liar.requests.filter(({ url }) => url === '/jwks').length;
    const forged = await signedByStranger({ iss: liar.url, aud: client.id }, liar);
    const send = async (): Promise<boolean> => {
      const before = countKeyRequests();
      const response = await fetch(`${gateway.url}/api/admin/sign-in/corp/logout`, {
        method: 'POST',
        body: new URLSearchParams({ logout_token: forged }),
      });
      expect(response.status).toBe(400);
      return countKeyRequests() > before;
    };
    expect(await send()).toBe(true);
    await eventually(async () => expect(await send()).toBe(false), 1);
    expect((await signIn(gateway)).end).toBe('/dashboard/');
  });
});
