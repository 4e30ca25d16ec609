import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { caller } from '../../core/caller.ts';
import type { Call } from '../../core/call.ts';
import { createApiKeys, type ApiKeys, type NewApiKey } from '../../core/state/api-keys.ts';
import type { Rates } from '../../core/state/rates.ts';
import { MemoryRates } from '../../core/state/rates-memory.ts';
import { openStores } from '../../core/state/stores.ts';
import { countFailures } from '../../plugins/_failures.ts';
import auth from '../../plugins/auth.ts';
import { answering, handlerOf, testCall, testTools, type CallOptions } from './_call.ts';

const stores = openStores('sqlite::memory:');
const apiKeys: ApiKeys = createApiKeys(stores);
let key: string;
let other: string;

const make = async (options: NewApiKey) => (await apiKeys.create(options)).value;

beforeAll(async () => {
  key = await make({ name: 'first' });
  other = await make({ name: 'second' });
});
afterAll(() => stores.close());

/** The call as the plugins behind see it. Rejects when it is refused. */
async function pass(options: CallOptions): Promise<Call> {
  const next = answering();
  const handler = await handlerOf(auth, testTools({ apiKeys }).tools);
  await handler(testCall(options).call, next);
  const [call] = next.calls;
  if (call === undefined) throw new Error('The call did not go on.');
  return call;
}

const nameOf = async (options: CallOptions): Promise<string | undefined> =>
  (await pass(options)).get(caller)?.name;

describe('a key is accepted', () => {
  test('in every public style', async () => {
    expect(await nameOf({ headers: { authorization: `Bearer ${key}` } })).toBe('first');
    expect(await nameOf({ headers: { 'x-api-key': key } })).toBe('first');
    expect(await nameOf({ headers: { 'x-goog-api-key': key } })).toBe('first');
    expect(await nameOf({ headers: { 'x-g-api-key': key } })).toBe('first');
    expect(await nameOf({ query: `alt=sse&key=${key}` })).toBe('first');
    expect(
      await nameOf({ headers: { 'sec-websocket-protocol': `realtime, openai-insecure-api-key.${key}, v1` } }),
    ).toBe('first');
  });

  test('however the word Bearer is written, with spaces around', async () => {
    for (const header of [`bearer ${key}`, `BEARER   ${key}  `, ` Bearer\t${key}`]) {
      expect(await nameOf({ headers: { authorization: header } })).toBe('first');
    }
    expect(await nameOf({ headers: { 'x-api-key': ` ${key} ` } })).toBe('first');
  });

  test('beside empty credentials, which count as absent', async () => {
    const headers = { 'x-api-key': '', authorization: 'Bearer ', 'x-goog-api-key': key };
    expect(await nameOf({ headers, query: 'key=' })).toBe('first');
  });

  test('twice in one header', async () => {
    expect(await nameOf({ headers: { 'x-api-key': `${key}, ${key}` } })).toBe('first');
  });
});

describe('of several credentials', () => {
  test('the first counts: x-api-key, Authorization, x-goog-api-key, key', async () => {
    const wrong = 'sk-unknown-unknown-unknown';
    expect(await nameOf({ headers: { authorization: `Bearer ${other}`, 'x-api-key': key } })).toBe('first');
    expect(await nameOf({ headers: { 'x-goog-api-key': wrong, authorization: `Bearer ${key}` } })).toBe(
      'first',
    );
    expect(await nameOf({ headers: { 'x-goog-api-key': key }, query: `key=${other}` })).toBe('first');
    expect(
      await nameOf({
        headers: { 'sec-websocket-protocol': `openai-insecure-api-key.${other}` },
        query: `key=${key}`,
      }),
    ).toBe('first');
  });

  test('no other is tried when the first is invalid', async () => {
    const headers = { 'x-api-key': 'sk-unknown-unknown-unknown', authorization: `Bearer ${key}` };
    await expect(nameOf({ headers })).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' });
    await expect(nameOf({ headers: { 'x-api-key': `nonsense, ${key}` } })).rejects.toMatchObject({
      code: 'invalid_api_key',
    });
  });
});

describe('a caller is refused with 401', () => {
  test('without a key', async () => {
    const refusal = { status: 401, code: 'missing_api_key', headers: { 'www-authenticate': 'Bearer' } };
    await expect(nameOf({})).rejects.toMatchObject(refusal);
    await expect(nameOf({})).rejects.toThrow(
      'This request carries no API key. Send yours as "Authorization: Bearer YOUR_KEY"',
    );
    await expect(nameOf({ headers: { authorization: 'Bearer' } })).rejects.toThrow('carries no API key');
  });

  test('with an Authorization header of another kind, which the sentence explains', async () => {
    for (const authorization of [key, `Basic ${key}`]) {
      await expect(nameOf({ headers: { authorization } })).rejects.toThrow(
        'not of the form "Bearer YOUR_KEY"',
      );
    }
  });

  test('with a key that nobody made, without telling it', async () => {
    const secret = 'sk-0123456789abcdefghijklmnop';
    const error = await nameOf({ headers: { authorization: `Bearer ${secret}` } }).catch(
      (thrown: unknown) => thrown as Error,
    );
    expect(error).toMatchObject({ code: 'invalid_api_key', param: undefined });
    expect(String(error)).toContain('Incorrect API key provided: it is not known here.');
    expect(String(error)).not.toMatch(/sk-|mnop/);
  });

  test('with one that could not be a key at all', async () => {
    for (const value of ['\u00ff\u00fe', 'a'.repeat(10_000), '../../etc/passwd', '\0']) {
      await expect(nameOf({ headers: { 'x-api-key': value } })).rejects.toMatchObject({
        status: 401,
        code: 'invalid_api_key',
      });
    }
  });

  test('with a key that is switched off', async () => {
    const value = await make({ name: 'off', enabled: false });
    await expect(nameOf({ query: `key=${value}` })).rejects.toMatchObject({
      status: 401,
      code: 'disabled_api_key',
      message: expect.stringMatching(/^Incorrect API key provided: it is switched off/) as string,
    });
  });

  test('with one that has expired, which names the day', async () => {
    const { value, record } = await apiKeys.create({ name: 'brief', expiresAt: Date.now() + 5 });
    await new Promise((resolve) => setTimeout(resolve, 10));
    const day = new Date(record.expiresAt ?? 0).toISOString().slice(0, 10);
    await expect(nameOf({ headers: { 'x-api-key': value } })).rejects.toMatchObject({
      status: 401,
      code: 'expired_api_key',
      message: `Incorrect API key provided: it expired on ${day}. Ask whoever runs this gateway for a new one.`,
    });
  });
});

describe('a key that names addresses', () => {
  const from = (value: string, ip: string) => nameOf({ headers: { 'x-api-key': value }, ip });

  test('is accepted from those and from ranges, in both families', async () => {
    const value = await make({ name: 'office', addresses: ['192.0.2.7', '10.0.0.0/8', '2001:db8::/32'] });
    for (const ip of ['192.0.2.7', '::ffff:192.0.2.7', '10.255.1.1', '2001:db8:1::5'])
      expect(await from(value, ip)).toBe('office');
  });

  test('is refused with 403 from anywhere else', async () => {
    const value = await make({ name: 'office', addresses: ['192.0.2.7', '10.0.0.0/8'] });
    for (const ip of ['192.0.2.8', '11.0.0.1', '2001:db8::1', '']) {
      await expect(from(value, ip)).rejects.toMatchObject({ status: 403, code: 'forbidden' });
    }
  });

  test('is not opened by an entry that is no address', async () => {
    const value = await make({ name: 'typo', addresses: ['10.0.0.0/', '10.0.0.0/99', 'everywhere'] });
    await expect(from(value, '10.0.0.1')).rejects.toMatchObject({ status: 403 });
  });
});

describe('an address that sends many wrong keys', () => {
  const wrong = { 'x-api-key': 'sk-unknown-unknown-unknown' };
  const guard = async (failures?: number, rates: Rates = new MemoryRates()) => {
    const handler = await handlerOf(
      auth,
      testTools({ apiKeys, rates }).tools,
      failures === undefined ? {} : { failures },
    );
    return async (headers: CallOptions['headers'], ip: string) => {
      try {
        await handler(testCall({ headers: headers ?? {}, ip }).call, answering());
        return 200;
      } catch (error) {
        return (error as { status: number }).status;
      }
    };
  };

  test('gets 429 and the time to wait for those that follow, whatever is wrong with them', async () => {
    const ask = await guard();
    for (let number = 0; number < 20; number += 1) expect(await ask(wrong, '192.0.2.1')).toBe(401);
    expect(await ask(wrong, '192.0.2.1')).toBe(429);
    const off = await make({ name: 'off', enabled: false });
    expect(await ask({ 'x-api-key': off }, '192.0.2.1')).toBe(429);
    const handler = await handlerOf(auth, testTools({ apiKeys }).tools, { failures: 1 });
    await handler(testCall({ headers: wrong }).call, answering()).catch(() => {});
    const error: unknown = await handler(testCall({ headers: wrong }).call, answering()).catch(
      (thrown) => thrown,
    );
    expect(error).toMatchObject({
      status: 429,
      code: 'rate_limit_exceeded',
      retryAfter: 60,
      message: 'Too many wrong API keys came from your address. Try again in 60 s.',
    });
  });

  test('is let through with a valid key all the same, and other addresses are not concerned', async () => {
    const ask = await guard(2);
    for (let number = 0; number < 5; number += 1) await ask(wrong, '192.0.2.1');
    expect(await ask({ 'x-api-key': key }, '192.0.2.1')).toBe(200);
    expect(await ask(wrong, '192.0.2.1')).toBe(429);
    expect(await ask(wrong, '192.0.2.2')).toBe(401);
  });

  test('may try again after a minute', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const ask = await guard(1);
    expect(await ask(wrong, '192.0.2.1')).toBe(401);
    expect(await ask(wrong, '192.0.2.1')).toBe(429);
    vi.advanceTimersByTime(59_999);
    expect(await ask(wrong, '192.0.2.1')).toBe(429);
    // The shared minute moves on by the second.
    vi.advanceTimersByTime(1_001);
    expect(await ask(wrong, '192.0.2.1')).toBe(401);
  });

  test('is one address for all processes that count together', async () => {
    const rates = new MemoryRates();
    const [here, there] = [await guard(2, rates), await guard(2, rates)];
    expect(await here(wrong, '192.0.2.1')).toBe(401);
    expect(await there(wrong, '192.0.2.1')).toBe(401);
    expect([await here(wrong, '192.0.2.1'), await there(wrong, '192.0.2.1')]).toEqual([429, 429]);
    expect(await here({ 'x-api-key': key }, '192.0.2.1')).toBe(200);
  });

  test('is counted by each process for itself while the shared count does not answer', async () => {
    const rates = new MemoryRates();
    rates.take = () => Promise.resolve({ allowed: false, states: [], retryMs: 1_000, degraded: true });
    const ask = await guard(2, rates);
    for (const status of [401, 401, 429]) expect(await ask(wrong, '192.0.2.1')).toBe(status);
  });

  test('is one /64 of IPv6 addresses', async () => {
    const ask = await guard(1);
    expect(await ask(wrong, '2001:db8:0:1::5')).toBe(401);
    expect(await ask(wrong, '2001:db8:0:1:ffff:1:2:3')).toBe(429);
    expect(await ask(wrong, '2001:db8:0:2::5')).toBe(401);
    expect(await ask(wrong, '::1')).toBe(401);
  });

  test('is forgotten when very many others came since, so that nobody can fill the memory', async () => {
    const failures = countFailures(1);
    for (let number = 0; number < 10_001; number += 1) failures.count(`192.0.2.${number}`);
    expect(failures.wait('192.0.2.0')).toBe(0);
    expect(failures.wait('192.0.2.1')).toBeGreaterThan(59_000);
  });

  test('may go on where the operator wants that', async () => {
    const ask = await guard(0);
    for (let number = 0; number < 50; number += 1) expect(await ask(wrong, '192.0.2.1')).toBe(401);
  });

  test('is not one that sends none', async () => {
    const ask = await guard(1);
    for (let number = 0; number < 5; number += 1) expect(await ask({}, '192.0.2.1')).toBe(401);
  });
});

describe('behind this plugin', () => {
  test('nobody sees a credential, whichever counted', async () => {
    const headers = {
      'x-api-key': key,
      authorization: `Bearer ${other}`,
      'x-goog-api-key': other,
      'x-g-api-key': other,
      cookie: 'session=1',
      'proxy-authorization': 'Basic eDp5',
      'sec-websocket-protocol': `realtime, openai-insecure-api-key.${other}`,
      'anthropic-version': '2023-06-01',
    };
    const { wire } = await pass({ headers, query: `key=${other}&alt=sse` });
    expect(wire.headers).toEqual({ 'sec-websocket-protocol': 'realtime', 'anthropic-version': '2023-06-01' });
    expect(wire.query.toString()).toBe('alt=sse');
  });

  test('nor does who watches a refused call', async () => {
    const { call } = testCall({ headers: { 'x-api-key': 'sk-unknown-unknown-unknown' }, query: 'key=abc' });
    const handler = await handlerOf(auth, testTools({ apiKeys }).tools);
    await expect(handler(call, answering())).rejects.toThrow('not known here');
    expect(call.wire.headers).toEqual({});
    expect(call.wire.query.size).toBe(0);
  });
});
