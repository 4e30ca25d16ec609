import { expect, onTestFinished, test, vi } from 'vitest';
import { entriesOf, openStores } from '../../../core/state/stores.ts';
import { passwordActor } from '../../../plugins/admin/access/actor.ts';
import { Audit } from '../../../plugins/admin/audit.ts';
import type { AuditEntry } from '../../../plugins/admin/schemas/index.ts';

function opened() {
  const stores = openStores('sqlite::memory:');
  onTestFinished(() => stores.close());
  return { stores, audit: new Audit(stores) };
}

const author = { actor: passwordActor, ip: '192.0.2.1' };
const note = (target: string) => ({ action: 'key-update' as const, target });

test('the newest changes come first, page by page, each once', async () => {
  const { audit } = opened();
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  for (let index = 0; index < 7; index += 1) {
    vi.advanceTimersByTime(1);
    await audit.note(author, note(String(index)));
  }
  const seen: (string | undefined)[] = [];
  let after: string | undefined;
  do {
    const page = await audit.page(3, after);
    expect(page.entries.length).toBeLessThanOrEqual(3);
    seen.push(...page.entries.map(({ target }) => target));
    after = page.next;
  } while (after !== undefined);
  expect(seen).toEqual(['6', '5', '4', '3', '2', '1', '0']);
});

test('an entry that is damaged hides no others', async () => {
  const { stores, audit } = opened();
  await audit.note(author, note('sound'));
  await stores.namespace<unknown>('admin-audit').set('0000', 'nonsense');
  expect((await audit.page(10)).entries.map(({ target }) => target)).toEqual(['sound']);
});

test('the oldest entries go when there are too many', async () => {
  const { stores, audit } = opened();
  const kept = stores.namespace<AuditEntry>('admin-audit');
  await kept.setMany(
    Array.from({ length: 5_000 }, (_, index) => {
      const id = `0000${String(index).padStart(5, '0')}-x`;
      return { key: id, value: { id, at: index, ip: '192.0.2.1', ...note('old') } };
    }),
  );
  for (let index = 0; index < 100; index += 1) await audit.note(author, note('new'));
  const ids = await Array.fromAsync(entriesOf(kept), ([id]) => id);
  expect(ids).toHaveLength(5_000);
  expect(await kept.has('000000099-x')).toBe(false);
  expect(await kept.has('000000100-x')).toBe(true);
});

test('one busy token pushes out no changes of others', async () => {
  const { stores, audit } = opened();
  const kept = stores.namespace<AuditEntry>('admin-audit');
  const by = (id: string, organisation?: string) => ({
    actor: { kind: 'token' as const, id, name: id },
    ...(organisation === undefined ? {} : { organisation }),
  });
  const entry = (index: number, more: object) => {
    const id = `0000${String(index).padStart(5, '0')}-x`;
    return { key: id, value: { id, at: index, ip: '192.0.2.1', ...note('old'), ...more } };
  };
  await kept.setMany([
    ...Array.from({ length: 40 }, (_, index) => entry(index, by('quiet'))),
    ...Array.from({ length: 40 }, (_, index) => entry(40 + index, by('quiet colleague', 'org_busy'))),
    ...Array.from({ length: 4_920 }, (_, index) => entry(80 + index, by('busy', 'org_busy'))),
  ]);
  for (let index = 0; index < 100; index += 1) await audit.note(author, note('new'));
  const { entries } = await audit.page(10_000);
  const count = (id: string): number => entries.filter(({ actor }) => actor?.id === id).length;
  expect(entries).toHaveLength(5_000);
  expect(['quiet', 'quiet colleague', 'password', 'busy'].map(count)).toEqual([40, 40, 100, 4_820]);
});
