import { execFileSync } from 'node:child_process';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openAdminPassword } from '../../../core/state/admin-password.ts';
import { entriesOf, openStores } from '../../../core/state/stores.ts';

function opened() {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  return { stores, password: openAdminPassword(stores) };
}

/** Returns the CPU time of checking a guess, in milliseconds: before there is a password, and with one. */
function costsOfChecks(): readonly [without: number, withOne: number] {
  const url = (path: string): string =>
    JSON.stringify(new URL(`../../../core/state/${path}`, import.meta.url).href);
  const script = `
    import { openAdminPassword } from ${url('admin-password.ts')};
    import { openStores } from ${url('stores.ts')};
    const password = openAdminPassword(openStores('sqlite::memory:'));
    const cost = async () => {
      const before = process.cpuUsage();
      await password.check('a guess at the password');
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1000;
    };
    await cost();
    const without = await cost();
    await password.set('chosen by the operator');
    console.log(JSON.stringify([without, await cost()]));
    process.exit();`;
  const options = ['--conditions=sluice-source', '--input-type=module', '--eval', script];
  return JSON.parse(execFileSync(process.execPath, options, { encoding: 'utf8' })) as [number, number];
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

  test('that nobody has made is never right, and checking it costs as much', async () => {
    const { password } = opened();
    expect(await password.check('')).toBe(false);
    expect(await password.check('a guess at the password')).toBe(false);
    expect(await password.generation()).toBeUndefined();
    // In a process of its own, because a hash costs next to nothing here.
    const [without, withOne] = costsOfChecks();
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
