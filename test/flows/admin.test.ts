import { once } from 'node:events';
import { request as send, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import demo from '../../channels/demo/index.ts';
import openai from '../../channels/openai.ts';
import { routes, type RouteSpec } from '../../plugins/admin/routes.ts';
import type { KeyWithValue, LiveFrame } from '../../plugins/admin/schemas/index.ts';
import { adminPassword, logIn, type Admin } from '../plugins/admin/_client.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { startUpstream, type ScriptedUpstream } from '../support/upstream.ts';
import { eventually } from '../support/eventually.ts';
import { patience } from '../support/patience.ts';

let upstream: ScriptedUpstream;
let gateway: TestGateway;
let admin: Admin;

beforeAll(async () => {
  upstream = await startUpstream((_request, response) => {
    response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"no luck"}}');
  });
  gateway = await startGateway({
    adminPassword,
    prices: { demo: { input: 1000, output: 1000 } },
    channels: [
      demo(),
      openai({ id: 'broken', key: 'k', baseUrl: upstream.url, models: ['broken', 'gpt-*'], priority: -1 }),
    ],
  });
  admin = await logIn(gateway.url);
});
afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const json = { 'content-type': 'application/json' };

/** A chat with a key; the status, and the error's code where there is one. */
async function chat(
  key: string,
  model = 'demo',
  words = 'hi',
): Promise<{ status: number; code: string | undefined }> {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, ...json },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: words }] }),
  });
  const body = (await response.json()) as { error?: { code: string } };
  return { status: response.status, code: body.error?.code };
}

const createKey = (body: object): Promise<KeyWithValue> => admin.request('createKey', { body });

const login = (headers: Readonly<Record<string, string>>, password = adminPassword): Promise<Response> =>
  fetch(`${gateway.url}/api/admin/login`, {
    method: 'POST',
    headers: { ...json, ...headers },
    body: JSON.stringify({ password }),
  });

describe('a login', () => {
  test('sets a cookie that scripts cannot read and other sites do not send', async () => {
    const response = await login({});
    expect(response.status).toBe(200);
    const cookie = response.headers.get('set-cookie') ?? '';
    expect(cookie).toMatch(/^sluice-session=[\w-]{43}; path=\/; expires=[^;]+; samesite=strict; httponly$/);
    const [, expires = ''] = /expires=([^;]+)/.exec(cookie) ?? [];
    const lasts = Date.parse(expires) - Date.parse(response.headers.get('date') ?? '');
    expect(Math.round(lasts / 60_000)).toBe(12 * 60);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
  });

  test('of a page from elsewhere is refused, whatever it knows', async () => {
    expect((await login({ origin: 'https://elsewhere.example' })).status).toBe(403);
    expect((await login({ 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await login({ 'sec-fetch-site': 'same-site' })).status).toBe(403);
    expect((await login({ origin: gateway.url })).status).toBe(200);
    expect((await login({ origin: 'https://behind.example', 'sec-fetch-site': 'same-origin' })).status).toBe(
      200,
    );
  });

  test('with nonsense is refused with the field that is wrong', async () => {
    const post = async (body: string, type = 'application/json') => {
      const response = await fetch(`${gateway.url}/api/admin/login`, {
        method: 'POST',
        headers: { 'content-type': type },
        body,
      });
      return {
        status: response.status,
        ...((await response.json()) as { error: { code: string; param?: string } }),
      };
    };
    expect(await post('{}')).toMatchObject({
      status: 400,
      error: { code: 'missing_required_parameter', param: 'password' },
    });
    expect(await post('{"password":7}')).toMatchObject({
      status: 400,
      error: { code: 'invalid_type', param: 'password' },
    });
    expect(await post('{"password":"x","more":1}')).toMatchObject({ status: 400, error: { param: 'more' } });
    expect(await post('no json')).toMatchObject({ status: 400, error: { code: 'invalid_json' } });
    expect(await post('[]')).toMatchObject({ status: 400, error: { code: 'invalid_type' } });
    expect(await post('password=x', 'application/x-www-form-urlencoded')).toMatchObject({ status: 415 });
    expect(await post(JSON.stringify({ password: 'x'.repeat(2 ** 21) }))).toMatchObject({ status: 413 });
  });

  test('after many wrong passwords takes its time, and the right one still opens; who is logged in stays so', async () => {
    const other = await startGateway({ adminPassword, channels: [] });
    onTestFinished(() => other.close());
    const page = await logIn(other.url);
    const tries: Response[] = [];
    for (let round = 0; round < 6; round += 1) {
      tries.push(
        // oxlint-disable-next-line no-await-in-loop
        await fetch(`${other.url}/api/admin/login`, {
          method: 'POST',
          headers: json,
          body: '{"password":"guess"}',
        }),
      );
    }
    expect(tries.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 401]);
    expect(await tries[0]?.json()).toEqual({
      error: { code: 'wrong_password', message: 'Wrong admin password.', param: 'password' },
    });
    await page.request('session');
    await logIn(other.url);
    expect(JSON.stringify(other.lines)).not.toMatch(/guess|a long enough/);
  });

  test('behind a proxy that is trusted is one of the client, and its cookie stays on https', async () => {
    const other = await startGateway({ adminPassword, channels: [], trustedProxies: ['127.0.0.1'] });
    onTestFinished(() => other.close());
    const from = (ip: string, password: string) =>
      fetch(`${other.url}/api/admin/login`, {
        method: 'POST',
        headers: {
          ...json,
          'x-forwarded-for': ip,
          'x-forwarded-proto': 'https',
          'x-forwarded-host': 'gateway.example',
          origin: 'https://gateway.example',
        },
        body: JSON.stringify({ password }),
      });
    expect((await from('192.0.2.1', 'guess')).status).toBe(401);
    const response = await from('192.0.2.2', adminPassword);
    expect(response.status).toBe(200);
    expect(response.headers.get('set-cookie')).toMatch(/; secure;/);
  });
});

describe('whoever is not logged in', () => {
  test('gets 401 everywhere but at the login', async () => {
    for (const { method, path, needs } of Object.values<RouteSpec>(routes)) {
      if (needs.who === 'open') continue;
      // oxlint-disable-next-line no-await-in-loop
      const response = await fetch(`${gateway.url}${path}`, {
        method,
        headers: { cookie: 'sluice-session=x' },
      });
      expect({ path, status: response.status }).toEqual({ path, status: 401 });
      // oxlint-disable-next-line no-await-in-loop
      expect(await response.json()).toMatchObject({ error: { code: 'login_required' } });
    }
  });

  test('can read what the API is', async () => {
    const response = await fetch(`${gateway.url}/api/admin/openapi.json`);
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    expect(await response.json()).toMatchObject({ openapi: '3.1.0' });
  });

  test('is logged out for good', async () => {
    const page = await logIn(gateway.url);
    await page.request('logout');
    expect(await page.refused('session')).toMatchObject({ status: 401 });
  });
});

describe('a change', () => {
  const body = { name: 'never made' };

  test('needs the token of its session', async () => {
    expect(await admin.refused('createKey', { body, headers: { 'x-csrf-token': '' } })).toMatchObject({
      status: 403,
    });
    const other = await logIn(gateway.url);
    expect(
      await admin.refused('createKey', { body, headers: { 'x-csrf-token': other.csrfToken } }),
    ).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } });
  });

  test('is taken from our own pages alone', async () => {
    expect(
      await admin.refused('createKey', { body, headers: { origin: 'https://elsewhere.example' } }),
    ).toMatchObject({ status: 403 });
    expect(await admin.refused('createKey', { body, headers: { origin: 'null' } })).toMatchObject({
      status: 403,
    });
    expect(
      await admin.refused('createKey', { body, headers: { 'sec-fetch-site': 'cross-site' } }),
    ).toMatchObject({ status: 403 });
    const { keys } = await admin.request('listKeys');
    expect(keys.map(({ name }) => name)).not.toContain('never made');
  });

  test('must be JSON, and small', async () => {
    expect(
      await admin.refused('createKey', { body: 'name=x', headers: { 'content-type': 'text/plain' } }),
    ).toMatchObject({ status: 415 });
    expect(await admin.refused('createKey', { body: { name: 'x'.repeat(10 * 2 ** 20) } })).toMatchObject({
      status: 413,
      body: { error: { code: 'request_too_large' } },
    });
  });

  test('is refused in our own words where there is nothing', async () => {
    const response = await fetch(`${gateway.url}/api/admin/nothing?x=1`, { method: 'PUT' });
    expect(response.status).toBe(404);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual({
      error: { code: 'unknown_url', message: 'There is nothing at PUT /api/admin/nothing.' },
    });
  });
});

describe('keys', () => {
  test('are made with a value that is shown once, used, changed, switched off and on, rotated and deleted', async () => {
    const { key, value, warnings } = await createKey({
      name: '  for tests ',
      note: 'of the admin API',
      models: ['demo'],
      budgets: [{ unit: 'token', period: 'day', amount: 1_000_000 }],
      requestsPerMinute: 1000,
    });
    expect(warnings).toEqual([]);
    expect(key).toMatchObject({ name: 'for tests', state: 'valid', budgets: [{ spent: 0, reserved: 0 }] });
    const { id } = key;
    expect(await chat(value)).toMatchObject({ status: 200 });
    expect(await chat(value, 'broken')).toMatchObject({ status: 403 });
    expect(JSON.stringify(await admin.request('listKeys'))).not.toContain(value);

    const changed = await admin.request('updateKey', {
      id,
      body: { name: 'renamed', models: null, note: null },
    });
    expect(changed.key).toMatchObject({ name: 'renamed', requestsPerMinute: 1000 });
    expect(changed.key.models ?? changed.key.note).toBeUndefined();
    expect(await admin.request('disableKey', { id })).toMatchObject({ key: { state: 'disabled' } });
    expect(await chat(value)).toMatchObject({ status: 401 });
    expect(await admin.request('enableKey', { id })).toMatchObject({ key: { state: 'valid' } });
    expect(await chat(value)).toMatchObject({ status: 200 });

    const { value: fresh } = await admin.request('rotateKey', { id });
    expect(await chat(value)).toMatchObject({ status: 401 });
    expect(await chat(fresh)).toMatchObject({ status: 200 });
    await admin.request('deleteKey', { id });
    expect(await chat(fresh)).toMatchObject({ status: 401 });
    expect(await admin.refused('updateKey', { id, body: { name: 'x' } })).toMatchObject({ status: 404 });
    expect(await admin.refused('deleteKey', { id })).toMatchObject({ status: 404 });
  });

  test('are listed in pages, newest first, each key once, also when some go meanwhile', async () => {
    const made: string[] = [];
    for (let index = 0; index < 7; index += 1) made.push((await createKey({ name: `page ${index}` })).key.id);
    const page = (query: Readonly<Record<string, string | number>>) => admin.request('listKeys', { query });
    const seen: { readonly id: string; readonly createdAt: number }[] = [];
    let { keys, next } = await page({ limit: 3 });
    const gone = keys[2]?.id ?? '';
    // The one behind which the next page begins.
    await admin.request('deleteKey', { id: gone });
    for (;;) {
      expect(keys.length).toBeLessThanOrEqual(3);
      for (const key of keys) seen.push(key);
      if (next === undefined) break;
      ({ keys, next } = await page({ limit: 3, after: next }));
    }
    const times = seen.map(({ createdAt }) => createdAt);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    const ids = seen.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(new Set(ids.slice(0, made.length))).toEqual(new Set(made));
    expect(await admin.request('findKey', { id: ids[0] ?? '' })).toMatchObject({
      id: ids[0],
      state: 'valid',
    });
    expect(await admin.refused('findKey', { id: gone })).toMatchObject({ status: 404 });
    expect(await admin.refused('listKeys', { query: { limit: '501' } })).toMatchObject({
      status: 400,
      body: { error: { param: 'limit' } },
    });
  });

  test('are a hundred at a time unless somebody asks otherwise', async () => {
    const made: string[] = [];
    for (let index = 0; index < 101; index += 1)
      made.push((await createKey({ name: `many ${index}` })).key.id);
    const { keys, next } = await admin.request('listKeys');
    expect(keys).toHaveLength(100);
    expect(made).toEqual(expect.arrayContaining(keys.map(({ id }) => id)));
    expect(next).toBeTypeOf('string');
    for (const id of made) await admin.request('deleteKey', { id });
  });

  test('show what of their budgets is spent, and when they were used', async () => {
    const { key, value } = await createKey({
      name: 'spender',
      budgets: [
        { unit: 'micro-dollar', period: 'total', amount: 1_000_000_000 },
        { unit: 'token', period: 'day', amount: 1_000_000 },
      ],
    });
    expect(await chat(value)).toMatchObject({ status: 200 });
    await eventually(async () => {
      const { keys } = await admin.request('listKeys');
      const mine = keys.find(({ id }) => id === key.id);
      const [money, tokens] = mine?.budgets ?? [];
      expect(money).toMatchObject({ unit: 'micro-dollar', period: 'total', since: 0, reserved: 0 });
      expect(money?.spent).toBeGreaterThan(0);
      expect(tokens?.spent).toBeGreaterThan(0);
      expect(mine?.lastUsedAt).toBeGreaterThan(Date.now() - 60_000);
    });
  });

  test.each([
    [{}, 'name', 'The field name is missing.'],
    [{ name: ' ' }, 'name', 'name must not be empty.'],
    [{ name: 'x'.repeat(201) }, 'name', 'name must be at most 200 characters.'],
    [{ name: 7 }, 'name', 'name must be a text.'],
    [{ name: 'x', models: [] }, 'models', 'models must not be empty: leave it out to allow every model.'],
    [{ name: 'x', models: ['a', ''] }, 'models[1]', 'models[1] must not be empty.'],
    [
      { name: 'x', budgets: [{ unit: 'euro', period: 'day', amount: 1 }] },
      'budgets[0].unit',
      'budgets[0].unit must be micro-dollar or token.',
    ],
    [
      { name: 'x', budgets: [{ unit: 'token', period: 'day', amount: -1 }] },
      'budgets[0].amount',
      'budgets[0].amount must not be negative.',
    ],
    [
      { name: 'x', budgets: [{ unit: 'token', period: 'day', amount: 1.5 }] },
      'budgets[0].amount',
      'budgets[0].amount must be a whole number: micro-dollars or tokens.',
    ],
    [
      {
        name: 'x',
        budgets: [
          { unit: 'token', period: 'day', amount: 1 },
          { unit: 'token', period: 'day', amount: 2 },
        ],
      },
      'budgets',
      'budgets must not limit the same unit twice for one period.',
    ],
    [{ name: 'x', requestsPerMinute: 0 }, 'requestsPerMinute', 'requestsPerMinute must be at least 1.'],
    [
      { name: 'x', addresses: ['192.0.2.0/33'] },
      'addresses[0]',
      'addresses[0] must be an IP address or a range such as 192.0.2.0/24.',
    ],
    [
      { name: 'x', expiresAt: 5 },
      'expiresAt',
      'expiresAt must lie in the future, in milliseconds since 1970.',
    ],
    [{ name: 'x', value: 'sk-mine' }, 'value', 'There is no field value.'],
  ])('of nonsense are refused, and the field is named: %j', async (body, param, message) => {
    expect(await admin.refused('createKey', { body })).toMatchObject({
      status: 400,
      body: { error: { param, message } },
    });
  });

  test('are asked for by id alone: a name or a secret in a path finds nothing', async () => {
    const { value } = await createKey({ name: 'by-name' });
    expect(await admin.refused('deleteKey', { id: 'by-name' })).toMatchObject({ status: 404 });
    expect(await admin.refused('deleteKey', { id: value })).toMatchObject({ status: 404 });
  });

  test('come with a warning where a model is misspelt or has no price', async () => {
    const { warnings } = await createKey({
      name: 'warned',
      models: ['demmo', 'gpt-4*', '*'],
      budgets: [{ unit: 'micro-dollar', period: 'day', amount: 1 }],
    });
    expect(warnings).toEqual([
      'No channel names a model that demmo matches.',
      'With a budget in dollars this key is refused for models without a price: broken.',
    ]);
  });
});

describe('usage', () => {
  test('is found by its filters, page by page, one by one, in sums and as a table', async () => {
    const { key, value } = await createKey({ name: '=cmd()' });
    for (let round = 0; round < 3; round += 1) {
      // oxlint-disable-next-line no-await-in-loop
      await chat(value);
    }
    await chat(value, 'broken');
    const keyId = key.id;
    await eventually(async () =>
      expect((await admin.request('listUsage', { query: { keyId } })).records).toHaveLength(4),
    );
    const first = await admin.request('listUsage', { query: { keyId, outcome: 'ok', limit: 2 } });
    expect(first.records).toHaveLength(2);
    const second = await admin.request('listUsage', {
      query: { keyId, outcome: 'ok', limit: 2, after: first.next ?? '' },
    });
    expect(second.records).toHaveLength(1);
    expect(second.next).toBeUndefined();
    const [record] = first.records;
    expect(record).toMatchObject({ keyId, model: 'demo', channel: 'demo', status: 200 });
    expect(record?.microDollars).toBeGreaterThan(0);
    expect(await admin.request('findUsage', { id: record?.id ?? '' })).toMatchObject({ id: record?.id });
    expect(await admin.refused('findUsage', { id: 'req_nobody' })).toMatchObject({ status: 404 });

    const byModel = await admin.request('sumUsage', { query: { keyId, by: 'model' } });
    expect(byModel.sums.map(({ group, calls, failed }) => ({ group, calls, failed }))).toEqual([
      { group: 'demo', calls: 3, failed: 0 },
      { group: 'broken', calls: 1, failed: 1 },
    ]);
    const since = Date.now() - 3_600_000;
    const byTime = await admin.request('sumUsage', { query: { keyId, by: 'time', bucket: 60_000, since } });
    expect(byTime.sums.reduce((sum, { calls }) => sum + calls, 0)).toBe(4);

    const table = await admin.send('exportUsage', { query: { keyId } });
    expect(table.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(table.headers.get('content-disposition')).toMatch(/^attachment; filename="usage-[\d-]+\.csv"$/);
    expect((await table.text()).trim().split('\r\n')).toHaveLength(5);
  });

  test.each([
    [{ limit: 0 }, 'limit'],
    [{ limit: 501 }, 'limit'],
    [{ status: 'x' }, 'status'],
    [{ outcome: 'good' }, 'outcome'],
    [{ colour: 'red' }, 'colour'],
    [{ after: 'nonsense' }, 'after'],
  ])(
    'with a filter that makes no sense is refused: %j',
    async (query: Record<string, string | number>, param) => {
      expect(await admin.refused('listUsage', { query })).toMatchObject({
        status: 400,
        body: { error: { param } },
      });
    },
  );

  test('in more buckets than anybody can see is refused', async () => {
    expect(await admin.refused('sumUsage', { query: { by: 'time', bucket: 1000, since: 0 } })).toMatchObject({
      status: 400,
      body: { error: { param: 'bucket' } },
    });
    expect(await admin.refused('sumUsage', { query: { by: 'time', bucket: 1000 } })).toMatchObject({
      body: { error: { param: 'since' } },
    });
    expect(await admin.refused('sumUsage', { query: { by: 'nothing' } })).toMatchObject({
      body: { error: { param: 'by' } },
    });
  });

  test.each(['1h', '24h', '7d', '30d'])('of the last %s is summed for the first view', async (range) => {
    const view = await admin.request('overview', { query: { range } });
    expect(view.totals.calls).toBeGreaterThan(0);
    expect(view.series.reduce((sum, { calls }) => sum + calls, 0)).toBe(view.totals.calls);
    expect(view.since % view.bucket).toBe(0);
    expect(view.models.map(({ group }) => group)).toContain('demo');
    expect(view.health).toMatchObject({ rates: 'ok', disabledChannels: [] });
  });
});

describe('channels', () => {
  test('are listed with what they speak, and what went wrong', async () => {
    await chat(gateway.key, 'broken');
    const { channels } = await admin.request('listChannels');
    expect(channels.map(({ id, kind, enabled }) => ({ id, kind, enabled }))).toEqual([
      { id: 'demo', kind: 'demo', enabled: true },
      { id: 'broken', kind: 'openai', enabled: true },
    ]);
    expect(channels[0]?.speaks['chat']).toContain('messages');
    expect(channels[1]?.failures).toBeGreaterThan(0);
    expect(channels[1]?.lastFailure).toMatchObject({ model: 'broken', code: 'upstream_error' });
  });

  test('are tested with a tiny call, which charges nobody', async () => {
    const since = Date.now();
    expect(await admin.request('testChannel', { id: 'demo' })).toMatchObject({
      ok: true,
      model: 'demo',
      text: expect.stringMatching(/ok/),
    });
    const failed = await admin.request('testChannel', { id: 'broken', body: { model: 'gpt-4o' } });
    expect(failed).toMatchObject({
      ok: false,
      model: 'gpt-4o',
      error: { code: 'upstream_error', status: 502 },
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect((await admin.request('listUsage', { query: { since } })).records).toEqual([]);
    expect(await admin.refused('testChannel', { id: 'demo', body: { model: 'gpt-4o' } })).toMatchObject({
      status: 400,
      body: { error: { param: 'model' } },
    });
    expect(await admin.refused('testChannel', { id: 'nobody' })).toMatchObject({ status: 404 });
  });

  test('are switched off and on, and plugins are told that models have changed', async () => {
    let changes = 0;
    onTestFinished(gateway.gateway.notices.on('models-changed', () => (changes += 1)));
    await admin.request('disableChannel', { id: 'demo' });
    expect(changes).toBe(1);
    await admin.request('disableChannel', { id: 'demo' });
    expect(changes).toBe(1);
    await admin.request('enableChannel', { id: 'demo' });
    expect(changes).toBe(2);
  });

  test('are switched off and on, and can be tested meanwhile', async () => {
    expect(await admin.request('disableChannel', { id: 'demo' })).toMatchObject({
      channel: { id: 'demo', enabled: false },
    });
    expect(await chat(gateway.key)).toEqual({ status: 503, code: 'no_available_channel' });
    expect(await admin.request('testChannel', { id: 'demo' })).toMatchObject({ ok: true });
    expect((await admin.request('overview')).health.disabledChannels).toEqual(['demo']);
    expect(await admin.request('enableChannel', { id: 'demo' })).toMatchObject({
      channel: { enabled: true },
    });
    expect(await chat(gateway.key)).toMatchObject({ status: 200 });
    expect(await admin.refused('disableChannel', { id: 'nobody' })).toMatchObject({ status: 404 });
  });

  test('show their models, with prices', async () => {
    const { models } = await admin.request('listModels');
    const demoModel = models.find(({ id }) => id === 'demo');
    expect(demoModel).toMatchObject({ channels: [{ id: 'demo', enabled: true }], outputLimit: 32_000 });
    expect(demoModel?.price).toBeDefined();
    expect(models.find(({ id }) => id === 'gpt-*')).toMatchObject({ channels: [{ id: 'broken' }] });
    expect(models.find(({ id }) => id === 'broken')?.price).toBeUndefined();
    expect(models.find(({ id }) => id === 'gpt-4o-mini')).toMatchObject({
      channels: [{ id: 'broken', price: { input: 0.15 } }],
      price: {
        model: 'gpt-4o-mini',
        source: expect.stringMatching(/^list of 20\d\d-/) as string,
        output: 0.6,
      },
    });
    expect(demoModel?.price?.['source']).toBeUndefined();
    expect(models.find(({ id }) => id === 'demo-thinking')?.price).toMatchObject({
      source: 'channel kind demo',
    });
  });
});

/** The frames of the live view, as they come. */
async function watch(
  page: Admin,
): Promise<{ frames: LiveFrame[]; response: IncomingMessage; status: number }> {
  const request = send(`${gateway.url}/api/admin/live`, { headers: { cookie: page.cookie } });
  request.end();
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  onTestFinished(() => void request.destroy());
  const frames: LiveFrame[] = [];
  let text = '';
  response.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (data !== undefined) frames.push(routes.live.answer.parse(JSON.parse(data)));
    }
  });
  return { frames, response, status: response.statusCode ?? 0 };
}

describe('the live view', () => {
  test('shows a call from its beginning to its end', async () => {
    const { frames, response } = await watch(admin);
    expect(response.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    const { key, value } = await createKey({ name: 'watched' });
    await chat(value, 'demo', 'slowly !silence=3000');
    const calls = () => frames.flatMap((frame) => frame.calls).filter(({ keyId }) => keyId === key.id);
    await eventually(() => expect(calls().at(-1)?.phase).toBe('ended'));
    expect(calls()[0]).toMatchObject({
      keyName: 'watched',
      model: 'demo',
      format: 'chat-completions',
    });
    expect(calls()[0]?.phase).not.toBe('ended');
    expect(calls().at(-1)).toMatchObject({ ended: 'complete', status: 200, channel: 'demo' });
    expect(calls().at(-1)?.ms).toBeGreaterThan(600);
    expect(frames.at(-1)?.running).toBe(0);
  });

  test('begins with the calls that run already', async () => {
    const leaving = new AbortController();
    const messages = [{ role: 'user', content: 'slowly !silence=600k' }];
    await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      signal: leaving.signal,
      headers: { authorization: `Bearer ${gateway.key}`, ...json },
      body: JSON.stringify({ model: 'demo', stream: true, messages }),
    });
    const { frames } = await watch(admin);
    await eventually(() => expect(frames[0]).toMatchObject({ running: 1, calls: [{ model: 'demo' }] }));
    leaving.abort();
    await eventually(() => expect(frames.at(-1)?.running).toBe(0));
  });

  test('tells how a call was refused, and by which channels', async () => {
    const { frames } = await watch(admin);
    await chat('sk-nobody');
    await chat(gateway.key, 'broken');
    const ended = () => frames.flatMap(({ calls }) => calls).filter(({ phase }) => phase === 'ended');
    await eventually(() => expect(ended()).toHaveLength(2));
    expect(ended()[0]).toMatchObject({ status: 401, code: 'invalid_api_key', ended: 'error' });
    expect(ended()[1]).toMatchObject({ status: 502, failedAttempts: ['broken: upstream_error'] });
  });

  test('is for a few at once', async () => {
    const watchers: { status: number }[] = [];
    for (let round = 0; round < 21; round += 1) {
      // oxlint-disable-next-line no-await-in-loop
      watchers.push(await watch(admin));
    }
    expect(watchers.filter(({ status }) => status === 200)).toHaveLength(20);
    expect(watchers.at(-1)?.status).toBe(503);
  });

  test('does not keep a gateway from stopping', async () => {
    const other = await startGateway({
      adminPassword,
      channels: [demo()],
      timeouts: { drain: 2 * patience.test },
    });
    const page = await logIn(other.url);
    const response = await page.send('live');
    expect(response.status).toBe(200);
    const [text] = await Promise.all([response.text(), other.close()]);
    expect(text).toMatch(/^event: snapshot\n/);
  });
});

describe('the audit', () => {
  test('knows every change: who, from where, what, before and after, and no secret', async () => {
    const { key, value } = await createKey({ name: 'audited', models: ['demo'] });
    await admin.request('updateKey', { id: key.id, body: { name: 'audited again' } });
    const { value: fresh } = await admin.request('rotateKey', { id: key.id });
    await admin.request('deleteKey', { id: key.id });
    const { session } = await admin.request('session');
    const { entries } = await admin.request('listAudit', { query: { limit: 500 } });
    const mine = entries.filter(({ target }) => target === key.id);
    expect(mine.map(({ action }) => action)).toEqual([
      'key-delete',
      'key-rotate',
      'key-update',
      'key-create',
    ]);
    expect(mine[2]).toMatchObject({
      session,
      ip: '127.0.0.1',
      before: { name: 'audited', models: ['demo'] },
      after: { name: 'audited again' },
    });
    const text = JSON.stringify(entries);
    for (const secret of [value, fresh, adminPassword, admin.csrfToken]) expect(text).not.toContain(secret);
    expect(text).not.toMatch(/"hash"/);
  });

  test('comes in pages', async () => {
    const first = await admin.request('listAudit', { query: { limit: 1 } });
    const second = await admin.request('listAudit', { query: { limit: 1, after: first.next ?? '' } });
    expect(second.entries[0]?.id).not.toBe(first.entries[0]?.id);
  });
});
