import { beforeAll, describe, expect, test } from 'vitest';
import type { Sealer } from '../../../core/sdk/sealer.ts';
import { openSealer } from '../../../core/state/sealer.ts';
import { openStores } from '../../../core/state/stores.ts';
import type { Item } from '../../../plugins/compaction/items.ts';
import { asContext, compactionItem, isSummary, opened } from '../../../plugins/compaction/seals.ts';

let sealer: Sealer;
beforeAll(async () => {
  const stores = openStores('sqlite::memory:');
  sealer = await openSealer(stores, 'x'.repeat(32));
  return () => stores.close();
});

const user = (content: string): Item => ({ role: 'user', content });
const sealed = (summary: string, fields: { covers?: number; kept?: readonly Item[] } = {}): Item =>
  compactionItem(sealer, 'key_1', 'cmp_1', { model: 'm', summary, kept: [], ...fields });
const open = (items: readonly Item[], owner = 'key_1', native = false): readonly Item[] =>
  opened(items, { sealer, owner, native });
const summary = (text: string): readonly Item[] => asContext({ summary: text, kept: [] });

describe('a compaction in the context', () => {
  test('is replaced by its summary, in its place', () => {
    const items = [user('a'), sealed('S'), user('b')];
    const context = open(items);
    expect(context).toEqual([user('a'), ...summary('S'), user('b')]);
    expect(context.map(isSummary)).toEqual([false, true, false]);
  });

  test('brings along what it keeps word for word', () => {
    const call = { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' };
    expect(open([sealed('S', { kept: [call] }), user('b')])).toEqual([...summary('S'), call, user('b')]);
  });

  test('stands for as many items as it covers, and for none when the client sends fewer', () => {
    expect(open([user('a'), user('b'), sealed('S', { covers: 2 }), user('c')])).toEqual([
      ...summary('S'),
      user('c'),
    ]);
    expect(open([user('b'), sealed('S', { covers: 2 }), user('c')])).toEqual([
      user('b'),
      ...summary('S'),
      user('c'),
    ]);
  });

  test('is superseded by a later one', () => {
    const items = [user('a'), sealed('S', { covers: 1 }), user('b'), sealed('T', { covers: 3 }), user('c')];
    expect(open(items)).toEqual([...summary('T'), user('c')]);
  });

  test('under its older name counts too', () => {
    expect(open([{ ...sealed('S'), type: 'compaction_summary' }])).toEqual(summary('S'));
  });

  test('costs nothing where there is none', () => {
    const items = [user('a')];
    expect(open(items)).toBe(items);
  });

  test('of a provider goes on to one, and to no other', () => {
    const own = { type: 'compaction', encrypted_content: 'gAAAA' };
    expect(open([own], 'key_1', true)).toEqual([own]);
    expect(() => open([user('a'), own])).toThrow(
      expect.objectContaining({ status: 400, code: 'invalid_request', param: 'input[1].encrypted_content' }),
    );
  });

  test('of another owner, or without content, is refused, also where a provider could have made it', () => {
    expect(() => open([sealed('S')], 'key_2', true)).toThrow(
      'input[0].encrypted_content cannot be decrypted',
    );
    expect(() => open([{ type: 'compaction' }])).toThrow('input[0].encrypted_content cannot be decrypted');
  });
});
