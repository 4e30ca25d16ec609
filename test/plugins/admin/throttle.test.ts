import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MemoryRates } from '../../../core/money/rates/memory.ts';
import type { Rates } from '../../../core/money/rates/index.ts';
import type { SessionParts } from '../../../plugins/admin/access/session.ts';
import { signInHandlers } from '../../../plugins/admin/access/sign-in.ts';
import { LoginThrottle } from '../../../plugins/admin/throttle.ts';

const wrong = () => Promise.resolve(false);
const right = () => Promise.resolve(true);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A throttle whose pauses take no time, and are noted. */
function throttled(rates?: Rates) {
  const pauses: number[] = [];
  const throttle = new LoginThrottle(rates, (milliseconds) => {
    pauses.push(milliseconds);
    return Promise.resolve();
  });
  return { throttle, pauses };
}

/** A check that lasts until it is let go of, and says how many of them run. */
function slow(result: boolean) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const seen = { running: 0, most: 0 };
  const verify = async (): Promise<boolean> => {
    seen.running += 1;
    seen.most = Math.max(seen.most, seen.running);
    await promise;
    seen.running -= 1;
    return result;
  };
  return { verify, seen, go: resolve };
}

describe('logins', () => {
  test('from an address with wrong passwords wait, longer each time, and are never refused for it', async () => {
    const { throttle, pauses } = throttled();
    for (let round = 0; round < 12; round += 1) expect(await throttle.check('192.0.2.1', wrong)).toBe(false);
    expect(pauses).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(await throttle.check('192.0.2.1', right)).toBe(true);
    expect(pauses).toHaveLength(8);
    // The right password ends it.
    expect(await throttle.check('192.0.2.1', right)).toBe(true);
    expect(pauses).toHaveLength(8);
  });

  test('from elsewhere never wait, whoever guesses from however many addresses', async () => {
    const { throttle, pauses } = throttled();
    for (let round = 0; round < 500; round += 1)
      await throttle.check(`198.51.${round % 100}.${Math.floor(round / 100)}`, wrong);
    expect(await throttle.check('192.0.2.1', right)).toBe(true);
    expect(pauses).toEqual([]);
  });

  test('that go well never count', async () => {
    const { throttle, pauses } = throttled(new MemoryRates());
    for (let round = 0; round < 100; round += 1) expect(await throttle.check('192.0.2.1', right)).toBe(true);
    expect(pauses).toEqual([]);
  });

  test('count at once, also while they are being checked: few of one address wait', async () => {
    const { throttle } = throttled();
    const { verify, go } = slow(false);
    const tries = Array.from({ length: 20 }, () => throttle.check('192.0.2.1', verify));
    const settled = Promise.allSettled(tries);
    await turn();
    const elsewhere = throttle.check('192.0.2.2', right);
    go();
    const results = await settled;
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(4);
    expect(await elsewhere).toBe(true);
    expect(results.at(-1)).toMatchObject({ reason: { code: 'rate_limit_exceeded', status: 429 } });
  });

  test('that come at the same time wait as long as those that come one after the other', async () => {
    const { throttle, pauses } = throttled();
    for (let round = 0; round < 4; round += 1) await throttle.check('192.0.2.1', wrong);
    expect(pauses).toEqual([]);
    await Promise.all(Array.from({ length: 4 }, () => throttle.check('192.0.2.1', wrong)));
    expect(pauses).toEqual([1_000, 2_000, 4_000]);
    await throttle.check('192.0.2.2', wrong);
    expect(pauses).toHaveLength(3);
  });

  test('that come while others of their address are checked wait as long as those that come afterwards', async () => {
    const { throttle, pauses } = throttled();
    for (let round = 0; round < 4; round += 1) await throttle.check('192.0.2.1', wrong);
    const { verify, seen, go } = slow(false);
    const tries: Promise<boolean>[] = [];
    for (let round = 0; round < 2; round += 1) {
      tries.push(throttle.check('192.0.2.1', verify));
      // The password of each is being checked before the next one comes.
      await turn();
      expect(seen.running).toBe(round + 1);
    }
    expect(pauses).toEqual([1_000]);
    tries.push(throttle.check('192.0.2.1', verify));
    await turn();
    expect(pauses).toEqual([1_000, 2_000]);
    go();
    expect(await Promise.all(tries)).toEqual([false, false, false]);
    await throttle.check('192.0.2.2', wrong);
    await throttle.check('192.0.2.1', wrong);
    expect(pauses).toEqual([1_000, 2_000, 4_000]);
  });

  test('from one network of IPv6 count as from one address', async () => {
    const { throttle, pauses } = throttled();
    for (const end of ['1', '2', 'a:b', 'ffff:1', '1:2:3:4'])
      await throttle.check(`2001:db8:1:2::${end}`.replace('::1:2:3:4', ':1:2:3:4'), wrong);
    await throttle.check('2001:db8:1:2:9:9:9:9', wrong);
    expect(pauses).toEqual([1_000]);
    await throttle.check('2001:db8:1:3::1', wrong);
    expect(pauses).toEqual([1_000]);
  });

  test('are checked two at a time, those first whose address has failed least', async () => {
    const { throttle } = throttled();
    for (let round = 0; round < 3; round += 1) await throttle.check('192.0.2.1', wrong);
    const { verify, seen, go } = slow(false);
    const order: string[] = [];
    const noting = (name: string) => () => {
      order.push(name);
      return verify();
    };
    const tries = ['1', '2', '3'].map((end) => throttle.check(`203.0.113.${end}`, noting('busy')));
    const guess = throttle.check('192.0.2.1', noting('guesser'));
    const admin = throttle.check('192.0.2.9', noting('admin'));
    await turn();
    go();
    await Promise.all([...tries, guess, admin]);
    expect(seen.most).toBe(2);
    expect(order).toEqual(['busy', 'busy', 'busy', 'admin', 'guesser']);
  });

  test('find room when guessers from very many addresses have taken it all', async () => {
    const { throttle } = throttled();
    const addresses = Array.from({ length: 130 }, (_, index) => `198.51.100.${index}`);
    for (const address of addresses) await throttle.check(address, wrong);
    const { verify, go } = slow(false);
    const guesses = Promise.allSettled(addresses.map((address) => throttle.check(address, verify)));
    await turn();
    const admin = throttle.check('192.0.2.9', right);
    await turn();
    go();
    expect(await admin).toBe(true);
    const results = await guesses;
    expect(results.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0);
    expect(results.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { status: 429 } });
  });

  test('a check that fails leaves its turn to the next', async () => {
    const { throttle } = throttled();
    const broken = () => Promise.reject(new Error('no database'));
    for (let round = 0; round < 4; round += 1)
      await expect(throttle.check('192.0.2.1', broken)).rejects.toThrow('no database');
    expect(await throttle.check('192.0.2.1', right)).toBe(true);
  });

  test('are counted together by all processes that share a count, and the right password counts nowhere', async () => {
    const rates = new MemoryRates();
    const [one, other] = [throttled(rates), throttled(rates)];
    for (let round = 0; round < 3; round += 1) {
      expect(await one.throttle.check('192.0.2.1', wrong)).toBe(false);
      expect(await one.throttle.check('192.0.2.1', right)).toBe(true);
    }
    for (let round = 0; round < 2; round += 1)
      expect(await other.throttle.check('192.0.2.1', wrong)).toBe(false);
    expect([one.pauses, other.pauses]).toEqual([[], []]);
    expect(await one.throttle.check('192.0.2.1', wrong)).toBe(false);
    expect(await other.throttle.check('192.0.2.1', wrong)).toBe(false);
    expect([one.pauses, other.pauses]).toEqual([[1_000], [1_000]]);
    await other.throttle.check('192.0.2.2', wrong);
    expect(other.pauses).toEqual([1_000]);
  });

  test('are counted by each process for itself while the shared count does not answer', async () => {
    const rates = new MemoryRates();
    rates.take = () => Promise.resolve({ allowed: false, states: [], retryMs: 1_000, degraded: true });
    const { throttle, pauses } = throttled(rates);
    for (let round = 0; round < 6; round += 1) expect(await throttle.check('192.0.2.1', wrong)).toBe(false);
    expect(pauses).toEqual([1_000]);
  });
});

test('a sign-in that is half done costs nothing, and nothing is forgotten for it', async () => {
  const half = () => Promise.resolve('half' as const);
  const { throttle, pauses } = throttled();
  for (let tries = 0; tries < 5; tries += 1) await throttle.check('192.0.2.1', wrong);
  expect(await throttle.check('192.0.2.1', half)).toBe('half');
  await throttle.check('192.0.2.1', wrong);
  expect(pauses).toEqual([1_000, 1_000]);
  const shared = throttled(new MemoryRates());
  for (let tries = 0; tries < 20; tries += 1) await shared.throttle.check('192.0.2.1', half);
  expect(shared.pauses).toEqual([]);
});

test.each([
  ['wrong', false, 'This code is wrong'],
  ['blocked', false, 'Too many codes were wrong'],
  [undefined, 'half', 'Give the code'],
] as const)('a right password with a code that is %s is no success', async (outcome, verdict, words) => {
  const verdicts: unknown[] = [];
  const user = { id: 'usr_1', hasSecondFactor: true };
  const { signIn } = signInHandlers({
    tools: {
      credentials: { checkPassword: async () => user, checkCode: async () => outcome },
    },
    throttle: { check: async (_ip: string, verify: () => unknown) => verdicts.push(await verify()) },
  } as unknown as SessionParts);
  const code = outcome === undefined ? {} : { code: '123456' };
  const request = { ip: '192.0.2.1', body: { email: 'ada@example.com', password: 'right', ...code } };
  await expect(signIn(request as Parameters<typeof signIn>[0])).rejects.toThrow(words);
  expect(verdicts).toEqual([verdict]);
});
