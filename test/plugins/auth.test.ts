import { testPlugins, virtualClock, type CallOptions, type VirtualClock } from 'sluice/testing';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { caller } from '../../core/sdk/caller.ts';
import type { Call } from '../../core/sdk/call.ts';
import type { WholeLoad } from '../../core/front/overload.ts';
import type { ApiKeys, NewApiKey } from '../../core/state/api-keys/index.ts';
import { createApiKeys } from '../../core/state/api-keys/open.ts';
import { MemoryRates } from '../../core/money/rates/memory.ts';
import { openStores } from '../../core/state/stores.ts';
import { countFailures } from '../../plugins/_failures.ts';
import auth from '../../plugins/auth.ts';
import { definePlugin } from 'sluice/internal';

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

type Tested = Awaited<ReturnType<typeof testPlugins>>;

async function withAuth(
  options: Parameters<typeof auth>[0] = {},
  { rates = new MemoryRates(), waiting = 0 } = {},
): Promise<Tested> {
  const overload = { waiting } as WholeLoad;
  const tested = await testPlugins(auth(options), { tools: { apiKeys, rates, overload } });
  onTestFinished(() => tested.close());
  return tested;
}

let tested: Tested;
beforeAll(async () => {
  tested = await testPlugins(auth, { tools: { apiKeys, overload: { waiting: 0 } as WholeLoad } });
});
afterAll(() => tested.close());

/** Returns the call as later plugins see it. Rejects when it is refused. */
async function pass(options: CallOptions): Promise<Call> {
  const { sent, error } = await tested.run(options);
  if (error !== undefined) throw error;
  const [one] = sent;
  if (one === undefined) throw new Error('The call did not go on.');
  return one.call;
}

const nameOf = async (options: CallOptions): Promise<string | undefined> =>
  (await pass(options)).get(caller)?.name;

describe('a key is accepted', () => {
  test('in every public style', async () => {
    expect(await nameOf({ headers: { authorization: `Bearer ${key}` } })).toBe('first');
    expect(await nameOf({ headers: { 'x-api-key': key } })).toBe('first');
    expect(await nameOf({ headers: { 'x-goog-api-key': key } })).toBe('first');
    expect(await nameOf({ headers: { 'x-g-api-key': key } })).toBe('first');
    expect(await nameOf({ headers: { 'api-key': key } })).toBe('first');
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
  test('the first counts: x-api-key, Authorization, x-goog-api-key, api-key, key', async () => {
    const wrong = 'sk-unknown-unknown-unknown';
    expect(await nameOf({ headers: { authorization: `Bearer ${other}`, 'x-api-key': key } })).toBe('first');
    expect(await nameOf({ headers: { 'x-goog-api-key': wrong, authorization: `Bearer ${key}` } })).toBe(
      'first',
    );
    expect(await nameOf({ headers: { 'x-goog-api-key': key }, query: `key=${other}` })).toBe('first');
    expect(await nameOf({ headers: { 'api-key': wrong, 'x-goog-api-key': key } })).toBe('first');
    expect(await nameOf({ headers: { 'api-key': key }, query: `key=${other}` })).toBe('first');
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
      'This request has no API key. Send yours as "Authorization: Bearer YOUR_KEY"',
    );
    await expect(nameOf({ headers: { authorization: 'Bearer' } })).rejects.toThrow('has no API key');
  });

  test('with an Authorization header of another kind, which the sentence explains', async () => {
    for (const authorization of [key, `Basic ${key}`]) {
      await expect(nameOf({ headers: { authorization } })).rejects.toThrow(
        'not in the form "Bearer YOUR_KEY"',
      );
    }
  });

  test('with a key that nobody made, without telling it', async () => {
    const secret = 'sk-0123456789abcdefghijklmnop';
    const error = await nameOf({ headers: { authorization: `Bearer ${secret}` } }).catch(
      (thrown: unknown) => thrown as Error,
    );
    expect(error).toMatchObject({ code: 'invalid_api_key', param: undefined });
    expect(String(error)).toContain('Incorrect API key provided: it is unknown.');
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
      message: expect.stringMatching(/^Incorrect API key provided: it is disabled/) as string,
    });
  });

  test('with one that has expired, which names the day', async () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    const { value, record } = await apiKeys.create({ name: 'brief', expiresAt: Date.now() + 60_000 });
    vi.advanceTimersByTime(60_000);
    const day = new Date(record.expiresAt ?? 0).toISOString().slice(0, 10);
    await expect(nameOf({ headers: { 'x-api-key': value } })).rejects.toMatchObject({
      status: 401,
      code: 'expired_api_key',
      message: `Incorrect API key provided: it expired on ${day}. Ask the operator of this gateway for a new one.`,
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

  let clock: VirtualClock;
  beforeEach(() => {
    clock = virtualClock();
  });
  afterEach(() => clock.restore());

  /** Asks, and gives the status with the milliseconds after which it was answered. */
  const guard = async (failures?: number, given: Parameters<typeof withAuth>[1] = {}) => {
    const { run } = await withAuth(failures === undefined ? {} : { failures }, given);
    const send = (headers: CallOptions['headers'], ip: string) => {
      const client = new AbortController();
      const startedAt = performance.now();
      const answered = run({ headers: headers ?? {}, ip }, { signal: client.signal });
      const outcome = answered.then(({ status }) => ({ status, late: performance.now() - startedAt }));
      return { outcome, leave: () => client.abort() };
    };
    const sendAndMeasure = async (headers: CallOptions['headers'], ip: string) => {
      const { outcome } = send(headers, ip);
      const state = { done: false };
      void outcome.finally(() => (state.done = true));
      await clock.advance(0);
      while (!state.done) await clock.advance(25);
      return outcome;
    };
    return { sendAndMeasure, send };
  };

  test('gets 401 however often, each time later, up to two seconds; a valid key is let through at once', async () => {
    const { sendAndMeasure } = await guard();
    for (let number = 0; number < 20; number += 1)
      expect(await sendAndMeasure(wrong, '192.0.2.1')).toEqual({ status: 401, late: 0 });
    for (const late of [100, 200, 400, 800, 1_600, 2_000, 2_000])
      expect(await sendAndMeasure(wrong, '192.0.2.1')).toEqual({ status: 401, late });
    const off = await make({ name: 'off', enabled: false });
    expect(await sendAndMeasure({ 'x-api-key': off }, '192.0.2.1')).toEqual({ status: 401, late: 2_000 });
    expect(await sendAndMeasure({ 'x-api-key': key }, '192.0.2.1')).toEqual({ status: 200, late: 0 });
    expect(await sendAndMeasure(wrong, '192.0.2.2')).toEqual({ status: 401, late: 0 });
    expect(await sendAndMeasure({}, '192.0.2.1')).toEqual({ status: 401, late: 0 });
  });

  test('is answered at once again after a minute', async () => {
    const { sendAndMeasure } = await guard(1);
    await sendAndMeasure(wrong, '192.0.2.1');
    expect((await sendAndMeasure(wrong, '192.0.2.1')).late).toBe(100);
    // The shared minute moves on by the second.
    await clock.advance(61_001);
    expect((await sendAndMeasure(wrong, '192.0.2.1')).late).toBe(0);
  });

  test('is one address for all processes that count together', async () => {
    const rates = new MemoryRates();
    const [here, there] = [await guard(2, { rates }), await guard(2, { rates })];
    expect((await here.sendAndMeasure(wrong, '192.0.2.1')).late).toBe(0);
    expect((await there.sendAndMeasure(wrong, '192.0.2.1')).late).toBe(0);
    expect((await here.sendAndMeasure(wrong, '192.0.2.1')).late).toBe(100);
    expect((await there.sendAndMeasure(wrong, '192.0.2.1')).late).toBe(100);
  });

  test('is counted by each process for itself while the shared count does not answer', async () => {
    const rates = new MemoryRates();
    rates.take = () => Promise.resolve({ allowed: false, states: [], retryMs: 1_000, degraded: true });
    const { sendAndMeasure } = await guard(2, { rates });
    for (const late of [0, 0, 100])
      expect(await sendAndMeasure(wrong, '192.0.2.1')).toEqual({ status: 401, late });
  });

  test('is one /64 of IPv6 addresses', async () => {
    const { sendAndMeasure } = await guard(1);
    for (const [ip, late] of [
      ['2001:db8:0:1::5', 0],
      ['2001:db8:0:1:ffff:1:2:3', 100],
      ['2001:db8:0:2::5', 0],
      ['::1', 0],
    ] as const)
      expect((await sendAndMeasure(wrong, ip)).late).toBe(late);
  });

  test('holds few answers at once, of one address and of all: the others are answered without delay', async () => {
    const { sendAndMeasure, send } = await guard(1);
    const held: ReturnType<typeof send>[] = [];
    for (let number = 0; number < 100; number += 1) {
      const ip = `192.0.2.${number}`;
      await sendAndMeasure(wrong, ip);
      for (let again = 0; again < 10; again += 1) held.push(send(wrong, ip));
    }
    let answered = 0;
    for (const { outcome } of held) void outcome.then(() => (answered += 1));
    await clock.advance(0);
    expect(held.length - answered).toBe(64);
    await clock.advance(2_025);
    await Promise.all(held.map(({ outcome }) => outcome));
    expect((await sendAndMeasure(wrong, '192.0.2.1')).late).toBeGreaterThan(0);
  });

  test('gives its place back when it leaves, and holds none while other calls wait for room', async () => {
    const { sendAndMeasure, send } = await guard(1);
    await sendAndMeasure(wrong, '192.0.2.1');
    const [first] = Array.from({ length: 8 }, () => send(wrong, '192.0.2.1'));
    await clock.advance(0);
    expect((await sendAndMeasure(wrong, '192.0.2.1')).late).toBe(0);
    first?.leave();
    expect((await sendAndMeasure(wrong, '192.0.2.1')).late).toBeGreaterThan(0);
    const crowded = await guard(1, { waiting: 1 });
    for (let number = 0; number < 5; number += 1)
      expect((await crowded.sendAndMeasure(wrong, '192.0.2.1')).late).toBe(0);
  });

  test('is forgotten when very many others came since, so that nobody can fill the memory', () => {
    const failures = countFailures(60_000);
    for (let number = 0; number < 10_001; number += 1) failures.count(`192.0.2.${number}`);
    expect(failures.of('192.0.2.0')).toBe(0);
    expect(failures.of('192.0.2.1')).toBe(1);
  });

  test('may go on where the operator wants that', async () => {
    const { sendAndMeasure } = await guard(0);
    for (let number = 0; number < 50; number += 1)
      expect(await sendAndMeasure(wrong, '192.0.2.1')).toEqual({ status: 401, late: 0 });
  });
});

describe('behind this plugin', () => {
  test('nobody sees a credential, whichever counted', async () => {
    const headers = {
      'x-api-key': key,
      authorization: `Bearer ${other}`,
      'x-goog-api-key': other,
      'x-g-api-key': other,
      'api-key': other,
      cookie: 'session=1',
      'proxy-authorization': 'Basic eDp5',
      'sec-websocket-protocol': `realtime, openai-insecure-api-key.${other}`,
      'anthropic-version': '2023-06-01',
    };
    const { wire } = await pass({ headers, query: `key=${other}&alt=sse` });
    expect(wire.headers).toEqual({
      'content-type': 'application/json',
      'sec-websocket-protocol': 'realtime',
      'anthropic-version': '2023-06-01',
    });
    expect(wire.query.toString()).toBe('alt=sse');
  });

  test('nor does who watches a refused call', async () => {
    const watched: Call[] = [];
    const watching = definePlugin({
      name: 'watching',
      stage: 'observe',
      setup: () => (call: Call, next) => {
        watched.push(call);
        return next(call);
      },
    });
    const { run, close } = await testPlugins([watching, auth], { tools: tested.tools });
    onTestFinished(close);
    const headers = { 'x-api-key': 'sk-unknown-unknown-unknown' };
    expect((await run({ headers, query: 'key=abc' })).error?.message).toContain('it is unknown');
    const [call] = watched;
    expect(call?.wire.headers).toEqual({ 'content-type': 'application/json' });
    expect(call?.wire.query.size).toBe(0);
  });
});
