import { expect, onTestFinished, test } from 'vitest';
import { openStores } from '../../../core/state/stores.ts';
import type { Actor } from '../../../plugins/admin/access/actor.ts';
import { IdempotentCreates } from '../../../plugins/admin/idempotent.ts';

const actor = (id: string, organisation?: string): Actor => ({
  kind: 'token',
  id,
  name: id,
  role: 'admin',
  teams: [],
  ...(organisation === undefined ? {} : { organisation }),
});

test('one busy token, and one organisation, leave room for requests of others', async () => {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  const kept = stores.namespace<unknown>('admin-idempotent');
  const row = (index: number, of: readonly string[]) => ({
    key: `row ${index}`,
    value: { claim: 'c', body: 'b', startedAt: Date.now(), of },
  });
  await kept.setMany([
    ...Array.from({ length: 2_000 }, (_, index) => row(index, ['token busy'])),
    ...Array.from({ length: 5_000 }, (_, index) =>
      row(2_000 + index, [`token t${index % 3}`, 'organisation org_a']),
    ),
  ]);
  const creates = new IdempotentCreates({ stores, upkeep: { set: () => {} } as never });
  const run = (by: Actor) =>
    creates.run({ actor: by, operation: 'createKey', key: 'k', body: {} }, () => ({ made: true }));
  await expect(run(actor('busy'))).rejects.toThrow('You have sent more than 2000 requests');
  await expect(run(actor('quiet', 'org_a'))).rejects.toThrow(
    'Those of your organisation have sent more than 5000',
  );
  await expect(run(actor('quiet', 'org_b'))).resolves.toMatchObject({ isRepeated: false });
  await expect(run({ ...actor('password'), kind: 'password' })).resolves.toMatchObject({ isRepeated: false });
});
