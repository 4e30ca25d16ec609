import { describe, expect, onTestFinished, test } from 'vitest';
import { openAdminPassword } from '../../../core/state/admin-password.ts';
import { entriesOf, openStores } from '../../../core/state/stores.ts';

function opened() {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  return { stores, password: openAdminPassword(stores) };
}

describe('the admin password', () => {
  test('is made once, at the first start', async () => {
    const { password } = opened();
    const made = await password.ensure();
    expect(made).toMatch(/^(\w{6}-){3}\w{6}$/);
    expect(await password.ensure()).toBeUndefined();
    expect(await password.check(made ?? '')).toBe(true);
    expect(await password.check(`${made}x`)).toBe(false);
  });

  test('that the operator sets takes the place of the one before', async () => {
    const { password } = opened();
    const made = await password.ensure();
    const before = await password.generation();
    await password.set('chosen by the operator');
    expect(await password.check(made ?? '')).toBe(false);
    expect(await password.check('chosen by the operator')).toBe(true);
    expect(await password.generation()).not.toBe(before);
  });

  test('is right however its letters were typed', async () => {
    const { password } = opened();
    await password.set('caf\u00e9 au lait');
    expect(await password.check('cafe\u0301 au lait')).toBe(true);
  });

  test('that nobody has made is never right, and checking it takes as long', async () => {
    const { password } = opened();
    const timed = async (): Promise<number> => {
      const startedAt = performance.now();
      await password.check('a guess at the password');
      return performance.now() - startedAt;
    };
    await timed();
    const without = await timed();
    expect(await password.check('')).toBe(false);
    expect(await password.generation()).toBeUndefined();
    await password.set('chosen by the operator');
    const withOne = await timed();
    expect(without).toBeGreaterThan(withOne / 10);
  });

  test('is not stored', async () => {
    const { stores, password } = opened();
    await password.set('chosen by the operator');
    const rows = await Array.fromAsync(entriesOf(stores.namespace('admin-password')));
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain('chosen');
  });
});
