import { expect, onTestFinished, test, vi } from 'vitest';
import { GatewayError } from '../../../core/sdk/errors.ts';
import { openSealer } from '../../../core/state/sealer.ts';
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
  const creates = new IdempotentCreates({
    stores,
    upkeep: { set: () => {} } as never,
    openSealer: () => openSealer(stores),
  });
  const run = (by: Actor) =>
    creates.run({ actor: by, operation: 'createKey', key: 'k', body: {} }, () => ({ made: true }));
  await expect(run(actor('busy'))).rejects.toThrow('You have sent more than 2000 requests');
  await expect(run(actor('quiet', 'org_a'))).rejects.toThrow('Your organisation has sent more than 5000');
  await expect(run(actor('quiet', 'org_b'))).resolves.toMatchObject({ isRepeated: false });
  await expect(run({ ...actor('password'), kind: 'password' })).resolves.toMatchObject({ isRepeated: false });
});

/** Requests of one token, which has sent so many already. */
async function busy(sent: number) {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  const kept = stores.namespace<unknown>('admin-idempotent');
  const row = (index: number) => ({
    key: `row ${index}`,
    value: { claim: 'c', body: 'b', startedAt: Date.now(), of: ['token busy'] },
  });
  const rows = Array.from({ length: sent }, (_, index) => row(index));
  await kept.setMany(rows);
  const creates = new IdempotentCreates({
    stores,
    upkeep: { set: () => {} } as never,
    openSealer: () => openSealer(stores),
  });
  const run = async (key: string, create = (): object => ({ made: true })): Promise<string> => {
    const by = actor('busy');
    return creates.run({ actor: by, operation: 'createKey', key, body: {} }, create).then(
      ({ isRepeated }) => (isRepeated ? 'repeated' : 'made'),
      (error: Error) => error.message.slice(0, 13),
    );
  };
  return { run, forget: () => kept.deleteMany(rows.map(({ key }) => key)) };
}

test('requests that come at once are counted once each, and none gets past the maximum', async () => {
  const { run } = await busy(1_997);
  const results = await Promise.all(Array.from({ length: 6 }, (_, index) => run(`k${index}`)));
  expect(results.toSorted()).toEqual([...Array(3).fill('You have sent'), ...Array(3).fill('made')]);
});

test('a repeated and a refused request take no room', async () => {
  const { run } = await busy(1_998);
  const refuse = (): never => {
    throw new GatewayError('invalid_value', 'Refused for good.');
  };
  expect(await run('k1')).toBe('made');
  expect(await run('k1')).toBe('repeated');
  expect(await run('k2', refuse)).toBe('Refused for g');
  expect(await run('k3')).toBe('made');
  expect(await run('k4')).toBe('You have sent');
  expect(await run('k1')).toBe('repeated');
});

test('whoever has sent too many may send more once the first are forgotten', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const { run, forget } = await busy(1_999);
  expect([await run('k1'), await run('k2')]).toEqual(['made', 'You have sent']);
  await forget();
  vi.advanceTimersByTime(30_000);
  expect(await run('k2')).toBe('made');
});
