import { expect, onTestFinished, test } from 'vitest';
import { openAdminTokens } from '../../../core/state/admin-tokens/open.ts';
import { openStores } from '../../../core/state/stores.ts';

const day = 86_400_000;

test('one busy author, and one organisation, leave room for tokens of others', async () => {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  const tokens = openAdminTokens(stores);
  const createdAt = Date.now();
  const fields = (kind: string, id: string, organisation?: string) => ({
    name: 'one',
    role: 'admin' as const,
    scopes: ['keys:read'],
    createdBy: { kind, id, name: id },
    createdAt,
    expiresAt: createdAt + day,
    ...(organisation === undefined ? {} : { organisation }),
  });
  // Written at once, because each creation counts them all.
  const kept = stores.namespace<unknown>('admin-tokens');
  const row = (index: number, token: object) => ({
    key: `row ${index}`,
    value: { ...token, id: `tok_${index}`, suffix: 'wxyz' },
  });
  await kept.setMany([
    ...Array.from({ length: 250 }, (_, index) => row(index, fields('token', 'tok_busy'))),
    ...Array.from({ length: 250 }, (_, index) => row(250 + index, fields('user', `u${index % 2}`, 'org_a'))),
  ]);
  await expect(tokens.create(fields('token', 'tok_busy'))).rejects.toThrow(
    'You have made 250 tokens already.',
  );
  await expect(tokens.create(fields('user', 'u9', 'org_a'))).rejects.toThrow(
    'This organisation has 250 tokens already.',
  );
  await expect(tokens.create(fields('user', 'u9', 'org_b'))).resolves.toBeDefined();
  expect(await tokens.list()).toHaveLength(501);
  await expect(tokens.create(fields('password', 'password'))).resolves.toBeDefined();
});
