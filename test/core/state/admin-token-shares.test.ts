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

test("a token that a token makes counts as its author's, and a command may always make its own", async () => {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  const tokens = openAdminTokens(stores);
  const createdAt = Date.now();
  const make = async (kind: string, id: string): Promise<string> => {
    const { token } = await tokens.create({
      name: 'one',
      role: 'admin',
      scopes: ['keys:read'],
      createdBy: { kind, id, name: id },
      createdAt,
      expiresAt: createdAt + day,
    });
    return token.id;
  };
  const chain = [await make('user', 'u1')];
  for (let length = 0; length < 2; length += 1) chain.push(await make('token', chain.at(-1) ?? ''));
  const given = await make('token', await make('command-line', 'command-line'));
  const ofGiven = await make('token', given);
  const authorOf = async (id = ''): Promise<string | undefined> => (await tokens.byId(id))?.author?.id;
  expect(await Promise.all([...chain, given, ofGiven].map(authorOf))).toEqual([
    undefined,
    'u1',
    'u1',
    'command-line',
    undefined,
  ]);
  const row = (index: number, by: string) => ({
    key: `row ${index}`,
    value: {
      name: 'one',
      role: 'admin',
      scopes: ['keys:read'],
      createdBy: { kind: 'user', id: by, name: by },
      createdAt,
      expiresAt: createdAt + day,
      id: `tok_${index}`,
      suffix: 'wxyz',
    },
  });
  const kept = stores.namespace<unknown>('admin-tokens');
  await kept.setMany(Array.from({ length: 247 }, (_, index) => row(index, 'u1')));
  await expect(make('token', chain.at(-1) ?? '')).rejects.toThrow('You have made 250 tokens already.');
  await kept.setMany(Array.from({ length: 747 }, (_, index) => row(1_000 + index, `v${index}`)));
  await expect(make('password', 'password')).rejects.toThrow('There are 1000 tokens already.');
  await make('command-line', 'command-line');
});
