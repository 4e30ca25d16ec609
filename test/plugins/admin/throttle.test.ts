import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MemoryRates } from '../../../core/state/rates-memory.ts';
import { LoginThrottle } from '../../../plugins/admin/throttle.ts';

const wrong = () => Promise.resolve(false);
const right = () => Promise.resolve(true);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('logins', () => {
  test('are refused after five wrong passwords from one address, until a minute has passed', async () => {
    const throttle = new LoginThrottle();
    for (let round = 0; round < 5; round += 1) expect(await throttle.check('192.0.2.1', wrong)).toBe(false);
    const verify = vi.fn<() => Promise<boolean>>(right);
    await expect(throttle.check('192.0.2.1', verify)).rejects.toMatchObject({
      code: 'rate_limit_exceeded',
      status: 429,
      retryAfter: 60,
    });
    expect(verify).not.toHaveBeenCalled();
    expect(await throttle.check('192.0.2.2', right)).toBe(true);
    vi.advanceTimersByTime(60_001);
    expect(await throttle.check('192.0.2.1', right)).toBe(true);
  });

  test('that go well never count', async () => {
    const throttle = new LoginThrottle();
    for (let round = 0; round < 100; round += 1) expect(await throttle.check('192.0.2.1', right)).toBe(true);
  });

  test('count at once, also while they are being checked', async () => {
    const throttle = new LoginThrottle();
    const tries = await Promise.allSettled(
      Array.from({ length: 20 }, () => throttle.check('192.0.2.1', wrong)),
    );
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
  });

  test('from many addresses are limited together', async () => {
    const throttle = new LoginThrottle();
    for (let round = 0; round < 50; round += 1) await throttle.check(`192.0.2.${round}`, wrong);
    await expect(throttle.check('198.51.100.1', right)).rejects.toMatchObject({ status: 429 });
  });

  test('from one network of IPv6 count as from one address', async () => {
    const throttle = new LoginThrottle();
    for (const end of ['1', '2', 'a:b', 'ffff:1', '1:2:3:4'])
      await throttle.check(`2001:db8:1:2::${end}`.replace('::1:2:3:4', ':1:2:3:4'), wrong);
    await expect(throttle.check('2001:db8:1:2:9:9:9:9', right)).rejects.toMatchObject({ status: 429 });
    expect(await throttle.check('2001:db8:1:3::1', right)).toBe(true);
  });

  test('are checked two at a time, and few may wait', async () => {
    const throttle = new LoginThrottle();
    let running = 0;
    let most = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const verify = async (): Promise<boolean> => {
      running += 1;
      most = Math.max(most, running);
      await promise;
      running -= 1;
      return true;
    };
    const tries = Array.from({ length: 12 }, (_, index) => throttle.check(`192.0.2.${index}`, verify));
    const settled = Promise.allSettled(tries);
    resolve();
    const results = await settled;
    expect(most).toBe(2);
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
    expect(await throttle.check('192.0.2.1', right)).toBe(true);
  });

  test('a check that fails leaves its turn to the next', async () => {
    const throttle = new LoginThrottle();
    const broken = () => Promise.reject(new Error('no database'));
    for (let round = 0; round < 4; round += 1)
      await expect(throttle.check('192.0.2.1', broken)).rejects.toThrow('no database');
    expect(await throttle.check('192.0.2.1', right)).toBe(true);
  });

  test('are counted together by all processes that share a count, and the right password counts nowhere', async () => {
    const rates = new MemoryRates();
    const [one, other] = [new LoginThrottle(rates), new LoginThrottle(rates)];
    for (let round = 0; round < 3; round += 1) {
      expect(await one.check('192.0.2.1', wrong)).toBe(false);
      expect(await one.check('192.0.2.1', right)).toBe(true);
    }
    expect(await other.check('192.0.2.1', wrong)).toBe(false);
    expect(await other.check('192.0.2.1', wrong)).toBe(false);
    for (const throttle of [one, other]) {
      const verify = vi.fn<() => Promise<boolean>>(right);
      await expect(throttle.check('192.0.2.1', verify)).rejects.toMatchObject({ status: 429 });
      expect(verify).not.toHaveBeenCalled();
    }
    expect(await one.check('192.0.2.2', right)).toBe(true);
    vi.advanceTimersByTime(61_001);
    expect(await other.check('192.0.2.1', right)).toBe(true);
  });

  test('are counted by each process for itself while the shared count does not answer', async () => {
    const rates = new MemoryRates();
    rates.take = () => Promise.resolve({ allowed: false, states: [], retryMs: 1_000, degraded: true });
    const throttle = new LoginThrottle(rates);
    for (let round = 0; round < 5; round += 1) expect(await throttle.check('192.0.2.1', wrong)).toBe(false);
    await expect(throttle.check('192.0.2.1', right)).rejects.toMatchObject({ status: 429 });
    expect(await throttle.check('192.0.2.2', right)).toBe(true);
  });
});
